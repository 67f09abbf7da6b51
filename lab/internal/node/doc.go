// Package node simulates a cluster's nodes: it registers them, heartbeats their leases, and runs
// the pods bound to them without running any container.
//
// One goroutine owns all pods. Informer events, timers, answers of the API server and exits of
// stub servers reach it as closures through one queue; it feeds them to a state machine per pod
// (machine.go, container.go), which says what the pod's status should be and when to look again.
// The state machine knows nothing of clients or clocks, so its tests step it by hand. API writes
// run in a bounded pool, at most one in flight per pod.
//
// A pod costs a goroutine only while it listens.
package node
