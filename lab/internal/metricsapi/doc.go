// Package metricsapi serves metrics.k8s.io for the simulated pods, behind the API server's
// aggregation layer as a metrics server does: what a HorizontalPodAutoscaler and `kubectl top` read.
package metricsapi
