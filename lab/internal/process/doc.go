// Package process starts the lab's children so that none outlives the supervisor, and tells a live process of ours
// from a stranger that was given the same pid later.
package process
