package view

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
)

// goldenServices draws each service of a folder and compares with the text beside it.
func goldenServices(t *testing.T, folder string, draw func(*testing.T, *v1beta1.InferenceService) string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no services in testdata/%s: %v", folder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var s v1beta1.InferenceService
			if err := yaml.UnmarshalStrict(raw, &s); err != nil {
				t.Fatal(err)
			}
			before := s.DeepCopy()
			got := draw(t, &s)
			if diff := cmp.Diff(before, &s); diff != "" {
				t.Errorf("the report wrote to its input:\n%s", diff)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// drawReport draws a report in every form.
func drawReport[T any](t *testing.T, r *Report[T], table, wide func(*Report[T]) *Table) string {
	t.Helper()
	var b strings.Builder
	for _, part := range []struct {
		title string
		draw  func(*Report[T]) *Table
		width int
	}{{"table", table, 0}, {"table on 80 columns", table, 80}, {"wide", wide, 0}} {
		b.WriteString("-- " + part.title + " --\n")
		if err := part.draw(r).Write(&b, part.width); err != nil {
			t.Fatal(err)
		}
	}
	j, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	b.WriteString("-- report --\n" + string(j) + "\n")
	return b.String()
}

func drawExplain(t *testing.T, s *v1beta1.InferenceService) string {
	r := BuildRolloutExplain(s, now)
	return "-- answer --\n" + RolloutExplainText(r, now, 80) + drawReport(t, r, RolloutExplainTable, RolloutExplainWide)
}

func TestRolloutExplainGolden(t *testing.T) { goldenServices(t, "explain", drawExplain) }

// held is a service in a run whose engine waits at a gate.
func held(gate v1beta1.RolloutHoldGate, group v1beta1.RolloutGroup) *v1beta1.InferenceService {
	s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "chat", Namespace: "prod", UID: "u", Generation: 2}}
	s.Spec.Engine = &v1beta1.EngineSpec{}
	s.Spec.Decoder = &v1beta1.DecoderSpec{}
	s.Spec.Rollout = &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{group}}
	s.Status.Rollout = &v1beta1.RolloutStatus{ObservedGeneration: 2, ActiveRun: &v1beta1.RolloutRun{RunID: "chat-1",
		Plan: v1beta1.RolloutPlan{Groups: []v1beta1.RunGroup{{Source: v1beta1.SourceInline, PortableDigest: "rp1:0", Group: group}}}}}
	s.Status.Components = map[v1beta1.ComponentType]v1beta1.ComponentStatus{"engine": {Lifecycle: &v1beta1.LifecycleStatus{
		CurrentRevision: "chat-engine-aaaaaaaa", UpdateRevision: "chat-engine-bbbbbbbb",
		RolloutHold: &v1beta1.RolloutHold{Gate: gate, Reason: "because", Target: "chat-engine-bbbbbbbb", Since: metav1.NewTime(now)},
	}}}
	return s
}

// TestEveryHoldHasAWayOut: each gate names what ends it, an unknown gate too, and the
// fields that it names are those of the group.
func TestEveryHoldHasAWayOut(t *testing.T) {
	both := []v1beta1.ComponentType{"engine", "decoder"}
	blueGreen := v1beta1.RolloutGroup{Components: both, BlueGreen: &v1beta1.GroupBlueGreen{}}
	rolling := v1beta1.RolloutGroup{Components: both, RollingUpdate: &v1beta1.GroupRollingUpdate{}}
	for _, c := range []struct {
		gate  v1beta1.RolloutHoldGate
		group v1beta1.RolloutGroup
		want  string
	}{
		{v1beta1.GatePairing, blueGreen, "kubectl ome instance list chat -n prod"},
		{v1beta1.GateRatio, blueGreen, "spec.rollout.groups[0].maintainRatio.tolerance, which counts from the next run on"},
		{v1beta1.GateSequential, blueGreen, "the components before it have finished"},
		{v1beta1.GateBudget, blueGreen, "spec.engine.lifecycle.updateStrategy.rollingUpdate"},
		{v1beta1.GateBudget, rolling, "spec.rollout.groups[0].rollingUpdate"},
		{v1beta1.GateRetryBlock, blueGreen, "kubectl ome instance retry-blocks chat -n prod --component=engine"},
		{v1beta1.GateHeld, blueGreen, "kubectl ome instance release-held chat -n prod --component=engine --revision=chat-engine-bbbbbbbb"},
		{v1beta1.GatePlan, blueGreen, "by itself"},
		{"Surprise", blueGreen, "doesn't know the gate"},
	} {
		holds := BuildRolloutExplain(held(c.gate, c.group), now).Content.Holds
		if len(holds) != 1 || !strings.Contains(withCommand(holds[0].WayOut, holds[0].Command), c.want) || holds[0].Evidence != EvidenceReported {
			t.Errorf("%s: %+v, want %q", c.gate, holds, c.want)
		}
	}
	s := held(v1beta1.GateBudget, blueGreen)
	s.Spec.Rollout, s.Status.Rollout.ActiveRun = nil, nil
	if holds := BuildRolloutExplain(s, now).Content.Holds; !strings.HasSuffix(holds[0].WayOut, "raise spec.engine.lifecycle.updateStrategy.rollingUpdate") {
		t.Errorf("a component in no group: %+v", holds)
	}
	s = held(v1beta1.GateBudget, blueGreen)
	s.Status.Components["engine"].Lifecycle.RolloutHold.Target = "chat-engine-cccccccc"
	if holds := BuildRolloutExplain(s, now).Content.Holds; holds[0].Evidence != EvidenceStale {
		t.Errorf("a hold on another target: %+v", holds)
	}
}

