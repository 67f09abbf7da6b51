// Package addr maps the addresses pods are recorded with to the addresses they listen on.
//
// Kubernetes refuses loopback addresses in EndpointSlices, and the lab may listen nowhere else.
// So a pod is recorded in 198.18.0.0/15, the range set aside for benchmarks, and listens on the
// loopback address with the same last 17 bits: 198.18.a.b is 127.18.a.b, 198.19.a.b is 127.19.a.b.
// Ports are the pod's own. Every client in the lab dials through Dial, which applies the mapping.
package addr
