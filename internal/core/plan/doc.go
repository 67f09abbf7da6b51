// Package plan turns the rollout groups of a service into the plan that a run
// pins: the kind of each group, the digest of its progression, the units that
// execute it, and the reason why a plan can't run.
//
// A digest covers the progression alone. Components, soak, ratio, pairing and
// where the progression came from are not in it, so equal progressions have
// equal digests wherever they are written. Controller and command line both
// call this package; neither works out a digest of its own.
package plan
