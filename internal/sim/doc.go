// Package sim is a cluster that exists only in memory. It feeds package core with
// worlds, applies its decisions the way the controller does, and plays kubelet,
// endpoints controller and user in between, one small step at a time.
//
// It is as unkind as a real cluster may be: each kind of object is seen with its
// own lag (never older than our own last write of the kind), any subset of a
// pass's writes can be lost, pods fail, disappear and take their time, nodes fill
// up, die and come back, quotas and webhooks turn pods down, images can't be pulled
// and clocks jump. Statuses come back as the API server stores them, in whole
// seconds. While it applies a decision it checks what no action may ever do, keeps a
// book of what spans many passes (surge slots, attempts and their clocks, releases),
// and hands the first violation to the test that drives it.
//
// A Coverage counts what met which Instances: phase, event and strategy.
package sim
