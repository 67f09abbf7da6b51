package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The labels of what concerns one service, and one of its components.
var (
	ofService   = []string{"namespace", "isvc"}
	ofComponent = []string{"namespace", "isvc", "component"}
)

var (
	repins = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_rollout_repin_total",
		Help: "Requests to take the live plan into an open run, by outcome.",
	}, []string{"namespace", "outcome"})

	groupTransitions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_omenative_rollout_group_transition_total",
		Help: "Changes of phase of rollout groups that aren't canaries.",
	}, []string{"namespace", "isvc", "group", "to"})

	canaryStep = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ome_canary_current_step",
		Help: "Step of the canary, from zero; zero again once it is complete.",
	}, ofComponent)

	canaryWeight = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ome_canary_traffic_weight",
		Help: "Weight last recorded for the canary; zero once it is complete or rolled back.",
	}, ofComponent)

	canarySteps = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_canary_step_total",
		Help: "Steps that canaries advanced.",
	}, ofComponent)

	canariesComplete = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_canary_complete_total",
		Help: "Canaries that completed.",
	}, ofService)

	canaryRollbacks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_canary_rollback_total",
		Help: "Rollbacks of canaries by cause: analysis or manual.",
	}, append(ofComponent[:3:3], "cause"))

	canariesFailed = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_canary_failed_total",
		Help: "Canaries that parked, by reason.",
	}, append(ofComponent[:3:3], "reason"))

	canaryEvaluations = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_canary_analysis_evaluations_total",
		Help: "Judged samples of analyses by result: pass, fail or inconclusive.",
	}, append(ofComponent[:3:3], "result"))

	canaryMetricValue = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ome_canary_analysis_metric_value",
		Help: "Last value of a metric of an analysis, kept when a sample has none.",
	}, append(ofComponent[:3:3], "metric"))

	canaryFailedChecks = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ome_canary_analysis_failed_checks",
		Help: "Failing samples at the current step.",
	}, ofComponent)

	ofOneService = []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{groupTransitions, canaryStep, canaryWeight, canarySteps, canariesComplete, canaryRollbacks, canariesFailed,
		canaryEvaluations, canaryMetricValue, canaryFailedChecks}
)

func init() {
	metrics.Registry.MustRegister(repins, groupTransitions, canaryStep, canaryWeight, canarySteps, canariesComplete,
		canaryRollbacks, canariesFailed, canaryEvaluations, canaryMetricValue, canaryFailedChecks)
}

// Repin counts a request to pin the live plan, by outcome: applied or rejected.
func Repin(namespace, outcome string) { repins.WithLabelValues(namespace, outcome).Inc() }

// GroupTransition counts a group that came into another phase.
func GroupTransition(namespace, service, group, to string) {
	groupTransitions.WithLabelValues(namespace, service, group, to).Inc()
}

// CanaryAt records where a canary is.
func CanaryAt(namespace, service, component string, step, weight, failedChecks int32) {
	canaryStep.WithLabelValues(namespace, service, component).Set(float64(step))
	canaryWeight.WithLabelValues(namespace, service, component).Set(float64(weight))
	canaryFailedChecks.WithLabelValues(namespace, service, component).Set(float64(failedChecks))
}

// CanaryStepped counts a step.
func CanaryStepped(namespace, service, component string) {
	canarySteps.WithLabelValues(namespace, service, component).Inc()
}

// CanaryCompleted counts a canary that reached its end.
func CanaryCompleted(namespace, service string) {
	canariesComplete.WithLabelValues(namespace, service).Inc()
}

// CanaryRolledBack counts the start of a rollback by its cause.
func CanaryRolledBack(namespace, service, component, cause string) {
	canaryRollbacks.WithLabelValues(namespace, service, component, cause).Inc()
}

// CanaryFailed counts a canary that parked.
func CanaryFailed(namespace, service, component, reason string) {
	canariesFailed.WithLabelValues(namespace, service, component, reason).Inc()
}

// CanaryEvaluated counts a judged sample.
func CanaryEvaluated(namespace, service, component, result string) {
	canaryEvaluations.WithLabelValues(namespace, service, component, result).Inc()
}

// CanaryMetric records what a metric came to.
func CanaryMetric(namespace, service, component, metric string, value float64) {
	canaryMetricValue.WithLabelValues(namespace, service, component, metric).Set(value)
}

func forgetRollout(namespace, service string) {
	for _, v := range ofOneService {
		v.DeletePartialMatch(prometheus.Labels{"namespace": namespace, "isvc": service})
	}
}
