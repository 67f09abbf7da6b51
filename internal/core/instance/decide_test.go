package instance

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
)

var t0 = time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)

func rev(letter string) Revision {
	return Revision{Name: "svc-engine-" + letter, Hash: letter, Template: func() *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ome-container", Image: letter}}}}
	}}
}

// podAt describes a pod in a case: index, slot, revision, and how it is.
type podAt struct {
	index, slot int32
	rev         string
	// how: starting, started, serving, offered (serving, ready and routed), out
	// (out of rotation, still routed), drained, leaving, crashing, ended.
	how string
}

func (p podAt) build() (*corev1.Pod, bool) {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: PodName("svc", "engine", p.index, p.slot), Namespace: "ns",
		UID: types.UID(fmt.Sprintf("%d/%d/%s", p.index, p.slot, p.rev)),
		Labels: map[string]string{
			v1beta1.InstanceIndexLabel: fmt.Sprint(p.index), v1beta1.PodOrdinalLabel: fmt.Sprint(p.slot), v1beta1.RevisionHashLabel: p.rev,
		},
		OwnerReferences: []metav1.OwnerReference{{UID: "owner", Controller: &yes}},
	}}
	set := func(kind corev1.PodConditionType, ok bool) {
		status := corev1.ConditionFalse
		if ok {
			status = corev1.ConditionTrue
		}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(t0.Add(-time.Minute))})
	}
	routed := false
	switch p.how {
	case "starting":
	case "started":
		set(corev1.ContainersReady, true)
	case "serving":
		set(corev1.ContainersReady, true)
		set(v1beta1.ServingReadinessGate, true)
	case "offered", "leaving":
		set(corev1.ContainersReady, true)
		set(v1beta1.ServingReadinessGate, true)
		set(corev1.PodReady, true)
		routed = true
		if p.how == "leaving" {
			pod.DeletionTimestamp = &metav1.Time{Time: t0.Add(30 * time.Second)}
			routed = false
		}
	case "out", "drained":
		set(corev1.ContainersReady, true)
		set(v1beta1.ServingReadinessGate, false)
		set(corev1.PodReady, false)
		routed = p.how == "out"
	case "out but ready":
		set(corev1.ContainersReady, true)
		set(v1beta1.ServingReadinessGate, false)
		set(corev1.PodReady, true)
	case "crashing":
		set(corev1.ContainersReady, false)
		set(v1beta1.ServingReadinessGate, true)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	case "ended":
		pod.Status.Phase = corev1.PodFailed
	default:
		panic(p.how)
	}
	return pod, routed
}

func ready(index int32, running string, active int32) v1beta1.InstanceStatus {
	return v1beta1.InstanceStatus{Index: index, Phase: v1beta1.InstanceReady, Incarnation: 1, RunningRevision: "svc-engine-" + running, ActiveOrdinal: active}
}

func updating(index int32, running, target, step string) v1beta1.InstanceStatus {
	r := ready(index, running, 0)
	r.Phase, r.TargetRevision = v1beta1.InstanceUpdating, "svc-engine-"+target
	r.Operation = &v1beta1.InstanceOperation{ID: "op", Type: v1beta1.OperationUpdate, Step: step, TargetRevision: "svc-engine-" + target, Strategy: v1beta1.SurgeThenDrain}
	return r
}

func creating(index int32, target string) v1beta1.InstanceStatus {
	return v1beta1.InstanceStatus{Index: index, Phase: v1beta1.InstanceCreating, Incarnation: 1, TargetRevision: "svc-engine-" + target,
		Operation: &v1beta1.InstanceOperation{ID: "op", Type: v1beta1.OperationCreate, Step: v1beta1.StepCreatePods, TargetRevision: "svc-engine-" + target}}
}

