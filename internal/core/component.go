package core

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/instance"
	"ome.io/ome/internal/core/revision"
	"ome.io/ome/internal/core/rollout"
	"ome.io/ome/internal/core/rows"
)

// component is a Component on its way through one decision.
type component struct {
	*Component
	out ComponentDecision

	// target is the revision to converge on: the rendered template's, or the last
	// one recorded while the template cannot be rendered.
	target    instance.Revision
	collision int32
	// aim is what the Instances are to run: target, or the revision that a rejected
	// canary keeps the component on; held is true for the latter.
	aim  instance.Revision
	held bool
	// partition and rollbackTo are what this pass tells the replica.
	partition  *int32
	rollbackTo string
	known      map[string]instance.Revision
	rows       []v1beta1.InstanceStatus
	desired    int32
	result     instance.Result
	// unreadable is set when the stored rows do not decode: nothing is touched then.
	unreadable error
	// foreign is set when the replica belongs to an earlier service of this name.
	foreign bool
	// sameRows is set when the decided rows are the stored ones, in the stored form.
	sameRows bool
	// status is the next status, equal to the stored one when nothing was decided.
	status v1beta1.InferenceReplicaStatus
}

// prepare works out revision, rows and count of one component.
func prepare(w *World, in *Component) *component {
	c := &component{Component: in, out: ComponentDecision{Type: in.Type}}
	if in.Replica != nil {
		c.status = in.Replica.Status // what changes is replaced, never written to
		c.foreign = w.Service != nil && w.Service.DeletionTimestamp == nil && !metav1.IsControlledBy(in.Replica, w.Service)
		c.rows, c.unreadable = rows.Decode(&in.Replica.Status, int(w.Settings.InstanceStatus.MaxDecodedInstances))
	}
	c.resolveRevision(w)
	c.desired = c.count()
	return c
}

func (c *component) resolveRevision(w *World) {
	c.known = make(map[string]instance.Revision, len(c.Revisions)+1)
	for _, cr := range c.Revisions {
		c.known[cr.Name] = stored(cr)
	}
	if c.Template == nil {
		if c.Replica != nil {
			c.target = c.known[c.Replica.Status.UpdateRevision]
			if c.target.Name == "" {
				c.target.Name = c.Replica.Status.UpdateRevision
			}
		}
		return
	}
	owner := revision.Owner{Namespace: w.Key.Namespace, Prefix: w.Key.Name, Component: c.Type}
	if c.Replica != nil {
		owner.Reference = ownerReference(c.Replica, "InferenceReplica")
		c.collision = valueOr(c.Replica.Status.CollisionCount, 0)
	}
	resolved, err := revision.Resolve(c.Revisions, owner, c.Template.revisionInput(c.collision))
	if err != nil {
		c.TemplateError = &TemplateError{Reason: v1beta1.ReasonRenderFailed, Message: err.Error()}
		return
	}
	c.collision = resolved.CollisionCount
	c.target = instance.Revision{Name: resolved.Name, Hash: resolved.Hash, Token: c.Template.PairingProtocol}
	runner := &c.Template.Runners[0]
	c.target.Template = func() *corev1.PodTemplateSpec { return &runner.Template }
	c.known[c.target.Name] = c.target
	if resolved.Create != nil && c.Replica != nil && !c.foreign && c.unreadable == nil && c.Replica.DeletionTimestamp == nil {
		c.out.CreateRevisions = append(c.out.CreateRevisions, resolved.Create)
	}
}

// stored is a revision that the cluster keeps; its template is read only when a
// pod of it must be built.
func stored(cr *appsv1.ControllerRevision) instance.Revision {
	return instance.Revision{
		Name: cr.Name, Hash: revision.HashOf(cr), Token: cr.Annotations[v1beta1.PairingProtocolLabel],
		Template: func() *corev1.PodTemplateSpec {
			payload, err := revision.Data(cr)
			if err != nil || payload.Runner(v1beta1.RunnerDefault) == nil {
				return nil
			}
			return &payload.Runner(v1beta1.RunnerDefault).Template
		},
	}
}

// count is the number of Instances the replica should have after this pass.
func (c *component) count() int32 {
	if c.Replica == nil {
		return c.projectedCount()
	}
	if c.Replica.DeletionTimestamp != nil || !c.Declared {
		return 0
	}
	return max(1, c.projectedCount())
}

// projectedCount is spec.replicas as it should be stored. The count belongs to
// whoever the autoscaler class names; ours are the birth of the replica, class
// None, and a count of zero.
func (c *component) projectedCount() int32 {
	if c.Template == nil {
		if c.Replica == nil {
			return 0
		}
		return valueOr(c.Replica.Spec.Replicas, 0)
	}
	low := max(1, c.Template.MinReplicas)
	if c.Replica == nil {
		return low
	}
	now := valueOr(c.Replica.Spec.Replicas, 0)
	if a := c.Template.Autoscaler; now < 1 || (a != nil && a.Class == v1beta1.AutoscalerNone) {
		return low
	}
	return now
}

// live is true for a component whose Instances this pass decides. The replica of an
// earlier service of the name is one of them while it goes: somebody must drain it.
func (c *component) live() bool {
	return c.Replica != nil && c.unreadable == nil && (!c.foreign || c.Replica.DeletionTimestamp != nil)
}

