package revision

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"ome.io/ome/api/v1beta1"
)

const (
	// HashLength is the number of hexadecimal digits of a revision hash.
	HashLength = 8

	// dataVersion numbers the layout of the canonical text. Raising it gives
	// every service of every cluster a new revision.
	dataVersion = 1
)

// Runner is the pod template of one runner of an Instance and the number of
// pods made from it.
//
// It has the JSON of v1beta1.Runner and is a type of its own, so that a field
// added there enters the hash only when it is added here.
type Runner struct {
	Name     v1beta1.RunnerName     `json:"name"`
	Size     int32                  `json:"size"`
	Template corev1.PodTemplateSpec `json:"template"`
}

// Input is everything that makes a revision. What is not here (replica counts,
// strategies, timeouts, pacing, spread, labels and variables stamped at pod
// creation) never makes a new one.
type Input struct {
	// Runners in any order; a size below one means one.
	Runners []Runner
	// PairingProtocol is the wire token of engine and decoder.
	PairingProtocol string
	// TopologyKey counts only when an Instance has more than one pod.
	TopologyKey string
	// CollisionCount is raised when a hash is taken by other templates.
	CollisionCount int32
	// ExcludedAnnotations are keys that templates inherited from the service
	// and that the component itself does not declare.
	ExcludedAnnotations []string
	// Prepared, when set, is the text of this very input, so that a template that
	// is looked at in every pass is written out only once.
	Prepared *Prepared
}

// Prepared is the canonical text of an input at one collision count.
type Prepared struct {
	CollisionCount int32
	Hash           string
	Data           []byte
}

// Prepare writes an input out ahead of its use.
func Prepare(in Input) (*Prepared, error) {
	hash, data, err := Hash(in)
	if err != nil {
		return nil, err
	}
	return &Prepared{CollisionCount: max(in.CollisionCount, 0), Hash: hash, Data: data}, nil
}

// Payload is the content of a ControllerRevision.
type Payload struct {
	CollisionCount  int32    `json:"collisionCount,omitempty"`
	PairingProtocol string   `json:"pairingProtocol,omitempty"`
	Runners         []Runner `json:"runners,omitempty"`
	TopologyKey     string   `json:"topologyKey,omitempty"`
	Version         int      `json:"v"`
}

// Runner returns the runner of that name, nil when the revision has none.
func (p *Payload) Runner(name v1beta1.RunnerName) *Runner {
	for i := range p.Runners {
		if p.Runners[i].Name == name {
			return &p.Runners[i]
		}
	}
	return nil
}

// Hash returns the revision hash and the canonical text it is the hash of.
func Hash(in Input) (hash string, data []byte, err error) {
	payload, err := in.payload()
	if err != nil {
		return "", nil, err
	}
	data, err = canonical(payload)
	if err != nil {
		return "", nil, err
	}
	return hashOf(data), data, nil
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:HashLength/2])
}

// Name is the name of a ControllerRevision: built, never parsed.
func Name(prefix string, component v1beta1.ComponentType, hash string) string {
	return prefix + "-" + string(component) + "-" + hash
}

func (in Input) payload() (*Payload, error) {
	if len(in.Runners) == 0 {
		return nil, errors.New("a revision needs at least one runner")
	}
	p := &Payload{
		CollisionCount:  max(in.CollisionCount, 0),
		PairingProtocol: in.PairingProtocol,
		Runners:         slices.Clone(in.Runners),
		Version:         dataVersion,
	}
	var pods int64
	for i := range p.Runners {
		r := &p.Runners[i]
		r.Size = max(r.Size, 1)
		pods += int64(r.Size)
		// The queue says where pods wait, not what they are.
		r.Template.Labels = without(r.Template.Labels, v1beta1.QueueNameLabel)
		r.Template.Annotations = without(r.Template.Annotations, in.ExcludedAnnotations...)
	}
	if pods > 1 {
		p.TopologyKey = in.TopologyKey
	}
	slices.SortStableFunc(p.Runners, func(a, b Runner) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(p.Runners); i++ {
		if p.Runners[i].Name == p.Runners[i-1].Name {
			return nil, fmt.Errorf("two runners are named %q: each runner of a component needs a name of its own", p.Runners[i].Name)
		}
	}
	return p, nil
}

// without returns m without some keys and leaves m itself alone.
func without(m map[string]string, keys ...string) map[string]string {
	copied := false
	for _, k := range keys {
		if _, ok := m[k]; !ok {
			continue
		}
		if !copied {
			m, copied = maps.Clone(m), true
		}
		delete(m, k)
	}
	return m
}

func parse(raw []byte) (*Payload, error) {
	var p Payload
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, err
	}
	if p.Version != dataVersion {
		return nil, fmt.Errorf("layout version is %d and this release reads only %d", p.Version, dataVersion)
	}
	if len(p.Runners) == 0 {
		return nil, errors.New("it holds no runner")
	}
	return &p, nil
}
