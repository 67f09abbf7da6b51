package core

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/keda"
	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
)

var scalerNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func scaledService() *v1beta1.InferenceService {
	return &v1beta1.InferenceService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc", UID: "svc-uid", Generation: 3},
		Spec:       v1beta1.InferenceServiceSpec{Engine: &v1beta1.EngineSpec{}},
	}
}

func scaledTemplate(a *v1beta1.ComponentAutoscaler) *Template {
	t := &Template{
		Runners: []v1beta1.Runner{{Name: v1beta1.RunnerDefault, Size: 1, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ome-container", Image: "engine:v1"}}},
		}}},
		MinReplicas: 2, MaxReplicas: 5, Autoscaler: a, AutoscalerSource: "isvc",
		ServicePorts: []corev1.ServicePort{{Name: "http", Port: 80}},
	}
	t.Seal()
	return t
}

// scaledWorld has an engine whose replica stores a count.
func scaledWorld(count int32, a *v1beta1.ComponentAutoscaler) World {
	isvc := scaledService()
	return World{
		Key: types.NamespacedName{Namespace: "ns", Name: "svc"}, Now: scalerNow, Seed: "0123456789ab", Settings: config.Default(),
		Service: isvc,
		Components: []Component{{
			Type: v1beta1.EngineComponent, Declared: true, Template: scaledTemplate(a),
			Replica: &v1beta1.InferenceReplica{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc-engine", UID: "engine-uid", Generation: 1,
					OwnerReferences: []metav1.OwnerReference{*ownerReference(isvc, "InferenceService")}},
				Spec: v1beta1.InferenceReplicaSpec{Component: v1beta1.EngineComponent, ParentRef: &v1beta1.ParentRef{Name: "svc"}, Replicas: &count},
			},
		}},
	}
}

func (w *World) engine() *Component { return &w.Components[0] }

// stored is what a scaler looks like once the API server has it.
func (w *World) store(d Decision) {
	for _, s := range append(d.CreateScalers, d.UpdateScalers...) {
		if s.HPA != nil {
			o := s.HPA.DeepCopy()
			o.UID = types.UID("uid-" + o.Name)
			// What the API server fills in.
			if b := o.Spec.Behavior; b != nil {
				for _, rules := range []**autoscalingv2.HPAScalingRules{&b.ScaleUp, &b.ScaleDown} {
					if *rules == nil {
						*rules = &autoscalingv2.HPAScalingRules{}
					}
					if (*rules).SelectPolicy == nil {
						(*rules).SelectPolicy = new(autoscalingv2.MaxChangePolicySelect)
					}
				}
			}
			w.Scalers = replaceNamed(w.Scalers, o)
		} else {
			o := s.ScaledObject.DeepCopy()
			o.UID = types.UID("uid-" + o.Name)
			w.ScaledObjects = replaceNamed(w.ScaledObjects, o)
		}
	}
	for _, s := range d.DeleteScalers {
		if s.HPA != nil {
			w.Scalers = removeNamed(w.Scalers, s.HPA.Name)
		} else {
			w.ScaledObjects = removeNamed(w.ScaledObjects, s.ScaledObject.Name)
		}
	}
	if d.Status != nil {
		isvc := w.Service.DeepCopy()
		isvc.Status = *d.Status.DeepCopy()
		w.Service = isvc
	}
}

func removeNamed[T metav1.Object](list []T, name string) (out []T) {
	for _, o := range list {
		if o.GetName() != name {
			out = append(out, o)
		}
	}
	return out
}

func replaceNamed[T metav1.Object](list []T, o T) []T {
	return append(removeNamed(list, o.GetName()), o)
}

// moves words what a decision does to scalers.
func moves(d Decision) (out []string) {
	name := func(s Scaler) string {
		if s.HPA != nil {
			return "HPA " + s.HPA.Name
		}
		return "ScaledObject " + s.ScaledObject.Name
	}
	for _, s := range d.CreateScalers {
		out = append(out, "create "+name(s))
	}
	for _, s := range d.UpdateScalers {
		out = append(out, "update "+name(s))
	}
	for _, s := range d.DeleteScalers {
		out = append(out, "delete "+name(s))
	}
	return out
}

// scalerStatus is the engine's after a decision.
func scalerStatus(w World, d Decision) *v1beta1.ComponentAutoscalerStatus {
	if d.Status == nil {
		return w.Service.Status.Components[v1beta1.EngineComponent].Autoscaler
	}
	return d.Status.Components[v1beta1.EngineComponent].Autoscaler
}