// member is what the rollout knows of the component before its Instances are decided.
func (c *component) member() rollout.Member {
	m := rollout.Member{Component: c.Type, Target: c.aim.Hash, Spec: c.target.Hash, Held: c.held, Settled: true, Unreadable: c.unreadable != nil, Has: c.hasRevision}
	if m.Unreadable {
		return m
	}
	if c.Replica == nil {
		m.Settled = false
		return m
	}
	m.Stable = c.known[c.Replica.Status.CurrentRevision].Hash
	m.Desired, m.Base, m.Strategy, m.Token = c.desired, c.base(), c.strategy(), c.aim.Token
	var standing int32
	for i := range c.rows {
		row := &c.rows[i]
		if row.Phase == v1beta1.InstanceDeleting {
			continue
		}
		standing++
		m.Failed = m.Failed || row.Phase == v1beta1.InstanceFailed
		if row.RunningRevision == c.aim.Name && row.Phase == v1beta1.InstanceReady && row.ServingPodCount > 0 {
			m.UpdatedReady++
		}
		if row.Phase != v1beta1.InstanceReady || row.Operation != nil || row.RunningRevision != c.aim.Name {
			m.Settled = false
		}
		toward := row.RunningRevision
		if row.Operation != nil && row.Operation.TargetRevision != "" {
			toward = row.Operation.TargetRevision
		}
		if (row.RunningRevision != "" && row.RunningRevision != c.aim.Name) || (toward != "" && toward != c.aim.Name) {
			m.Behind = true
		}
	}
	m.Settled = m.Settled && standing >= c.desired && standing > 0
	return m
}

// instances decides the component's Instances under its permit.
func (c *component) instances(w *World, permit rollout.Permit, pause rollout.Pause, peers []v1beta1.ComponentType) {
	in := instance.Input{
		Now: w.Now, Seed: w.Seed,
		Namespace: w.Key.Namespace, Prefix: w.Key.Name, Component: c.Type,
		Owner:   *ownerReference(c.Replica, "InferenceReplica"),
		Desired: c.desired, Target: c.aim, Revisions: c.known,
		StartHold: permit.Hold,
		Paused:    pause != rollout.NotPaused, Frozen: pause == rollout.Freeze,
		Refusal: c.Refusal, RefusedPods: c.RefusedPods, Nodes: w.Nodes,
		MinReady:    time.Duration(c.minReadySeconds()) * time.Second,
		MaxOpen:     w.Settings.Lifecycle.MaxOpenOperations,
		CreateBatch: w.Settings.Lifecycle.ScaleUpPodBatchSize,
		DeleteBatch: w.Settings.Lifecycle.ScaleDownPodBatchSize,

		GraceSeconds: w.Settings.Deploy.TerminationGracePeriodSeconds,
		Rows:         c.rows, Pods: c.Pods, Routed: c.Routed, SkipDrain: w.SkipDrain,
	}
	c.policy(w, permit, &in)
	if in.StartHold == nil && c.TemplateError != nil {
		in.StartHold = &instance.Hold{Gate: v1beta1.GatePlan, Reason: c.TemplateError.Reason + ": " + c.TemplateError.Message}
	}
	if in.StartHold == nil && c.tooLarge() {
		in.StartHold = &instance.Hold{Gate: v1beta1.GateBudget, Reason: fmt.Sprintf(
			"the status of %d Instances is over %d bytes and must not grow; fewer replicas, or omenativeStatus.instanceStatusEncoding: ColumnarV2, make room",
			len(c.rows), statusLimit)}
	}
	if w.Service != nil && w.Service.Spec.Rollout != nil && len(w.Service.Spec.Rollout.Groups) > 0 {
		for _, peer := range peers {
			if peer != c.Type {
				in.Env = append(in.Env, corev1.EnvVar{
					Name:  v1beta1.EnvPeerPrefix + strings.ToUpper(string(peer)) + v1beta1.EnvEndpointSuffix,
					Value: v1beta1.ReplicaName(w.Key.Name, peer) + "." + w.Key.Namespace + ".svc.cluster.local",
				})
			}
		}
	}
	c.result = instance.Decide(in)
	if lost := c.lostStable(); lost != nil && !c.result.Settled {
		c.result.Hold = lost // nothing can be built, so nothing else is in the way
	}
	c.out.Pods = c.result.Pods
	c.out.RemoveReplicaAnnotations = c.result.Consumed
}

// statusLimit is the size of stored rows above which nothing new is opened: etcd
// refuses objects of about one and a half times that.
const statusLimit = 1 << 20

// tooLarge looks at the size only where it can be reached.
func (c *component) tooLarge() bool {
	if len(c.rows) < 2000 {
		return false
	}
	st := &c.Replica.Status
	over, err := rows.Encoded{Encoding: rows.EncodingOf(st), Rows: st.InstanceStatuses, Columns: st.InstanceStatusColumns}.Over(statusLimit)
	return err == nil && over
}

func (c *component) lifecycle() *v1beta1.LifecycleSpec {
	if c.Template != nil {
		return &c.Template.Lifecycle
	}
	if c.Replica != nil {
		return c.Replica.Spec.Lifecycle
	}
	return nil
}

func (c *component) minReadySeconds() int32 {
	if c.Template != nil {
		return c.Template.MinReadySeconds
	}
	return c.Replica.Spec.MinReadySeconds
}
