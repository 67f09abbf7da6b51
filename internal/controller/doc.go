// Package controller is the impure shell around core: it takes one snapshot of
// everything about a service, has core decide, writes what was decided in the
// order that makes every crash harmless, and sleeps until something happens.
//
// It never judges. What it adds to core's decision is only about getting it
// written safely:
//
//   - a pass starts only from caches that have seen our own last writes (fence)
//   - writes carry the UID and resourceVersion they were decided from, and a
//     conflict is decided again, never forced
//   - a component's later writes need its earlier ones to have succeeded
//   - a status that moved nothing but counters waits a while (quiet)
//   - writes in flight are bounded, for one service and for all, status first
//
// Only the leader runs passes, and only the leader holds caches: they are filled
// after the election was won, so they hold all that an earlier leader wrote.
package controller
