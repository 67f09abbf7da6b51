// Package rollout decides how the components of a service move together: when a
// rollout run opens, which plan it pins, who may move, and when it closes.
//
// Decide runs before the Instances are decided and returns a permit for each
// component. Coordinate runs after, and words what the Instances just did as the
// status of each group, so that a status never says more than the same pass knows.
package rollout
