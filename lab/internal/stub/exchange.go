package stub

import (
	"net/http"
	"time"
)

// Paths of the two-step exchange.
const (
	PathCompletions = "/v1/completions"
	PathPrefill     = "/prefill"
	PathDecode      = "/decode"
)

// Headers of an answer, which name the revision that did each part. A client counts by them.
const (
	HeaderRouter  = "X-Lab-Router-Revision"
	HeaderEngine  = "X-Lab-Engine-Revision"
	HeaderDecoder = "X-Lab-Decoder-Revision"
	// HeaderFailure classifies an answer that is not 200; one of the Failure values.
	HeaderFailure = "X-Lab-Failure"
)

// Failure classes.
const (
	FailureMismatch   = "mismatch"    // a decoder refused the handle of an engine it doesn't pair with
	FailureNoEndpoint = "no-endpoint" // nobody in rotation
	FailureUpstream   = "upstream"    // an upstream refused the connection or vanished
	FailureInjected   = "injected"    // the behaviour asked for it
)

// Labels the stubs read from their pods.
const (
	LabelService   = "ome.io/inferenceservice"
	LabelComponent = "component"
	LabelRevision  = "ome.io/revision-hash"
	LabelPairing   = "ome.io/pairing-protocol"
	LabelRunner    = "ome.io/runner"
)

// Components a stub can be.
const (
	Engine  = "engine"
	Decoder = "decoder"
	Router  = "router"
	Plain   = "" // answers every path with its name
)

// Handle is what a prefill leaves behind: where the KV cache is and who can read it.
type Handle struct {
	Request  string `json:"request"`
	Pod      string `json:"pod"`
	Revision string `json:"revision"`
	Token    string `json:"token,omitempty"`
	Wire     string `json:"wire,omitempty"`
}

// pairs reports whether a decoder with this token and wire can read the handle. An empty value
// pairs with any.
func (h Handle) pairs(token, wire string) bool {
	return agree(h.Token, token) && agree(h.Wire, wire)
}

func agree(a, b string) bool { return a == "" || b == "" || a == b }

// Part names who did one part of a request.
type Part struct {
	Pod      string `json:"pod"`
	Revision string `json:"revision"`
	Image    string `json:"image"`
}

// Completion is the answer to a client, in the shape of an OpenAI completion plus who made it.
type Completion struct {
	ID      string           `json:"id"`
	Object  string           `json:"object"`
	Choices []Choice         `json:"choices"`
	Lab     map[string]*Part `json:"lab"`
}

// Choice is one text of a completion.
type Choice struct {
	Text         string `json:"text"`
	FinishReason string `json:"finish_reason"`
}

// fail answers a request that can't be served, with the class of the failure in a header.
func fail(w http.ResponseWriter, code int, class, message string) {
	w.Header().Set(HeaderFailure, class)
	http.Error(w, message, code)
}

// upstreamTimeout bounds one call to an engine or decoder.
const upstreamTimeout = 30 * time.Second
