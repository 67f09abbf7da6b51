package guarded

import (
	"strings"
	"testing"

	"ome.io/ome/api/v1beta1"
)

// The promises of docs/contract.md that the actions keep.
func TestContractCanaryGroups(t *testing.T) {
	group := func(c ...v1beta1.ComponentType) v1beta1.RunGroup {
		return v1beta1.RunGroup{Group: v1beta1.RolloutGroup{Components: c, Canary: &v1beta1.GroupCanary{}}}
	}
	ev := func(groups ...v1beta1.RunGroup) *Evidence {
		s := &v1beta1.InferenceService{}
		s.Status.Rollout = &v1beta1.RolloutStatus{ActiveRun: &v1beta1.RolloutRun{RunID: "chat-1", Plan: v1beta1.RolloutPlan{Groups: groups}}}
		return &Evidence{Name: "chat", Namespace: "prod", Service: s}
	}
	both := ev(group(v1beta1.EngineComponent, v1beta1.DecoderComponent), group(v1beta1.RouterComponent))
	t.Run("a request to one of two canary groups is refused", func(t *testing.T) {
		err := canaryPick(AnyGroup).refuseContradiction(both)
		if err == nil || err.Message != MsgStale || len(err.Details) == 0 || !strings.Contains(err.Details[0], "several canary groups: 0 (engine,decoder) and 1 (router)") {
			t.Errorf("%+v", err)
		}
	})
}
