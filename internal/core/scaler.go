package core

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/keda"
	"ome.io/ome/api/v1beta1"
)

// Scaler is an object that moves the count of one component. One of the two is set.
type Scaler struct {
	Component    v1beta1.ComponentType
	HPA          *autoscalingv2.HorizontalPodAutoscaler
	ScaledObject *keda.ScaledObject
}

// ScalerRefusal is a scaler's write that was turned down.
type ScalerRefusal struct {
	// Taken is true when an object that no cache shows has the scaler's name.
	Taken bool
	Text  string
}

const (
	// scalerMark records which spec was written. The API server and KEDA fill in defaults
	// there, so a field that a person took out of the service can't be seen otherwise.
	scalerMark = "internal.ome.io/scaler-spec"
	// defaultCPUUtilization is the target of a component that names no metric.
	defaultCPUUtilization = 80
)

// ScaledObjectName is the name of a component's ScaledObject.
func ScaledObjectName(service string, c v1beta1.ComponentType) string {
	return "scaledobject-" + v1beta1.ReplicaName(service, c)
}

// preparedScaler is what goes into a component's scaler, worked out once for a template.
type preparedScaler struct {
	block   v1beta1.ComponentAutoscaler
	metrics []autoscalingv2.MetricSpec
	digest  string
}

func (t *Template) prepareScaler() *preparedScaler {
	p := &preparedScaler{block: t.block()}
	least, most := t.bounds()
	parts := []any{p.block.Class, least, most}
	switch p.block.Class {
	case v1beta1.AutoscalerHPA:
		if p.block.HPA != nil {
			p.metrics = p.block.HPA.Metrics
		}
		if len(p.metrics) == 0 {
			target := int32(defaultCPUUtilization)
			p.metrics = []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{
					Name:   corev1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &target},
				},
			}}
		}
		parts = append(parts, p.metrics, p.behavior())
	case v1beta1.AutoscalerKEDA:
		parts = append(parts, p.block.KEDA)
	}
	raw, err := json.Marshal(parts)
	if err != nil {
		raw = nil // API types always marshal
	}
	sum := sha256.Sum256(raw)
	p.digest = hex.EncodeToString(sum[:8])
	return p
}

func (p *preparedScaler) behavior() *autoscalingv2.HorizontalPodAutoscalerBehavior {
	if p.block.HPA == nil {
		return nil
	}
	return p.block.HPA.Behavior
}

// scaling is what the template asks of a scaler.
func (t *Template) scaling() *preparedScaler {
	if t.scale != nil {
		return t.scale
	}
	return t.prepareScaler()
}

// block is the autoscaler in force. A template without one is scaled by CPU.
func (t *Template) block() v1beta1.ComponentAutoscaler {
	if t.Autoscaler == nil {
		return v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerHPA}
	}
	b := *t.Autoscaler
	if b.Class == "" {
		b.Class = v1beta1.AutoscalerHPA
	}
	return b
}

// bounds are what a scaler keeps the count between.
func (t *Template) bounds() (least, most int32) {
	least = max(1, t.MinReplicas)
	return least, max(least, t.MaxReplicas)
}

// claim says whose an object is that has the name of one of ours.
type claim int

const (
	absent claim = iota
	ours
	// leaving: an object of ours, or of an earlier service of the name, that is about to go.
	leaving
	foreign
)

func claimOf[T any, O interface {
	*T
	metav1.Object
}](w *World, o O) claim {
	if o == nil {
		return absent
	}
	owner := metav1.GetControllerOf(o)
	switch {
	case w.Service == nil:
		return leaving
	case metav1.IsControlledBy(o, w.Service):
		if o.GetDeletionTimestamp() != nil {
			return leaving
		}
		return ours
	case owner != nil && owner.Kind == v1beta1.InferenceServiceKind && owner.Name == w.Key.Name:
		return leaving // the garbage collector has it
	}
	return foreign
}