// decided also proves that deciding changes nothing of the world.
func decided(t *testing.T, w World) Decision {
	t.Helper()
	before, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	d := Decide(w)
	if after, _ := json.Marshal(w); string(before) != string(after) {
		t.Error("deciding wrote to the world")
	}
	return d
}

func TestDefaultHPA(t *testing.T) {
	w := scaledWorld(2, nil)
	d := decided(t, w)
	if len(d.CreateScalers) != 1 || d.CreateScalers[0].HPA == nil {
		t.Fatalf("moves: %v", moves(d))
	}
	got := d.CreateScalers[0]
	mark := got.HPA.Annotations[scalerMark]
	want := Scaler{Component: v1beta1.EngineComponent, HPA: &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "svc-engine",
			Labels:          map[string]string{v1beta1.InferenceServiceLabel: "svc", v1beta1.ComponentLabel: "engine", v1beta1.ManagedByLabel: v1beta1.ManagedByOMENative},
			Annotations:     map[string]string{scalerMark: mark},
			OwnerReferences: []metav1.OwnerReference{*ownerReference(w.Service, "InferenceService")},
		},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "ome.io/v1beta1", Kind: "InferenceReplica", Name: "svc-engine"},
			MinReplicas:    new(int32(2)), MaxReplicas: 5,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))},
			}}},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" || mark == "" {
		t.Errorf("HPA, mark %q (-want +got):\n%s", mark, diff)
	}
	st := d.Status.Components[v1beta1.EngineComponent]
	if diff := cmp.Diff(&v1beta1.ComponentAutoscalerStatus{Class: "HPA", ManagedBy: "ome", SpecSource: "isvc"}, st.Autoscaler); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&v1beta1.ScaleTargetRef{APIVersion: "ome.io/v1beta1", Kind: "InferenceReplica", Name: "svc-engine"}, st.ScaleTargetRef); diff != "" {
		t.Errorf("scaleTargetRef (-want +got):\n%s", diff)
	}
	w.store(d)
	if again := decided(t, w); len(moves(again)) > 0 {
		t.Errorf("at rest: %v", moves(again))
	}
}

func behaviour() *autoscalingv2.HorizontalPodAutoscalerBehavior {
	return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: new(int32(0)),
		Policies:                   []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 15}},
	}}
}

