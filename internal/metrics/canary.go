package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	samplerInFlight = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ome_canary_sampler_inflight",
		Help: "Samples of canary analyses that are being taken.",
	})

	samplerQueue = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ome_canary_sampler_queue_depth",
		Help: "Samples of canary analyses that wait for a slot of canaryAnalysis.maxConcurrency.",
	})

	samplerStarved = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ome_canary_sampler_starved_total",
		Help: "Samples of canary analyses that had to wait for a slot. They are late, and no analysis fails for it.",
	})
)

func init() { metrics.Registry.MustRegister(samplerInFlight, samplerQueue, samplerStarved) }

// Sampler reports what the pool of samples does.
type Sampler struct{}

// InFlight sets the number of samples that are being taken.
func (Sampler) InFlight(n int) { samplerInFlight.Set(float64(n)) }

// Queued sets the number of samples that wait.
func (Sampler) Queued(n int) { samplerQueue.Set(float64(n)) }

// Starved counts a sample that had to wait.
func (Sampler) Starved() { samplerStarved.Inc() }
