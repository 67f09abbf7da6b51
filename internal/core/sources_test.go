package core

import (
	"testing"
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
)

// TestParkedPlansAreLookedAtAgain when something outside the service can mend them.
func TestParkedPlansAreLookedAtAgain(t *testing.T) {
	now := time.Date(2026, 9, 28, 14, 0, 0, 0, time.UTC)
	for reason, wakes := range map[string]bool{
		"": false, v1beta1.ReasonPlanInvalid: false,
		v1beta1.ReasonPolicyNotFound: true, v1beta1.ReasonPolicyNotReady: true, v1beta1.ReasonProgressionMismatch: true, v1beta1.ReasonProviderUnbound: true,
	} {
		if got := lookAgain(&World{Now: now}, reason); got.IsZero() == wakes || wakes && !got.Equal(now.Add(time.Minute)) {
			t.Errorf("%q: %v", reason, got)
		}
	}
}

// TestProvidersFailClosed: without any binding no provider is bound, which is not the same as nobody looking.
func TestProvidersFailClosed(t *testing.T) {
	w := &World{}
	if bound := sources(w).Bound; bound == nil || bound("main") {
		t.Error("a provider is bound by nobody")
	}
	w.Settings.MetricProviders = map[string]config.MetricProvider{"main": {ServerAddress: "http://p"}}
	if bound := sources(w).Bound; !bound("main") || bound("other") {
		t.Error("main is bound, and nothing else")
	}
}
