// Package metrics declares every metric of the manager in one place. They are
// registered with controller-runtime's registry, so that one endpoint serves
// all of them.
package metrics