// TestHPAFollowsTheService: each edit of the service, and of what is ours on the HPA, leads
// to one update, after which nothing is written.
func TestHPAFollowsTheService(t *testing.T) {
	own := func() *v1beta1.ComponentAutoscaler {
		return &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerHPA, HPA: &v1beta1.HPASpec{
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: "queue"},
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("10"))},
			}}},
			Behavior: behaviour(),
		}}
	}
	template := func(w *World, change func(*Template)) {
		next := *w.engine().Template
		change(&next)
		next.Seal()
		w.engine().Template = &next
	}
	hpa := func(w *World, change func(*autoscalingv2.HorizontalPodAutoscaler)) {
		o := w.Scalers[0].DeepCopy()
		change(o)
		w.Scalers[0] = o
	}
	update := []string{"update HPA svc-engine"}
	tests := map[string]struct {
		change func(*World)
		want   []string
	}{
		"nothing":         {func(*World) {}, nil},
		"minimum":         {func(w *World) { template(w, func(t *Template) { t.MinReplicas = 3 }) }, update},
		"maximum":         {func(w *World) { template(w, func(t *Template) { t.MaxReplicas = 9 }) }, update},
		"maximum too low": {func(w *World) { template(w, func(t *Template) { t.MaxReplicas = 1 }) }, update},
		"metrics gone": {func(w *World) {
			template(w, func(t *Template) { t.Autoscaler = own(); t.Autoscaler.HPA.Metrics = nil })
		}, update},
		"metric's target": {func(w *World) {
			template(w, func(t *Template) {
				t.Autoscaler = own()
				t.Autoscaler.HPA.Metrics[0].External.Target.AverageValue = new(resource.MustParse("20"))
			})
		}, update},
		"the same quantity in other words": {func(w *World) {
			hpa(w, func(o *autoscalingv2.HorizontalPodAutoscaler) {
				o.Spec.Metrics[0].External.Target.AverageValue = new(resource.MustParse("10000m"))
			})
		}, nil},
		"a field taken out of the behaviour": {func(w *World) {
			template(w, func(t *Template) {
				t.Autoscaler = own()
				t.Autoscaler.HPA.Behavior.ScaleDown.StabilizationWindowSeconds = nil
			})
		}, update},
		"behaviour taken out": {func(w *World) {
			template(w, func(t *Template) { t.Autoscaler = own(); t.Autoscaler.HPA.Behavior = nil })
		}, update},
		"somebody edits the window": {func(w *World) {
			hpa(w, func(o *autoscalingv2.HorizontalPodAutoscaler) {
				o.Spec.Behavior.ScaleDown.StabilizationWindowSeconds = new(int32(300))
			})
		}, update},
		"somebody edits the maximum": {func(w *World) { hpa(w, func(o *autoscalingv2.HorizontalPodAutoscaler) { o.Spec.MaxReplicas = 50 }) }, update},
		"somebody edits the target": {func(w *World) {
			hpa(w, func(o *autoscalingv2.HorizontalPodAutoscaler) { o.Spec.ScaleTargetRef.Name = "other" })
		}, update},
		"somebody removes the component label": {func(w *World) {
			hpa(w, func(o *autoscalingv2.HorizontalPodAutoscaler) { delete(o.Labels, v1beta1.ComponentLabel) })
		}, update},
		"somebody's own marks": {func(w *World) {
			hpa(w, func(o *autoscalingv2.HorizontalPodAutoscaler) { o.Labels["team"], o.Annotations["team"] = "a", "a" })
		}, nil},
		"defaults of the API server": {func(w *World) {
			hpa(w, func(o *autoscalingv2.HorizontalPodAutoscaler) {
				o.Spec.Behavior.ScaleUp.StabilizationWindowSeconds = new(int32(0))
				o.Spec.Behavior.ScaleUp.Policies = []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15}}
			})
		}, nil},
		"the template can't be rendered": {func(w *World) {
			w.engine().Template, w.engine().TemplateError = nil, &TemplateError{Reason: "RuntimeNotFound"}
			hpa(w, func(o *autoscalingv2.HorizontalPodAutoscaler) { o.Spec.MaxReplicas = 50 })
		}, nil},
		"the replica was deleted by hand": {func(w *World) { w.engine().Replica = nil }, nil},
		"the component left the service":  {func(w *World) { w.engine().Declared, w.engine().Template = false, nil }, []string{"delete HPA svc-engine"}},
		"the component left, all of it":   {func(w *World) { w.Components = nil }, []string{"delete HPA svc-engine"}},
		"the service is being deleted": {func(w *World) {
			s := w.Service.DeepCopy()
			s.DeletionTimestamp = &metav1.Time{Time: scalerNow}
			w.Service = s
		}, nil},
		"the service is gone":         {func(w *World) { w.Service = nil }, nil},
		"the HPA was deleted by hand": {func(w *World) { w.Scalers = nil }, []string{"create HPA svc-engine"}},
		"the HPA is an earlier service's": {func(w *World) {
			hpa(w, func(o *autoscalingv2.HorizontalPodAutoscaler) { o.OwnerReferences[0].UID = "old" })
		}, nil},
		"the HPA is somebody else's": {func(w *World) { hpa(w, func(o *autoscalingv2.HorizontalPodAutoscaler) { o.OwnerReferences = nil }) }, nil},
		"another HPA of nobody's business": {func(w *World) {
			w.Scalers = append(w.Scalers, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "handmade"}})
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := scaledWorld(2, own())
			w.store(decided(t, w))
			if again := decided(t, w); len(moves(again)) > 0 {
				t.Fatalf("at rest: %v", moves(again))
			}
			test.change(&w)
			d := decided(t, w)
			if diff := cmp.Diff(test.want, moves(d)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			w.store(d)
			if again := decided(t, w); len(test.want) > 0 && len(moves(again)) > 0 {
				t.Errorf("after it: %v", moves(again))
			}
			for _, s := range d.UpdateScalers {
				least, most := w.engine().Template.bounds()
				if *s.HPA.Spec.MinReplicas != least || s.HPA.Spec.MaxReplicas != most || most < least {
					t.Errorf("bounds %d..%d, want %d..%d", *s.HPA.Spec.MinReplicas, s.HPA.Spec.MaxReplicas, least, most)
				}
			}
		})
	}
}

func kedaBlock() *v1beta1.ComponentAutoscaler {
	return &v1beta1.ComponentAutoscaler{Class: v1beta1.AutoscalerKEDA, KEDA: &v1beta1.KEDASpec{
		Triggers: []v1beta1.KEDATrigger{{Type: "cron", Metadata: map[string]string{"a": "b"}}}, IdleReplicaCount: new(int32(0)),
	}}
}