// summary is a row in a word: index phase running[>target step][ slot].
func summary(r v1beta1.InstanceStatus) string {
	cut := func(s string) string {
		if s == "" {
			return "-"
		}
		return s[len("svc-engine-"):]
	}
	out := fmt.Sprintf("%d %s %s", r.Index, r.Phase, cut(r.RunningRevision))
	if r.Operation != nil {
		out += fmt.Sprintf(">%s %s", cut(r.Operation.TargetRevision), r.Operation.Step)
		if r.Operation.Waiting != "" {
			out += " waiting " + r.Operation.Waiting
		}
	}
	if r.ActiveOrdinal == 1 {
		out += " slot1"
	}
	return out
}

func TestDecide(t *testing.T) {
	budget := func(reason string) string { return "Budget: per-Component surge budget " + reason }
	cases := []struct {
		name     string
		desired  int32
		surge    int32
		target   string
		paused   bool
		hold     *Hold
		minReady time.Duration
		rows     []v1beta1.InstanceStatus
		pods     []podAt
		want     []string
		actions  []string
		wantHold string
	}{
		{
			name: "a new service creates every Instance at once", desired: 2, surge: 1, target: "a",
			want: []string{"0 Creating ->a CreatePods", "1 Creating ->a CreatePods"}, actions: []string{"Create 0/0 a", "Create 1/0 a"},
		},
		{
			name: "a paused service creates nothing", desired: 1, surge: 1, target: "a", paused: true,
		},
		{
			name: "a started pod enters rotation", desired: 1, surge: 1, target: "a",
			rows: []v1beta1.InstanceStatus{creating(0, "a")}, pods: []podAt{{0, 0, "a", "started"}},
			want: []string{"0 Creating ->a CreatePods"}, actions: []string{"Serve 0/0 a"},
		},
		{
			name: "an Instance is Ready once its pod can be reached", desired: 1, surge: 1, target: "a",
			rows: []v1beta1.InstanceStatus{creating(0, "a")}, pods: []podAt{{0, 0, "a", "offered"}},
			want: []string{"0 Ready a"},
		},
		{
			name: "the spec moves on while an Instance starts: it starts over", desired: 1, surge: 1, target: "b",
			rows: []v1beta1.InstanceStatus{creating(0, "a")}, pods: []podAt{{0, 0, "a", "starting"}},
			want: []string{"0 Creating ->b CreatePods"}, actions: []string{"Delete 0/0 a"},
		},
		{
			name: "one replica rolls: the new pod comes first", desired: 1, surge: 1, target: "b",
			rows: []v1beta1.InstanceStatus{ready(0, "a", 0)}, pods: []podAt{{0, 0, "a", "offered"}},
			want: []string{"0 Updating a>b Surge"}, actions: []string{"Create 0/1 b"},
		},
		{
			name: "the old pod stays until the new one is reached", desired: 1, surge: 1, target: "b",
			rows: []v1beta1.InstanceStatus{updating(0, "a", "b", v1beta1.StepSurge)}, pods: []podAt{{0, 0, "a", "offered"}, {0, 1, "b", "serving"}},
			want: []string{"0 Updating a>b Surge"},
		},
		{
			name: "then it leaves rotation", desired: 1, surge: 1, target: "b",
			rows: []v1beta1.InstanceStatus{updating(0, "a", "b", v1beta1.StepSurge)}, pods: []podAt{{0, 0, "a", "offered"}, {0, 1, "b", "offered"}},
			want: []string{"0 Updating a>b SurgeDrain"}, actions: []string{"Unserve 0/0 a"},
		},
		{
			name: "it is not deleted while something routes to it", desired: 1, surge: 1, target: "b",
			rows: []v1beta1.InstanceStatus{updating(0, "a", "b", v1beta1.StepSurgeDrain)}, pods: []podAt{{0, 0, "a", "out"}, {0, 1, "b", "offered"}},
			want: []string{"0 Updating a>b SurgeDrain"},
		},
		{
			name: "unrouted, it is deleted", desired: 1, surge: 1, target: "b",
			rows: []v1beta1.InstanceStatus{updating(0, "a", "b", v1beta1.StepSurgeDrain)}, pods: []podAt{{0, 0, "a", "drained"}, {0, 1, "b", "offered"}},
			want: []string{"0 Updating a>b SurgeDrain"}, actions: []string{"Delete 0/0 a"},
		},
		{
			name: "leaving, it is done", desired: 1, surge: 1, target: "b",
			rows: []v1beta1.InstanceStatus{updating(0, "a", "b", v1beta1.StepSurgeDrain)}, pods: []podAt{{0, 0, "a", "leaving"}, {0, 1, "b", "offered"}},
			want: []string{"0 Ready b slot1"},
		},
		{
			name: "the new pod dies during the drain: the old one serves again", desired: 1, surge: 1, target: "b",
			rows: []v1beta1.InstanceStatus{updating(0, "a", "b", v1beta1.StepSurgeDrain)}, pods: []podAt{{0, 0, "a", "out"}},
			want: []string{"0 Updating a>b Surge"}, actions: []string{"Create 0/1 b", "Serve 0/0 a"},
		},
		{
			name: "a revert gives the new pod up", desired: 1, surge: 1, target: "a",
			rows: []v1beta1.InstanceStatus{updating(0, "a", "b", v1beta1.StepSurge)}, pods: []podAt{{0, 0, "a", "offered"}, {0, 1, "b", "offered"}},
			want: []string{"0 Updating a>a SurgeDrain"}, actions: []string{"Unserve 0/1 b"},
		},
		{
			name: "a revert during the drain takes the old pod back", desired: 1, surge: 1, target: "a",
			rows: []v1beta1.InstanceStatus{updating(0, "a", "b", v1beta1.StepSurgeDrain)}, pods: []podAt{{0, 0, "a", "out"}, {0, 1, "b", "offered"}},
			want: []string{"0 Updating a>a Surge"}, actions: []string{"Serve 0/0 a"},
		},
		{
			name: "a third revision replaces one that never served", desired: 1, surge: 1, target: "c",
			rows: []v1beta1.InstanceStatus{updating(0, "a", "b", v1beta1.StepSurge)}, pods: []podAt{{0, 0, "a", "offered"}, {0, 1, "b", "starting"}},
			want: []string{"0 Updating a>c Surge"}, actions: []string{"Delete 0/1 b"},
		},
		{
			name: "the old pod is lost after the spec moved on: what serves stays, and the rest starts from there", desired: 1, surge: 1, target: "c",
			rows: []v1beta1.InstanceStatus{updating(0, "a", "c", v1beta1.StepSurge)}, pods: []podAt{{0, 0, "a", "leaving"}, {0, 1, "b", "offered"}},
			want: []string{"0 Ready b slot1"}, wantHold: budget("1 exhausted (would become 2); Terminating pod svc-engine-0-default-0 still counts against the surge budget until its deletion grace elapses"),
		},
		{
			name: "a pod that recovers before it was removed keeps its Instance", desired: 1, surge: 1, target: "a",
			rows: []v1beta1.InstanceStatus{updating(0, "a", "a", v1beta1.StepDrain)}, pods: []podAt{{0, 0, "a", "offered"}},
			want: []string{"0 Ready a"},
		},
		{
			name: "a pod that is out of rotation but still Ready is not deleted: a slice may yet list it", desired: 1, surge: 1, target: "b",
			rows: []v1beta1.InstanceStatus{updating(0, "a", "b", v1beta1.StepSurgeDrain)}, pods: []podAt{{0, 0, "a", "out but ready"}, {0, 1, "b", "offered"}},
			want: []string{"0 Updating a>b SurgeDrain"},
		},
		{
			name: "a pause keeps both pods", desired: 1, surge: 1, target: "b", paused: true,
			rows: []v1beta1.InstanceStatus{updating(0, "a", "b", v1beta1.StepSurge)}, pods: []podAt{{0, 0, "a", "offered"}, {0, 1, "b", "offered"}},
			want: []string{"0 Updating a>b Surge waiting Paused"},
		},
		{
			name: "a pause lets go what already left rotation", desired: 1, surge: 1, target: "b", paused: true,
			rows: []v1beta1.InstanceStatus{updating(0, "a", "b", v1beta1.StepSurgeDrain)}, pods: []podAt{{0, 0, "a", "drained"}, {0, 1, "b", "offered"}},
			want: []string{"0 Updating a>b SurgeDrain"}, actions: []string{"Delete 0/0 a"},
		},
		{
			name: "the budget holds the second Instance, highest index first", desired: 2, surge: 1, target: "b",
			rows: []v1beta1.InstanceStatus{ready(0, "a", 0), ready(1, "a", 0)}, pods: []podAt{{0, 0, "a", "offered"}, {1, 0, "a", "offered"}},
			want: []string{"0 Ready a", "1 Updating a>b Surge"}, actions: []string{"Create 1/1 b"},
			wantHold: budget("1 exhausted (would become 2)"),
		},
		{
			name: "a leaving pod keeps its slot through its grace", desired: 2, surge: 1, target: "b",
			rows: []v1beta1.InstanceStatus{ready(0, "a", 0), ready(1, "b", 1)}, pods: []podAt{{0, 0, "a", "offered"}, {1, 0, "a", "leaving"}, {1, 1, "b", "offered"}},
			want:     []string{"0 Ready a", "1 Ready b slot1"},
			wantHold: budget("1 exhausted (would become 2); Terminating pod svc-engine-1-default-0 still counts against the surge budget until its deletion grace elapses"),
		},
		{
			name: "a surge of zero moves nothing and says so", desired: 1, surge: 0, target: "b",
			rows: []v1beta1.InstanceStatus{ready(0, "a", 0)}, pods: []podAt{{0, 0, "a", "offered"}},
			want: []string{"0 Ready a"}, wantHold: budget("0 exhausted (would become 1); with lifecycle.updateStrategy.rollingUpdate.maxSurge: 0 the strategy SurgeThenDrain can move nothing: raise it to 1 or more, or use RecreatePod"),
		},
		{
			name: "a broken old pod goes first and costs no surge", desired: 2, surge: 1, target: "b",
			rows: []v1beta1.InstanceStatus{ready(0, "a", 0), ready(1, "a", 0)}, pods: []podAt{{0, 0, "a", "crashing"}, {1, 0, "a", "offered"}},
			want: []string{"0 Updating a>b Drain", "1 Updating a>b Surge"}, actions: []string{"Unserve 0/0 a", "Create 1/1 b"},
		},
		{
			name: "a gate holds every start", desired: 1, surge: 1, target: "b", hold: &Hold{Gate: v1beta1.GatePlan, Reason: "waiting for the rollout plan"},
			rows: []v1beta1.InstanceStatus{ready(0, "a", 0)}, pods: []podAt{{0, 0, "a", "offered"}},
			want: []string{"0 Ready a"}, wantHold: "Plan: waiting for the rollout plan",
		},
		{
			name: "a lost pod is built again at the revision that runs while a gate holds", desired: 1, surge: 1, target: "b", hold: &Hold{Gate: v1beta1.GatePlan, Reason: "r"},
			rows: []v1beta1.InstanceStatus{ready(0, "a", 0)},
			want: []string{"0 Creating a>a CreatePods"}, actions: []string{"Create 0/0 a"},
		},
		{
			name: "a pod whose containers ended is replaced", desired: 1, surge: 1, target: "a",
			rows: []v1beta1.InstanceStatus{ready(0, "a", 0)}, pods: []podAt{{0, 0, "a", "ended"}},
			want: []string{"0 Creating a>a CreatePods"}, actions: []string{"Delete 0/0 a"},
		},
		{
			name: "scale-down keeps Ready Instances and drains the rest", desired: 1, surge: 1, target: "a",
			rows: []v1beta1.InstanceStatus{creating(0, "a"), ready(1, "a", 0), ready(2, "a", 0)},
			pods: []podAt{{0, 0, "a", "starting"}, {1, 0, "a", "offered"}, {2, 0, "a", "offered"}},
			want: []string{"0 Deleting ->- Drain", "1 Ready a", "2 Deleting a>- Drain"}, actions: []string{"Delete 0/0 a", "Unserve 2/0 a"},
		},
		{
			name: "a row goes with its last pod", desired: 1, surge: 1, target: "a",
			rows: []v1beta1.InstanceStatus{ready(0, "a", 0), {Index: 1, Phase: v1beta1.InstanceDeleting, Operation: &v1beta1.InstanceOperation{ID: "op", Type: v1beta1.OperationDelete, Step: v1beta1.StepDrain}}},
			pods: []podAt{{0, 0, "a", "offered"}}, want: []string{"0 Ready a"},
		},
		{
			name: "a pod that no row accounts for is removed under an operation", desired: 1, surge: 1, target: "a",
			rows: []v1beta1.InstanceStatus{ready(0, "a", 0)}, pods: []podAt{{0, 0, "a", "offered"}, {7, 0, "a", "offered"}},
			want: []string{"0 Ready a", "7 Deleting ->- Drain"}, actions: []string{"Unserve 7/0 a"},
		},
		{
			name: "an extra pod of an Instance at rest leaves", desired: 1, surge: 1, target: "a",
			rows: []v1beta1.InstanceStatus{ready(0, "a", 0)}, pods: []podAt{{0, 0, "a", "offered"}, {0, 1, "z", "starting"}},
			want: []string{"0 Updating a>a SurgeDrain"}, actions: []string{"Delete 0/1 z"},
		},
		{
			name: "minReadySeconds delays the drain, and the wake time says when it ends", desired: 1, surge: 1, target: "b", minReady: 2 * time.Minute,
			rows: []v1beta1.InstanceStatus{updating(0, "a", "b", v1beta1.StepSurge)}, pods: []podAt{{0, 0, "a", "offered"}, {0, 1, "b", "offered"}},
			want: []string{"0 Updating a>b Surge"},
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			in := Input{
				Now: t0, Seed: "s", Namespace: "ns", Prefix: "svc", Component: "engine", Owner: metav1.OwnerReference{UID: "owner"},
				Desired: tc.desired, Target: rev(tc.target), MaxSurge: tc.surge, StartHold: tc.hold, Paused: tc.paused, MinReady: tc.minReady,
				Rows: tc.rows, Routed: map[types.UID]bool{},
				Revisions: map[string]Revision{"svc-engine-a": rev("a"), "svc-engine-b": rev("b"), "svc-engine-c": rev("c")},
			}
			for _, p := range tc.pods {
				obj, routed := p.build()
				in.Pods = append(in.Pods, obj)
				in.Routed[obj.UID] = routed
			}
			got := Decide(in)
			var rows, actions []string
			for _, r := range got.Rows {
				rows = append(rows, summary(r))
			}
			for _, a := range got.Pods {
				actions = append(actions, fmt.Sprintf("%s %s/%s %s", a.Verb, a.Pod.Labels[v1beta1.InstanceIndexLabel],
					a.Pod.Labels[v1beta1.PodOrdinalLabel], a.Pod.Labels[v1beta1.RevisionHashLabel]))
			}
			if diff := cmp.Diff(tc.want, rows); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.actions, actions); diff != "" {
				t.Errorf("pod calls (-want +got):\n%s", diff)
			}
			hold := ""
			if got.Hold != nil {
				hold = string(got.Hold.Gate) + ": " + got.Hold.Reason
			}
			if diff := cmp.Diff(tc.wantHold, hold); diff != "" {
				t.Errorf("hold (-want +got):\n%s", diff)
			}
			if tc.minReady > 0 && !got.Wake.Equal(t0.Add(tc.minReady-time.Minute)) {
				t.Errorf("wake at %v", got.Wake)
			}
		})
	}
}
