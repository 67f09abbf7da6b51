// Package sim is a cluster that exists only in memory. It feeds package core with
// worlds, applies its decisions the way the controller does, and plays kubelet,
// endpoints controller and user in between, one small step at a time.
//
// It is as unkind as a real cluster may be: each kind of object is seen with its
// own lag (never older than our own last write of the kind), any subset of a
// pass's writes can be lost, pods fail, disappear and take their time. While it
// applies a decision it checks what no action may ever do, and keeps the first
// violation for the test that drives it.
package sim
