package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"ome.io/ome/api/v1beta1"
)

const (
	digestPrefix = "rp1:"
	digestDigits = 12
)

// body is a progression with its kind as the only key.
type body struct {
	Canary        *v1beta1.GroupCanary        `json:"canary,omitempty"`
	BlueGreen     *v1beta1.GroupBlueGreen     `json:"blueGreen,omitempty"`
	RollingUpdate *v1beta1.GroupRollingUpdate `json:"rollingUpdate,omitempty"`
}

// GroupDigest is the portable digest of a group's own progression; a group that
// names neither a progression nor a policy is blue-green. It is empty for a
// group that takes its progression from a policy, whose body is elsewhere.
func GroupDigest(g *v1beta1.RolloutGroup) (string, error) {
	if !inline(g) && g.PolicyRef != nil {
		return "", nil
	}
	if g.Canary == nil && g.RollingUpdate == nil && (g.BlueGreen == nil || *g.BlueGreen == (v1beta1.GroupBlueGreen{})) {
		return blueGreenDigest()
	}
	return bodyDigest(g)
}

// blueGreenDigest is worked out once: a plan is resolved in every pass, nearly all
// of them are blue-green, and that has nothing to set.
var blueGreenDigest = sync.OnceValues(func() (string, error) { return bodyDigest(&v1beta1.RolloutGroup{}) })

func bodyDigest(g *v1beta1.RolloutGroup) (string, error) {
	text, err := canonicalBody(g)
	if err != nil {
		return "", err
	}
	return digestOf(text), nil
}

// PlanDigest combines the group digests of a plan, in group order. It is empty
// while a group has no digest, since such a plan can't be compared.
func PlanDigest(groups []string) string {
	if len(groups) == 0 || slices.Contains(groups, "") {
		return ""
	}
	return digestOf([]byte(strings.Join(groups, "|")))
}

// PinnedDigest is the combined digest of a pinned plan.
func PinnedDigest(p v1beta1.RolloutPlan) string {
	digests := make([]string, len(p.Groups))
	for i := range p.Groups {
		digests[i] = p.Groups[i].PortableDigest
	}
	return PlanDigest(digests)
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return digestPrefix + hex.EncodeToString(sum[:])[:digestDigits]
}

// canonicalBody writes a progression as compact JSON: keys sorted, nothing
// unset, no HTML escaping, numbers and percentages as they are stored and no
// run-time default filled in.
func canonicalBody(g *v1beta1.RolloutGroup) ([]byte, error) {
	b := body{Canary: g.Canary, BlueGreen: g.BlueGreen, RollingUpdate: g.RollingUpdate}
	if !inline(g) {
		b.BlueGreen = &v1beta1.GroupBlueGreen{}
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("writing a progression: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("writing a progression: %w", err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // map keys come out sorted
		return nil, fmt.Errorf("writing a progression: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
