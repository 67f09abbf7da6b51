// Package stub holds the servers that run in the lab's pods: an engine that prefills, a decoder
// that decodes, a router that joins the two, and a plain server for every other pod with a port.
//
// A router picks an engine and a decoder, asks the engine to prefill, and hands the KV handle it
// gets back to the decoder. The handle carries the engine's revision and pairing token; a decoder
// with another token answers 409 and counts it, so a mismatched pair can never pass unseen. Nothing
// is tried twice: an upstream that vanished is a failed request.
//
// How a server behaves (its start-up time, error rate, latency, crashes) is read from its image tag
// and its environment; see Behaviour.
package stub