// TestDriftNamesTheDigest: an edit of a progression can be repinned to the digest that
// is printed; one of the shape can't, and says why.
func TestDriftNamesTheDigest(t *testing.T) {
	group := v1beta1.RolloutGroup{Components: []v1beta1.ComponentType{"engine"}, RollingUpdate: &v1beta1.GroupRollingUpdate{}}
	s := held(v1beta1.GateBudget, group)
	s.Status.Conditions = []v1beta1.DuckCondition{{Type: v1beta1.ConditionRolloutPlanDrift, Status: "True", Reason: v1beta1.ReasonSpecNewerThanRun}}
	c := BuildRolloutExplain(s, now).Content
	if !strings.HasPrefix(c.Live.Digest, "rp1:") || !strings.Contains(c.PlanDrift.WayOut, c.Live.Digest) || c.PlanDrift.Command != "kubectl ome rollout repin chat -n prod" {
		t.Errorf("way out %q, command %q, live digest %q", c.PlanDrift.WayOut, c.PlanDrift.Command, c.Live.Digest)
	}
	s.Spec.Rollout.Groups[0].Soak = &metav1.Duration{Duration: 1}
	if got := BuildRolloutExplain(s, now).Content.PlanDrift.WayOut; !strings.HasSuffix(got, "this one can't take it: groups[0] has another soak than the run pinned") {
		t.Errorf("another shape: %q", got)
	}
}

// TestExplainCantTouchTheScreen: text of the status is made harmless in every form.
func TestExplainCantTouchTheScreen(t *testing.T) {
	evil := "x\x1b[2J\u202e\npassword=hunter2hunter2"
	s := held(v1beta1.RolloutHoldGate(evil), v1beta1.RolloutGroup{Components: []v1beta1.ComponentType{v1beta1.ComponentType(evil), "engine"}, PolicyRef: &v1beta1.RolloutPolicyRef{Name: evil}})
	hold := s.Status.Components["engine"].Lifecycle.RolloutHold
	hold.Reason, hold.Target = evil, evil
	run := s.Status.Rollout.ActiveRun
	run.RunID, run.Plan.Groups[0].PortableDigest, run.Plan.Groups[0].Source = evil, evil, v1beta1.ProgressionSource(evil)
	run.TargetRevisions = []v1beta1.RunTarget{{Component: "engine", Revision: evil, StableRevision: evil}}
	s.Status.Rollout.ObservedPause = evil
	s.Status.RolloutCoordination = &v1beta1.RolloutCoordinationStatus{Groups: []v1beta1.CoordinationGroupStatus{{Name: "0", Phase: v1beta1.CoordinationFailed, CompositePhase: evil, Message: evil}}}
	s.Status.Conditions = []v1beta1.DuckCondition{{Type: v1beta1.ConditionRolloutPlanReady, Status: "False", Reason: v1beta1.ReasonPlanInvalid, Message: evil}}
	text := drawExplain(t, s)
	for _, r := range text {
		if r != '\n' && !unicode.IsGraphic(r) {
			t.Fatalf("%q gets out:\n%q", r, text)
		}
	}
	if strings.Contains(text, "hunter2") || !strings.Contains(text, redacted) {
		t.Error("shows a password:\n" + text)
	}
}
