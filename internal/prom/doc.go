// Package prom takes the samples that the analysis of canaries asks for.
//
// A Pool runs them off the reconcile loop: at most so many at one time in the
// whole fleet, the namespaces in turn, one per canary. Asking twice for one ID is
// asking once; asking for another ID of the same canary drops the first. A finished
// sample stays, however often it is read, until it is replaced or has waited longer
// than the operator allows; package analysis sees to it that it counts once. The
// service that asked is woken when its sample is there.
//
// A sample is taken by the official client with instant queries. The binding, the
// token and the settings are read for each. An address that a canary names itself
// is not the operator's: it is held to the operator's list, and never reaches the
// manager's own machine, its link or a cloud's metadata service unless a network in
// that list says so; this is checked where the connection is made, after the name
// was resolved. No redirect is followed, an answer has a largest size, and texts of
// errors are stripped of tokens and headers.
package prom