func class(c v1beta1.AutoscalerClass) *v1beta1.ComponentAutoscaler {
	if c == v1beta1.AutoscalerKEDA {
		return kedaBlock()
	}
	return &v1beta1.ComponentAutoscaler{Class: c}
}

// TestClassSwitches follows every switch to its end. A new scaler is there before the old
// one goes, except that KEDA takes no target that an HPA scales; and no switch moves a count
// that is not ours.
func TestClassSwitches(t *testing.T) {
	const hpa, object = "HPA svc-engine", "ScaledObject scaledobject-svc-engine"
	tests := map[string]struct {
		from, to v1beta1.AutoscalerClass
		want     [][]string
	}{
		"HPA to External":  {v1beta1.AutoscalerHPA, v1beta1.AutoscalerExternal, [][]string{{"delete " + hpa}}},
		"HPA to None":      {v1beta1.AutoscalerHPA, v1beta1.AutoscalerNone, [][]string{{"delete " + hpa}}},
		"HPA to KEDA":      {v1beta1.AutoscalerHPA, v1beta1.AutoscalerKEDA, [][]string{{"delete " + hpa}, {"create " + object}}},
		"KEDA to HPA":      {v1beta1.AutoscalerKEDA, v1beta1.AutoscalerHPA, [][]string{{"create " + hpa}, {"delete " + object}}},
		"KEDA to External": {v1beta1.AutoscalerKEDA, v1beta1.AutoscalerExternal, [][]string{{"delete " + object}}},
		"External to HPA":  {v1beta1.AutoscalerExternal, v1beta1.AutoscalerHPA, [][]string{{"create " + hpa}}},
		"None to KEDA":     {v1beta1.AutoscalerNone, v1beta1.AutoscalerKEDA, [][]string{{"create " + object}}},
		"None to External": {v1beta1.AutoscalerNone, v1beta1.AutoscalerExternal, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := scaledWorld(4, class(test.from))
			w.KEDAServed = true
			w.store(decided(t, w))
			w.engine().Template = scaledTemplate(class(test.to))
			var got [][]string
			for range 5 {
				d := decided(t, w)
				// The count stays what it was under every class that is not None.
				if u := d.Components[0].UpdateReplica; u != nil && test.to != v1beta1.AutoscalerNone && *u.Spec.Replicas != 4 {
					t.Errorf("the count became %d", *u.Spec.Replicas)
				}
				if len(moves(d)) == 0 {
					break
				}
				got = append(got, moves(d))
				w.store(d)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheCountIsItsOwners: our writes move spec.replicas at birth, under class None, and
// from nothing; never otherwise.
func TestTheCountIsItsOwners(t *testing.T) {
	tests := []struct {
		name   string
		class  v1beta1.AutoscalerClass
		stored int32
		absent bool
		want   int32
	}{
		{name: "HPA within its bounds", class: "HPA", stored: 4, want: 4},
		{name: "HPA above its bounds, which are the HPA's to enforce", class: "HPA", stored: 9, want: 9},
		{name: "HPA below its bounds", class: "HPA", stored: 1, want: 1},
		{name: "HPA from zero", class: "HPA", stored: 0, want: 2},
		{name: "HPA without a count", class: "HPA", absent: true, want: 2},
		{name: "no block at all", class: "", stored: 9, want: 9},
		{name: "External above the maximum", class: "External", stored: 9, want: 9},
		{name: "External below the minimum", class: "External", stored: 1, want: 1},
		{name: "External from zero", class: "External", stored: 0, want: 2},
		{name: "KEDA above its bounds", class: "KEDA", stored: 9, want: 9},
		{name: "None above", class: "None", stored: 9, want: 2},
		{name: "None below", class: "None", stored: 1, want: 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var a *v1beta1.ComponentAutoscaler
			if test.class != "" {
				a = class(test.class)
			}
			w := scaledWorld(test.stored, a)
			if test.absent {
				w.engine().Replica.Spec.Replicas = nil
			}
			u := decided(t, w).Components[0].UpdateReplica
			if u == nil {
				t.Fatal("a replica without marks was not stamped")
			}
			if got := valueOr(u.Spec.Replicas, -1); got != test.want {
				t.Errorf("spec.replicas %d, want %d", got, test.want)
			}
			block := u.Spec.Autoscaler
			if wantClass := v1beta1.AutoscalerClass(test.class); block == nil && wantClass != "" || block != nil && wantClass != "" && block.Class != wantClass {
				t.Errorf("the replica records %+v, want class %s", block, wantClass)
			}
		})
	}
	for _, c := range []v1beta1.AutoscalerClass{"HPA", "KEDA", "External", "None"} {
		w := scaledWorld(0, class(c))
		w.engine().Replica = nil
		r := decided(t, w).Components[0].CreateReplica
		if r == nil || valueOr(r.Spec.Replicas, -1) != 2 {
			t.Errorf("class %s: born with %+v, want the minimum", c, r)
		}
		if d := decided(t, w); len(moves(d)) > 0 {
			t.Errorf("class %s: %v before there is anything to scale", c, moves(d))
		}
	}
}

func TestScaledObject(t *testing.T) {
	w := scaledWorld(2, kedaBlock())
	w.KEDAServed = true
	template := *w.engine().Template
	template.MinReplicas = 0
	template.Seal()
	w.engine().Template = &template
	d := decided(t, w)
	if diff := cmp.Diff([]string{"create ScaledObject scaledobject-svc-engine"}, moves(d)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	got := d.CreateScalers[0].ScaledObject
	want := keda.ScaledObjectSpec{
		ScaleTargetRef:  v1beta1.ScaleTargetRef{APIVersion: "ome.io/v1beta1", Kind: "InferenceReplica", Name: "svc-engine"},
		MinReplicaCount: new(int32(1)), MaxReplicaCount: new(int32(5)),
		KEDASpec: *kedaBlock().KEDA,
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	w.store(d)
	if again := decided(t, w); len(moves(again)) > 0 {
		t.Errorf("at rest: %v", moves(again))
	}

	// KEDA's own HPA tells the counts; its conditions have no times, so ours do.
	w.ScaledObjects[0].Status = keda.ScaledObjectStatus{HpaName: "keda-hpa-x", Conditions: []keda.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ScaledObjectReady"}, {Type: "Paused", Status: metav1.ConditionUnknown}}}
	w.Scalers = append(w.Scalers, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "keda-hpa-x", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.ScaledObjects[0], keda.GroupVersion.WithKind("ScaledObject"))}},
		Status:     autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 2, DesiredReplicas: 3},
	})
	d = decided(t, w)
	if len(moves(d)) > 0 {
		t.Errorf("KEDA's own HPA: %v", moves(d))
	}
	at := metav1.NewTime(scalerNow)
	status := &v1beta1.ComponentAutoscalerStatus{Class: "KEDA", ManagedBy: "ome", SpecSource: "isvc", CurrentReplicas: 2, DesiredReplicas: 3, Conditions: []metav1.Condition{
		{Type: "Ready", Status: "True", Reason: "ScaledObjectReady", LastTransitionTime: at}, {Type: "Paused", Status: "Unknown", Reason: "Unknown", LastTransitionTime: at}}}
	if diff := cmp.Diff(status, d.Status.Components["engine"].Autoscaler); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	w.store(d)
	w.Now = w.Now.Add(time.Hour)
	if diff := cmp.Diff(status, scalerStatus(w, decided(t, w))); diff != "" {
		t.Errorf("a later pass (-want +got):\n%s", diff)
	}
}

// TestWhatStandsInTheWay is told in status and once by an event, and touches nothing.
func TestWhatStandsInTheWay(t *testing.T) {
	foreign := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "svc-engine", Labels: map[string]string{v1beta1.InferenceServiceLabel: "svc"}}}
	earlier := foreign.DeepCopy()
	old := scaledService()
	old.UID = "old-uid"
	earlier.OwnerReferences = []metav1.OwnerReference{*ownerReference(old, "InferenceService")}
	tests := map[string]struct {
		class           v1beta1.AutoscalerClass
		change          func(*World)
		reason, message string
		events          int
	}{
		"somebody else's HPA": {"HPA", func(w *World) { w.Scalers = append(w.Scalers, foreign) }, "ScalerNotOurs",
			"HorizontalPodAutoscaler svc-engine is not controlled by expected owner; delete or rename it", 1},
		"an earlier service's HPA": {"HPA", func(w *World) { w.Scalers = append(w.Scalers, earlier) }, "WaitingForTeardown",
			"HorizontalPodAutoscaler svc-engine is on its way out; its successor follows", 0},
		"refused": {"HPA", func(w *World) { w.engine().ScalerRefusal.Text = "it is Tuesday" }, "ScalerRefused",
			"HorizontalPodAutoscaler svc-engine: it is Tuesday", 1},
		"an HPA that no cache shows": {"HPA", func(w *World) { w.engine().ScalerRefusal = ScalerRefusal{Taken: true, Text: "it is theirs"} }, "ScalerNotOurs",
			"it is theirs", 1},
		"no KEDA": {"KEDA", func(w *World) { w.KEDAServed = false }, "KEDANotInstalled",
			"this cluster serves no ScaledObject of keda.sh: install KEDA and restart ome-manager, or use another autoscaler.class; the count stays", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := scaledWorld(4, class(test.class))
			w.KEDAServed = true
			test.change(&w)
			d := decided(t, w)
			for _, m := range moves(d) {
				if m != "create HPA svc-engine" || w.engine().ScalerRefusal.Text == "" {
					t.Errorf("move: %s", m)
				}
			}
			got := d.Status.Components["engine"].Autoscaler.Conditions
			if len(got) != 1 || got[0].Status != metav1.ConditionFalse || got[0].Reason != test.reason || got[0].Message != test.message {
				t.Errorf("conditions: %+v", got)
			}
			if !d.StatusUrgent {
				t.Error("told late")
			}
			events := func(d Decision) (n int) {
				for _, e := range d.Events {
					if e.Reason == test.reason {
						n++
					}
				}
				return n
			}
			if n := events(d); n != test.events {
				t.Errorf("%d events, want %d", n, test.events)
			}
			w.store(d)
			w.Now = w.Now.Add(time.Hour)
			again := decided(t, w)
			if diff := cmp.Diff(got, scalerStatus(w, again).Conditions); diff != "" || events(again) != 0 {
				t.Errorf("a later pass: %d events, conditions (-first +later):\n%s", events(again), diff)
			}
		})
	}
}

