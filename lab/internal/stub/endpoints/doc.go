// Package endpoints shows each client the EndpointSlices of a Service the way a node sees them:
// late. Every View applies each change after a delay of its own, drawn anew per change, so two
// clients disagree for a while about who is in rotation. That is what makes a pod removed without
// a drain lose requests in the lab, as it does on real nodes.
package endpoints
