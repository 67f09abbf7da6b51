package core

import (
	"time"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/plan"
)

// parkedLook is how often a plan that waits for something outside its service is worked out anew.
// What it waits for is watched; this is for the case that a watch misses it.
const parkedLook = time.Minute

// sources are what the groups of the service may take from elsewhere.
func sources(w *World) plan.Sources {
	return plan.Sources{Policies: w.Policies, Bound: func(name string) bool {
		_, ok := w.Settings.MetricProviders[name]
		return ok
	}}
}

// lookAgain is when to look at a parked plan; zero when only an edit of the service helps.
func lookAgain(w *World, reason string) time.Time {
	switch reason {
	case v1beta1.ReasonPolicyNotFound, v1beta1.ReasonPolicyNotReady, v1beta1.ReasonProgressionMismatch, v1beta1.ReasonProviderUnbound:
		return w.Now.Add(parkedLook)
	}
	return time.Time{}
}