// TestCountsAreQuiet: what a scaler counts and words may wait; what it can't do is told at once.
func TestCountsAreQuiet(t *testing.T) {
	w := scaledWorld(2, nil)
	w.store(decided(t, w))
	hpa := w.Scalers[0].DeepCopy()
	at := metav1.NewTime(scalerNow.Add(-time.Minute))
	hpa.Status = autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 2, DesiredReplicas: 3, LastScaleTime: &at, Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{
		{Type: autoscalingv2.AbleToScale, Status: corev1.ConditionTrue, Reason: "ReadyForNewScale", LastTransitionTime: at},
		{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, Reason: "ValidMetricFound", LastTransitionTime: at},
	}}
	w.Scalers[0] = hpa
	d := decided(t, w)
	want := &v1beta1.ComponentAutoscalerStatus{Class: "HPA", ManagedBy: "ome", SpecSource: "isvc", CurrentReplicas: 2, DesiredReplicas: 3, LastScaleTime: &at, Conditions: []metav1.Condition{
		{Type: "AbleToScale", Status: "True", Reason: "ReadyForNewScale", LastTransitionTime: at}, {Type: "ScalingActive", Status: "True", Reason: "ValidMetricFound", LastTransitionTime: at}}}
	if diff := cmp.Diff(want, d.Status.Components["engine"].Autoscaler); diff != "" {
		t.Fatalf("status (-want +got):\n%s", diff)
	}
	w.store(d)
	change := func(f func(*autoscalingv2.HorizontalPodAutoscalerStatus)) Decision {
		o := w.Scalers[0].DeepCopy()
		f(&o.Status)
		w.Scalers[0] = o
		return decided(t, w)
	}
	if d := change(func(s *autoscalingv2.HorizontalPodAutoscalerStatus) {
		s.CurrentReplicas, s.Conditions[0].Reason, s.Conditions[0].Message = 3, "SucceededRescale", "new size"
	}); d.Status == nil || d.StatusUrgent {
		t.Errorf("counts: status %t, urgent %t", d.Status != nil, d.StatusUrgent)
	}
	if d := change(func(s *autoscalingv2.HorizontalPodAutoscalerStatus) {
		s.Conditions[1].Status, s.Conditions[1].Reason = corev1.ConditionFalse, "FailedGetResourceMetric"
	}); d.Status == nil || !d.StatusUrgent {
		t.Errorf("a failure: status %t, urgent %t", d.Status != nil, d.StatusUrgent)
	}
	if d := change(func(s *autoscalingv2.HorizontalPodAutoscalerStatus) {
		s.CurrentMetrics = []autoscalingv2.MetricStatus{{}}
	}); !d.StatusUrgent {
		t.Error("the failure is not told any more")
	}
}
