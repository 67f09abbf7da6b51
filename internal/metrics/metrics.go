package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"ome.io/ome/api/v1beta1"
)

// Results of a write.
const (
	ResultOK       = "ok"
	ResultConflict = "conflict"
	ResultRefused  = "refused"
	ResultUnknown  = "unknown"
	ResultError    = "error"
)

var (
	writes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_writes_total",
		Help: "Writes sent to the API server, by what was written, how and with which result.",
	}, []string{"kind", "verb", "result"})

	writeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "ome_write_duration_seconds",
		Help:    "Time from sending a write to its answer.",
		Buckets: []float64{.002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"kind"})

	conflicts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_write_conflicts_total",
		Help: "Writes that met a newer version of their object. They are decided again, not retried.",
	}, []string{"kind"})

	passes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_passes_total",
		Help: "Passes over one service, by how they ended: clean (nothing to write), wrote, conflict (decided again), failed (tried again after a growing delay), refused (the API server turned a pod down; it is asked again at the pace of a setting), or waited (a cache lags our own writes).",
	}, []string{"outcome"})

	passSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "ome_pass_duration_seconds",
		Help:    "Time of the stages of a pass.",
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30},
	}, []string{"stage"})

	inFlight = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ome_writes_in_flight",
		Help: "Writes that wait for their answer.",
	})

	heldStatus = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_status_writes_held_total",
		Help: "Status writes that moved only counters or times and were put off.",
	}, []string{"kind"})

	statusWrites = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_omenative_ir_status_writes_total",
		Help: "Status writes of InferenceReplicas by encoding and result.",
	}, []string{"encoding", "result"})

	statusBytes = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ome_omenative_ir_status_bytes",
		Help: "Size of the last status written to an InferenceReplica.",
	}, []string{"namespace", "name", "component", "encoding"})

	statusConversions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_omenative_ir_status_conversions_total",
		Help: "Status writes that changed the encoding of the Instance rows.",
	}, []string{"from", "to"})

	codecErrors = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_omenative_ir_status_codec_errors_total",
		Help: "Passes that met Instance rows which could not be read or written, by reason.",
	}, []string{"reason"})

	nodeReads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ome_node_reads_total",
		Help: "Reads of the nodes of pods that are long overdue, by result: found, gone or error. There are none unless force deletion is configured.",
	}, []string{"result"})

	settingsProblems = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ome_settings_problems",
		Help: "Values of the settings ConfigMap that could not be used.",
	})
)

func init() {
	metrics.Registry.MustRegister(writes, writeSeconds, conflicts, passes, passSeconds, inFlight, heldStatus,
		statusWrites, statusBytes, statusConversions, codecErrors, nodeReads, settingsProblems)
}

// Write counts one write and its time.
func Write(kind, verb, result string, took time.Duration) {
	writes.WithLabelValues(kind, verb, result).Inc()
	writeSeconds.WithLabelValues(kind).Observe(took.Seconds())
	if result == ResultConflict {
		conflicts.WithLabelValues(kind).Inc()
	}
}

// InFlight moves the number of writes that wait for their answer.
func InFlight(by int) { inFlight.Add(float64(by)) }

// Pass counts one pass.
func Pass(outcome string) { passes.WithLabelValues(outcome).Inc() }

// Stage records the time of a stage of a pass.
func Stage(stage string, took time.Duration) {
	passSeconds.WithLabelValues(stage).Observe(took.Seconds())
}

// StatusHeld counts a status write that was put off.
func StatusHeld(kind string) { heldStatus.WithLabelValues(kind).Inc() }

// ReplicaStatusWrite counts a status write of a replica.
func ReplicaStatusWrite(encoding, result string) {
	statusWrites.WithLabelValues(encoding, result).Inc()
}

// ReplicaStatusBytes records the size of the status that was written. One
// encoding is reported at a time.
func ReplicaStatusBytes(namespace, name, component, encoding string, size int) {
	labels := prometheus.Labels{"namespace": namespace, "name": name, "component": component}
	for _, other := range []string{EncodingDense, EncodingColumnar} {
		if other != encoding {
			statusBytes.DeletePartialMatch(merge(labels, "encoding", other))
		}
	}
	statusBytes.WithLabelValues(namespace, name, component, encoding).Set(float64(size))
}

// ReplicaStatusConverted counts a change of encoding.
func ReplicaStatusConverted(from, to string) { statusConversions.WithLabelValues(from, to).Inc() }

// CodecError counts rows that could not be read or written.
func CodecError(reason string) { codecErrors.WithLabelValues(reason).Inc() }

// Results of reading a node.
const (
	NodeFound = "found"
	NodeGone  = "gone"
	NodeError = "error"
)

// NodeRead counts one read of a node.
func NodeRead(result string) { nodeReads.WithLabelValues(result).Inc() }

// SettingsProblems records how many settings are bad now.
func SettingsProblems(n int) { settingsProblems.Set(float64(n)) }

// Forget drops the series of a service that is gone.
func Forget(namespace, service string) {
	forgetRollout(namespace, service)
	for _, c := range v1beta1.Components() {
		statusBytes.DeletePartialMatch(prometheus.Labels{"namespace": namespace, "name": v1beta1.ReplicaName(service, c)})
	}
}

// Encodings as label values.
const (
	EncodingDense    = "dense_v1"
	EncodingColumnar = "columnar_v2"
)

// Encoding names the encoding of a status as a label value.
func Encoding(columnar bool) string {
	if columnar {
		return EncodingColumnar
	}
	return EncodingDense
}

func merge(in prometheus.Labels, key, value string) prometheus.Labels {
	out := prometheus.Labels{key: value}
	for k, v := range in {
		out[k] = v
	}
	return out
}
