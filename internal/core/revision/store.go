package revision

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
)

// Owner says whose revision it is.
type Owner struct {
	Namespace string
	// Prefix is the service's name, or a standalone replica's own.
	Prefix    string
	Component v1beta1.ComponentType
	// Reference is set on new objects as controller, when it is not nil.
	Reference *metav1.OwnerReference
}

// Resolution is the answer of Resolve.
type Resolution struct {
	// Name of the revision to converge on, and its hash part.
	Name, Hash string
	// Create is the object to write first; nil when it is stored already.
	Create *appsv1.ControllerRevision
	// CollisionCount to persist: it never falls.
	CollisionCount int32
}

// Resolve finds the stored revision with the same templates, so that a revert
// goes back to its old name, or makes a new one. A name that is taken by other
// templates raises the collision count until a free name is found.
func Resolve(existing []*appsv1.ControllerRevision, owner Owner, in Input) (Resolution, error) {
	payload, err := in.payload()
	if err != nil {
		return Resolution{}, err
	}
	byName := make(map[string]*appsv1.ControllerRevision, len(existing))
	for _, cr := range existing {
		byName[cr.Name] = cr
	}
	if p := in.Prepared; p != nil && p.CollisionCount == payload.CollisionCount {
		name := Name(owner.Prefix, owner.Component, p.Hash)
		if stored := byName[name]; stored != nil && sameText(stored.Data.Raw, p.Data) {
			return Resolution{Name: name, Hash: p.Hash, CollisionCount: p.CollisionCount}, nil
		}
	}
	first := payload.CollisionCount
	for {
		data, err := canonical(payload)
		if err != nil {
			return Resolution{}, err
		}
		hash := hashOf(data)
		name := Name(owner.Prefix, owner.Component, hash)
		stored, taken := byName[name]
		if taken && sameText(stored.Data.Raw, data) {
			return Resolution{Name: name, Hash: hash, CollisionCount: payload.CollisionCount}, nil
		}
		if payload.CollisionCount == first {
			// The same templates may be stored under an earlier count.
			if cr := sameTemplates(existing, owner, data); cr != nil {
				return Resolution{Name: cr.Name, Hash: HashOf(cr), CollisionCount: first}, nil
			}
		}
		if !taken {
			return Resolution{
				Name: name, Hash: hash, CollisionCount: payload.CollisionCount,
				Create: newControllerRevision(owner, name, payload.PairingProtocol, data, nextNumber(existing)),
			}, nil
		}
		payload.CollisionCount++
	}
}

// newControllerRevision builds the object that stores templates in their canonical form.
func newControllerRevision(owner Owner, name, pairing string, data []byte, number int64) *appsv1.ControllerRevision {
	cr := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.Namespace,
			Name:      name,
			Labels: map[string]string{
				v1beta1.InferenceServiceLabel: owner.Prefix,
				v1beta1.ComponentLabel:        string(owner.Component),
				v1beta1.ManagedByLabel:        v1beta1.ManagedByOMENative,
			},
		},
		Data:     runtime.RawExtension{Raw: data},
		Revision: number,
	}
	if pairing != "" {
		cr.Annotations = map[string]string{v1beta1.PairingProtocolLabel: pairing}
	}
	if owner.Reference != nil {
		cr.OwnerReferences = []metav1.OwnerReference{*owner.Reference}
	}
	return cr
}

// Data reads the templates back.
func Data(cr *appsv1.ControllerRevision) (*Payload, error) {
	p, err := parse(cr.Data.Raw)
	if err != nil {
		return nil, fmt.Errorf("ControllerRevision %s: data: %w; a revision like this can't be rolled back to, so roll forward to another one",
			types.NamespacedName{Namespace: cr.Namespace, Name: cr.Name}, err)
	}
	return p, nil
}

// HashOf returns the hash part of a stored revision, worked out from its data:
// a name is never parsed.
func HashOf(cr *appsv1.ControllerRevision) string {
	hash := hashOf(cr.Data.Raw)
	if strings.HasSuffix(cr.Name, "-"+hash) {
		return hash
	}
	if norm, err := normalize(cr.Data.Raw); err == nil {
		return hashOf(norm)
	}
	return hash
}

// Prune returns the revisions to delete, oldest first: those that are not live,
// beyond the newest limit of them. A nil limit keeps all.
func Prune(existing []*appsv1.ControllerRevision, live map[string]bool, limit *int) []*appsv1.ControllerRevision {
	if limit == nil || *limit < 0 {
		return nil
	}
	var spare []*appsv1.ControllerRevision
	for _, cr := range existing {
		if !live[cr.Name] && cr.DeletionTimestamp.IsZero() {
			spare = append(spare, cr)
		}
	}
	if len(spare) <= *limit {
		return nil
	}
	slices.SortFunc(spare, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return spare[:len(spare)-*limit]
}

func nextNumber(existing []*appsv1.ControllerRevision) int64 {
	var highest int64
	for _, cr := range existing {
		highest = max(highest, cr.Revision)
	}
	return highest + 1
}

// sameTemplates finds a stored revision that differs from data by nothing but
// the collision count. The newest wins.
func sameTemplates(existing []*appsv1.ControllerRevision, owner Owner, data []byte) *appsv1.ControllerRevision {
	var best *appsv1.ControllerRevision
	want := withoutCount(data)
	for _, cr := range existing {
		raw := cr.Data.Raw
		// Templates of another length can't be the same, unless the text was
		// rewritten by hand; then it is not ours to reuse under another name.
		if len(withoutCount(raw)) != len(want) || !bytes.Equal(withoutCount(raw), want) {
			continue
		}
		if cr.Name != Name(owner.Prefix, owner.Component, hashOf(raw)) {
			continue
		}
		if best == nil || cr.Revision > best.Revision {
			best = cr
		}
	}
	return best
}

// withoutCount drops the collision count, the first key of the canonical text.
func withoutCount(data []byte) []byte {
	const key = `{"collisionCount":`
	if !bytes.HasPrefix(data, []byte(key)) {
		return data
	}
	rest := data[len(key):]
	i := bytes.IndexByte(rest, ',')
	if i < 0 {
		return data
	}
	if _, err := strconv.ParseInt(string(rest[:i]), 10, 32); err != nil {
		return data
	}
	return append([]byte{'{'}, rest[i+1:]...)
}

// sameText compares stored data with canonical text. The API server keeps the
// bytes; a tool that saved and restored the object may have spaced it.
func sameText(stored, data []byte) bool {
	if bytes.Equal(stored, data) {
		return true
	}
	norm, err := normalize(stored)
	return err == nil && bytes.Equal(norm, data)
}
