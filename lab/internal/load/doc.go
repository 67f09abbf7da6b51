// Package load sends requests to a service of the lab and counts what became of them.
//
// The loop is open: requests leave on a fixed schedule, whether or not earlier ones were answered,
// and latency counts from the scheduled time, so a stalled server can't hide its own stall. It
// stands for several client nodes; each routes by its own late view of the front Service's
// EndpointSlices, keeps its connections alive, and never sends a request twice.
package load