func (w *World) hpa(name string) *autoscalingv2.HorizontalPodAutoscaler {
	for _, o := range w.Scalers {
		if o.Name == name {
			return o
		}
	}
	return nil
}

func (w *World) scaledObject(name string) *keda.ScaledObject {
	for _, o := range w.ScaledObjects {
		if o.Name == name {
			return o
		}
	}
	return nil
}

// scalers compares the scalers that should exist with those that do. What stands in the
// way of one is told in the component's status and touches nothing else.
func scalers(w *World, components []*component, out *Decision) {
	if w.Service == nil || w.Service.DeletionTimestamp != nil {
		return // they go with their owner
	}
	keep := map[string]bool{}
	for _, c := range components {
		c.scale(w, out, keep)
		if p := c.scalerProblem(w); p != nil && (p.reason == reasonScalerNotOurs || p.reason == reasonScalerRefused) && !c.told(w, p) {
			out.Events = append(out.Events, Event{Warning: true, Reason: p.reason, Message: p.message})
		}
	}
	for _, o := range w.Scalers {
		if !keep[o.Name] && claimOf(w, o) == ours {
			out.DeleteScalers = append(out.DeleteScalers, Scaler{Component: componentLabel(o), HPA: o})
		}
	}
	for _, o := range w.ScaledObjects {
		if !keep[o.Name] && claimOf(w, o) == ours {
			out.DeleteScalers = append(out.DeleteScalers, Scaler{Component: componentLabel(o), ScaledObject: o})
		}
	}
}

func componentLabel(o metav1.Object) v1beta1.ComponentType {
	return v1beta1.ComponentType(o.GetLabels()[v1beta1.ComponentLabel])
}

// scale decides one component's scaler. The names in keep are those that must not go now.
func (c *component) scale(w *World, out *Decision, keep map[string]bool) {
	if !c.Declared {
		return
	}
	hpaName, objectName := v1beta1.ReplicaName(w.Key.Name, c.Type), ScaledObjectName(w.Key.Name, c.Type)
	hpa, object := w.hpa(hpaName), w.scaledObject(objectName)
	if c.Template == nil || c.unreadable != nil || c.foreign || c.Replica == nil || c.Replica.DeletionTimestamp != nil {
		// Nothing new is known, or nothing is there to scale: what exists stays.
		keep[hpaName], keep[objectName] = true, true
		return
	}
	switch c.Template.block().Class {
	case v1beta1.AutoscalerHPA:
		keep[hpaName] = true
		switch claimOf(w, hpa) {
		case absent:
			out.CreateScalers = append(out.CreateScalers, Scaler{Component: c.Type, HPA: newHPA(w, c, c.Template.scaling())})
		case ours:
			if next := nextHPA(w, c, hpa); next != nil {
				out.UpdateScalers = append(out.UpdateScalers, Scaler{Component: c.Type, HPA: next})
			}
			return // the new one is there, so the old one may go
		}
		keep[objectName] = true
	case v1beta1.AutoscalerKEDA:
		keep[objectName] = true
		switch {
		case !w.KEDAServed:
			keep[hpaName] = true
		case claimOf(w, object) == absent:
			// KEDA refuses a target that an HPA scales, so ours goes first. The count stays.
			if at := claimOf(w, hpa); at == absent || at == foreign {
				out.CreateScalers = append(out.CreateScalers, Scaler{Component: c.Type, ScaledObject: newScaledObject(w, c, c.Template.scaling())})
			}
		case claimOf(w, object) == ours:
			if next := nextScaledObject(w, c, object); next != nil {
				out.UpdateScalers = append(out.UpdateScalers, Scaler{Component: c.Type, ScaledObject: next})
			}
		default:
			keep[hpaName] = true
		}
	}
}

func scalerMeta(w *World, c *component, name, mark string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: w.Key.Namespace, Name: name, Labels: selector(w.Key.Name, c.Type),
		Annotations:     map[string]string{scalerMark: mark},
		OwnerReferences: []metav1.OwnerReference{*ownerReference(w.Service, v1beta1.InferenceServiceKind)},
	}
}

