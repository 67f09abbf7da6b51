// Package core decides. Decide takes everything that is known about one
// InferenceService (the World) and returns everything that should happen next
// (the Decision). It has no client, no clock, no goroutine and no logger, and it
// never writes to its input, so that a whole rollout can be replayed in a loop,
// in a property test, or on a laptop before anything is applied.
//
// Order inside a decision:
//
//  1. components: names, template, revision of each, in the order engine, decoder, router
//  2. rows of each replica decoded; a replica whose rows cannot be read is left alone
//  3. the rollout run: open, keep, supersede or close (package rollout)
//  4. permits: what each component may start now, and why not (package rollout)
//  5. instances: operations, rows and pod actions of each component (package instance)
//  6. status of each replica, then of the service, as functions of the rows just decided
//  7. Services, revision retention, mailboxes, events, and the time to look again
//
// Writes are committed in the order the Decision documents. Whatever subset of
// them reaches the API server, the next pass decides from what is there.
package core
