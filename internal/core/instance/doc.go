// Package instance decides about the Instances of one component: which rows
// exist, which operation each carries, and which pod calls those operations
// authorize.
//
// An Instance is a row in the replica's status with an index for life. In this
// package an Instance has one pod. The pod's name ends in one of two slots, 0 and
// 1; the row's activeOrdinal says which slot serves. An update brings a new pod
// up in the other slot and drains the old one only when the new one serves:
//
//	Surge       bring up the pod of the slot to keep, at the operation's target
//	SurgeDrain  take the other pod out of rotation, wait until nothing routes to
//	            it, delete it
//
// The slot to keep follows from the operation: when its target is the revision
// the row already runs (a revert, or the removal of a stray pod) it is the active
// slot, else the other one. If the kept pod stops serving before the other one
// was deleted, the operation goes back to Surge and the other pod back into
// rotation.
//
// Every operation is in the rows this package returns before any pod call made
// for it, and every step is recognized from pods by their labels, so a pass that
// was cut short is taken up by the next one.
package instance
