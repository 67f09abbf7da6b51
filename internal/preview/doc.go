// Package preview says what the manager would do with a changed service: it starts the
// simulated cluster of package sim where the real one stands, applies the new spec, and
// lets the very decisions of package core run to rest under a clock of its own.
//
// What a real cluster may bring besides is assumed away, and the assumptions are part of
// the answer: every pod comes up after the same time and none fails, nodes have room,
// counts that an autoscaler owns stay, and nobody edits anything meanwhile.
//
// The package is pure. Reading, admission and rendering are its callers' work.
package preview