func newHPA(w *World, c *component, p *preparedScaler) *autoscalingv2.HorizontalPodAutoscaler {
	name := v1beta1.ReplicaName(w.Key.Name, c.Type)
	least, most := c.Template.bounds()
	out := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: scalerMeta(w, c, name, p.digest), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: groupVersion, Kind: v1beta1.InferenceReplicaKind, Name: name},
		MinReplicas:    &least, MaxReplicas: most, Metrics: p.metrics, Behavior: p.behavior(),
	}}
	out.Spec = *out.Spec.DeepCopy() // the template is shared
	return out
}

// nextHPA is the stored object with what is ours put right; nil when it is. What others
// filled in is theirs.
func nextHPA(w *World, c *component, got *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	p := c.Template.scaling()
	least, most := c.Template.bounds()
	target, behavior := &got.Spec.ScaleTargetRef, p.behavior()
	if marked(w, c, got, p.digest) && target.APIVersion == groupVersion && target.Kind == v1beta1.InferenceReplicaKind && target.Name == got.Name &&
		valueOr(got.Spec.MinReplicas, 1) == least && got.Spec.MaxReplicas == most &&
		apiequality.Semantic.DeepEqual(p.metrics, got.Spec.Metrics) && sameBehavior(behavior, got.Spec.Behavior) {
		return nil
	}
	next, want := got.DeepCopy(), newHPA(w, c, p)
	next.Labels, next.Annotations = withAll(got.Labels, want.Labels), withAll(got.Annotations, want.Annotations)
	next.Spec = want.Spec
	return next
}

// sameBehavior compares what the service says; the API server fills in the rest.
func sameBehavior(want, got *autoscalingv2.HorizontalPodAutoscalerBehavior) bool {
	if want == nil || got == nil {
		return want == nil && got == nil
	}
	return sameRules(want.ScaleUp, got.ScaleUp) && sameRules(want.ScaleDown, got.ScaleDown)
}

func sameRules(want, got *autoscalingv2.HPAScalingRules) bool {
	if want == nil || got == nil {
		return want == nil
	}
	return (want.StabilizationWindowSeconds == nil || samePointee(want.StabilizationWindowSeconds, got.StabilizationWindowSeconds)) &&
		(want.SelectPolicy == nil || samePointee(want.SelectPolicy, got.SelectPolicy)) &&
		(want.Policies == nil || slices.Equal(want.Policies, got.Policies)) &&
		(want.Tolerance == nil || got.Tolerance != nil && want.Tolerance.Cmp(*got.Tolerance) == 0)
}

// newScaledObject never asks for fewer than one: an Instance count has no zero.
func newScaledObject(w *World, c *component, p *preparedScaler) *keda.ScaledObject {
	least, most := c.Template.bounds()
	out := &keda.ScaledObject{
		ObjectMeta: scalerMeta(w, c, ScaledObjectName(w.Key.Name, c.Type), p.digest),
		Spec: keda.ScaledObjectSpec{
			ScaleTargetRef:  v1beta1.ScaleTargetRef{APIVersion: groupVersion, Kind: v1beta1.InferenceReplicaKind, Name: v1beta1.ReplicaName(w.Key.Name, c.Type)},
			MinReplicaCount: &least, MaxReplicaCount: &most,
		},
	}
	if own := p.block.KEDA; own != nil {
		out.Spec.KEDASpec = *own.DeepCopy()
	}
	return out
}

func nextScaledObject(w *World, c *component, got *keda.ScaledObject) *keda.ScaledObject {
	want := newScaledObject(w, c, c.Template.scaling())
	if marked(w, c, got, want.Annotations[scalerMark]) && apiequality.Semantic.DeepDerivative(want.Spec, got.Spec) {
		return nil
	}
	next := got.DeepCopy()
	next.Labels, next.Annotations = withAll(got.Labels, want.Labels), withAll(got.Annotations, want.Annotations)
	next.Spec = want.Spec
	return next
}

