package view

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/validate"
)

// drawValidate draws a service as a stored one and as one from a file.
func drawValidate(t *testing.T, s *v1beta1.InferenceService) string {
	return "== stored ==\n" + drawReport(t, BuildRolloutValidate(s, now), RolloutValidateTable, RolloutValidateWide) +
		"== file ==\n" + drawReport(t, BuildFileValidate(s, nil, now), RolloutValidateTable, RolloutValidateWide)
}

func TestRolloutValidateGolden(t *testing.T) { goldenServices(t, "validate", drawValidate) }

// TestFilesSayWhatAdmissionSays: every refusal and warning of admission, in its words,
// and each of them under a check that is Invalid for it.
func TestFilesSayWhatAdmissionSays(t *testing.T) {
	goldenServices(t, "validate", func(t *testing.T, s *v1beta1.InferenceService) string {
		want := validate.InferenceService(s, nil, asAdmitted)
		got := BuildFileValidate(s, nil, now).Content
		texts := func(list []ValidateProblem) []string {
			out := []string{}
			for _, p := range list {
				if p.Check != checkResolve {
					out = append(out, p.Text)
				}
			}
			return out
		}
		refused := []string{}
		for _, p := range want.Errors {
			refused = append(refused, p.String())
		}
		if diff := cmp.Diff(refused, texts(got.Problems)); diff != "" {
			t.Errorf("refusals (-admission +file):\n%s", diff)
		}
		if diff := cmp.Diff(append([]string{}, want.WarningTexts()...), texts(got.Advice)); diff != "" {
			t.Errorf("warnings (-admission +file):\n%s", diff)
		}
		for _, p := range got.Problems {
			if !slices.ContainsFunc(got.Checks, func(c ValidateCheck) bool {
				return c.Check == p.Check && c.Component == p.Component && c.Result == ResultInvalid
			}) {
				t.Errorf("no check is Invalid for %q", p.Text)
			}
		}
		if (len(got.Problems) > 0) != (got.Overall == ResultInvalid) {
			t.Errorf("overall %s with %d problems", got.Overall, len(got.Problems))
		}
		return drawValidate(t, s)
	})
}

// TestChecksOfFields: which check a field belongs to.
func TestChecksOfFields(t *testing.T) {
	for field, want := range map[string]string{
		"spec.rollout.groups[0].policyRef":                    checkRefs,
		"spec.rollout.groups[0].rollingUpdate.maxSurge":       checkPlan,
		"spec.rollout.groups[0].components[1]":                checkPlan,
		"spec.rollout.groupOrdering":                          checkOrder,
		"spec.rollout.groups[1].order":                        checkOrder,
		"spec.traffic":                                        checkTrafficSpec,
		"spec.trafficlight":                                   checkAdmission,
		"metadata.annotations[ome.io/traffic-drain]":          checkTrafficSpec,
		"spec.scalingPolicy.mode":                             checkScalingPolicy,
		"metadata.annotations[ome.io/autoscalerClass]":        checkAutoscalerSpec,
		"spec.engine.minReplicas":                             checkAutoscalerSpec + " engine",
		"spec.router.autoscaler.hpa.metrics[0]":               checkAutoscalerSpec + " router",
		"spec.decoder.autoscalerPolicyRef":                    checkAutoscalerSpec + " decoder",
		"spec.decoder.lifecycle.updateStrategy.rollingUpdate": checkPlan,
		"spec.decoder.leader":                                 checkAdmission,
		"metadata.name":                                       checkAdmission,
		"":                                                    checkAdmission,
	} {
		check, c := checkOf(field)
		if got := strings.TrimSpace(check + " " + c); got != want {
			t.Errorf("%q: %s, want %s", field, got, want)
		}
	}
}

// TestResolveRestsOnTheStamp: a plan is only Valid when the controller's word is about
// the newest spec; nothing that it says makes the row Invalid.
func TestResolveRestsOnTheStamp(t *testing.T) {
	for name, c := range map[string]struct {
		status, reason string
		stamp          int64
		want           string
	}{
		"pinned":         {"True", v1beta1.ReasonPinned, 2, "Valid Reported/Current"},
		"no run":         {"True", v1beta1.ReasonNoActiveRun, 2, "Valid Reported/Current"},
		"behind":         {"True", v1beta1.ReasonPinned, 1, "Unverifiable Reported/Stale"},
		"unstamped":      {"True", v1beta1.ReasonPinned, 0, "Unverifiable Reported/Unverifiable"},
		"parked":         {"False", v1beta1.ReasonPlanInvalid, 2, "Unverifiable Reported/Current PlanInvalid"},
		"strange reason": {"True", "Surprise", 2, "Unverifiable Reported/Current PlanConditionMalformed"},
		"absent":         {"", "", 2, "Unverifiable Unavailable/Unverifiable PlanConditionMissing"},
	} {
		s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "chat", Generation: 2}}
		s.Spec.Rollout = &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{{Components: []v1beta1.ComponentType{"engine"}}}}
		s.Status.Rollout = &v1beta1.RolloutStatus{ObservedGeneration: c.stamp}
		if c.status != "" {
			cond := v1beta1.DuckCondition{Type: v1beta1.ConditionRolloutPlanReady, Reason: c.reason}
			cond.Status = "True"
			if c.status == "False" {
				cond.Status = "False"
			}
			s.Status.Conditions = []v1beta1.DuckCondition{cond}
		}
		for _, check := range BuildRolloutValidate(s, now).Content.Checks {
			if check.Check != checkResolve {
				continue
			}
			got := strings.TrimSpace(check.Result + " " + check.Evidence + "/" + check.Freshness + " " + joined(check.Codes))
			if got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		}
	}
}

// TestUnknownFieldsAreInvalid: a field that the API doesn't have is refused as at admission.
func TestUnknownFieldsAreInvalid(t *testing.T) {
	s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: "chat"}}
	typos := []string{`unknown field "spec.enigne"`}
	got := BuildFileValidate(s, typos, now).Content
	if got.Overall != ResultInvalid || got.Problems[0].Text != validate.UnknownFields(typos) || got.Problems[0].Check != checkAdmission {
		t.Errorf("%+v", got)
	}
}

// TestValidateCantTouchTheScreen: text of a file is made harmless in every form.
func TestValidateCantTouchTheScreen(t *testing.T) {
	evil := "x\x1b[2J\u202e\npassword=hunter2hunter2"
	s := &v1beta1.InferenceService{ObjectMeta: metav1.ObjectMeta{Name: evil, Namespace: evil, Annotations: map[string]string{evil: evil, v1beta1.RolloutPausedAnnotation: evil}}}
	s.Spec.DeploymentMode = v1beta1.DeploymentMode(evil)
	s.Spec.Engine = &v1beta1.EngineSpec{}
	s.Spec.Rollout = &v1beta1.RolloutSpec{Groups: []v1beta1.RolloutGroup{{Components: []v1beta1.ComponentType{v1beta1.ComponentType(evil)}, PolicyRef: &v1beta1.RolloutPolicyRef{Name: evil}}}}
	s.Status.Conditions = []v1beta1.DuckCondition{{Type: v1beta1.ConditionRolloutPlanReady, Status: "False", Reason: evil, Message: evil}}
	text := drawValidate(t, s)
	for _, r := range text {
		if r != '\n' && !unicode.IsGraphic(r) {
			t.Fatalf("%q gets out:\n%q", r, text)
		}
	}
	if strings.Contains(text, "hunter2") {
		t.Error("shows a password:\n" + text)
	}
}
