// Package render turns a service, its runtime and its model into what an
// InferenceReplica needs: the pod template of each runner and the policies in
// force. It also picks the runtime and the model, and resolves the mode of a
// component.
//
// Everything here is pure: the same input gives the same bytes, and no input is
// written to. A template holds only what belongs to the component's revision.
// What an Instance gets when its pod is made (engine labels, the readiness gate,
// the engine's environment, operator defaults such as the grace period) is
// stamped by the instance core, so that none of it can start a rollout.
package render