// marked compares what is ours of a scaler's metadata.
func marked(w *World, c *component, got metav1.Object, mark string) bool {
	l := got.GetLabels()
	return got.GetAnnotations()[scalerMark] == mark && l[v1beta1.InferenceServiceLabel] == w.Key.Name &&
		l[v1beta1.ComponentLabel] == string(c.Type) && l[v1beta1.ManagedByLabel] == v1beta1.ManagedByOMENative
}

// Reasons of a scaler's condition that are ours; the others are copied.
const (
	reasonScalerNotOurs   = "ScalerNotOurs"
	reasonScalerRefused   = "ScalerRefused"
	reasonScalerKEDA      = "KEDANotInstalled"
	reasonScalerLeaving   = "WaitingForTeardown"
	conditionAbleToScale  = string(autoscalingv2.AbleToScale)
	conditionScaledObject = "Ready"
)

// problem is what keeps a component from having its scaler.
type problem struct{ condition, reason, message string }

// scalerProblem is nil while nothing is in the way.
func (c *component) scalerProblem(w *World) *problem {
	if !c.Declared || c.Template == nil {
		return nil
	}
	p := problem{condition: conditionAbleToScale}
	var at claim
	var name string
	switch c.Template.block().Class {
	case v1beta1.AutoscalerHPA:
		name = v1beta1.ReplicaName(w.Key.Name, c.Type)
		at, name = claimOf(w, w.hpa(name)), "HorizontalPodAutoscaler "+name
	case v1beta1.AutoscalerKEDA:
		p.condition = conditionScaledObject
		if !w.KEDAServed {
			p.reason = reasonScalerKEDA
			p.message = "this cluster serves no ScaledObject of keda.sh: install KEDA and restart ome-manager, or use another autoscaler.class; the count stays"
			return &p
		}
		name = ScaledObjectName(w.Key.Name, c.Type)
		at, name = claimOf(w, w.scaledObject(name)), keda.ScaledObjectKind+" "+name
	default:
		return nil
	}
	switch {
	case at == foreign:
		p.reason, p.message = reasonScalerNotOurs, name+" is not controlled by expected owner; delete or rename it"
	case at == leaving:
		p.reason, p.message = reasonScalerLeaving, name+" is on its way out; its successor follows"
	case c.ScalerRefusal.Taken:
		p.reason, p.message = reasonScalerNotOurs, c.ScalerRefusal.Text
	case c.ScalerRefusal.Text != "":
		p.reason, p.message = reasonScalerRefused, name+": "+c.ScalerRefusal.Text
	default:
		return nil
	}
	return &p
}

// told is true once the stored status names the problem.
func (c *component) told(w *World, p *problem) bool {
	stored := w.Service.Status.Components[c.Type].Autoscaler
	return stored != nil && slices.ContainsFunc(stored.Conditions, func(have metav1.Condition) bool {
		return have.Type == p.condition && have.Reason == p.reason
	})
}

// autoscalerStatus tells the scaler in force and what it says of itself.
func (c *component) autoscalerStatus(w *World) *v1beta1.ComponentAutoscalerStatus {
	stored := w.Service.Status.Components[c.Type].Autoscaler
	var out v1beta1.ComponentAutoscalerStatus
	switch {
	case c.Template != nil:
		out = v1beta1.ComponentAutoscalerStatus{Class: c.Template.block().Class, SpecSource: c.Template.AutoscalerSource}
	case stored != nil:
		out = v1beta1.ComponentAutoscalerStatus{Class: stored.Class, SpecSource: stored.SpecSource}
	default:
		return nil
	}
	var old []metav1.Condition
	if stored != nil {
		old = stored.Conditions
	}
	conditions := scalerConditions{now: metav1.NewTime(w.Now), old: old}
	p := c.scalerProblem(w)
	switch out.Class {
	case v1beta1.AutoscalerNone:
		out.ManagedBy = v1beta1.AutoscalerManagedByNone
		return &out
	case v1beta1.AutoscalerExternal:
		out.ManagedBy = v1beta1.AutoscalerManagedByExternal
		return &out
	case v1beta1.AutoscalerHPA:
		out.ManagedBy = v1beta1.AutoscalerManagedByOME
		if o := w.hpa(v1beta1.ReplicaName(w.Key.Name, c.Type)); claimOf(w, o) == ours {
			counts(&out, o)
			for _, x := range o.Status.Conditions {
				conditions.add(string(x.Type), metav1.ConditionStatus(x.Status), x.Reason, x.Message, x.LastTransitionTime)
			}
		}
	case v1beta1.AutoscalerKEDA:
		out.ManagedBy = v1beta1.AutoscalerManagedByOME
		if o := w.scaledObject(ScaledObjectName(w.Key.Name, c.Type)); claimOf(w, o) == ours {
			if theirs := w.hpa(o.Status.HpaName); theirs != nil && metav1.IsControlledBy(theirs, o) {
				counts(&out, theirs)
			}
			for _, x := range o.Status.Conditions {
				conditions.add(x.Type, x.Status, x.Reason, x.Message, metav1.Time{})
			}
		}
	}
	if p != nil {
		conditions.replace(p.condition, metav1.ConditionFalse, p.reason, p.message)
	}
	out.Conditions = conditions.list
	return &out
}

func counts(out *v1beta1.ComponentAutoscalerStatus, o *autoscalingv2.HorizontalPodAutoscaler) {
	out.CurrentReplicas, out.DesiredReplicas, out.LastScaleTime = o.Status.CurrentReplicas, o.Status.DesiredReplicas, o.Status.LastScaleTime
}

// scalerConditions turns a scaler's conditions into ones the API takes. A time that a
// scaler doesn't tell is when this status first said so.
type scalerConditions struct {
	now       metav1.Time
	old, list []metav1.Condition
}

func (l *scalerConditions) replace(kind string, status metav1.ConditionStatus, reason, message string) {
	l.list = slices.DeleteFunc(l.list, func(c metav1.Condition) bool { return c.Type == kind })
	l.add(kind, status, reason, message, metav1.Time{})
}

func (l *scalerConditions) add(kind string, status metav1.ConditionStatus, reason, message string, at metav1.Time) {
	if at.IsZero() {
		at = l.now
		for _, c := range l.old {
			if c.Type == kind && c.Status == status && !c.LastTransitionTime.IsZero() {
				at = c.LastTransitionTime
			}
		}
	}
	if reason == "" {
		reason = "Unknown" // the API asks for one
	}
	l.list = append(l.list, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: at})
}

// sameAutoscaler looks at reasons of what is wrong also by weight: ours are told once, by
// an event that the stored status ends.
func (w weigh) sameAutoscaler(a, b *v1beta1.ComponentAutoscalerStatus) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	return a.Class == b.Class && a.ManagedBy == b.ManagedBy && a.SpecSource == b.SpecSource &&
		sameDeep(a.Policy, b.Policy) && sameDeep(a.ShadowedPolicyRef, b.ShadowedPolicyRef) &&
		w.count(a.CurrentReplicas, b.CurrentReplicas) && w.count(a.DesiredReplicas, b.DesiredReplicas) &&
		(w == byWeight || a.LastScaleTime.Equal(b.LastScaleTime)) &&
		slices.EqualFunc(a.Conditions, b.Conditions, w.sameScalerCondition)
}

func (w weigh) sameScalerCondition(a, b metav1.Condition) bool {
	if a.Type != b.Type || a.Status != b.Status || (a.Status == metav1.ConditionFalse && a.Reason != b.Reason) {
		return false
	}
	return w == byWeight || (a.Reason == b.Reason && a.Message == b.Message && a.ObservedGeneration == b.ObservedGeneration &&
		a.LastTransitionTime.Equal(&b.LastTransitionTime))
}
