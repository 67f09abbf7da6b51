package instance

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
)

// Quota is how many moves of a kind may still begin in a pass, and why no more may.
type Quota struct {
	Left int32
	Hold *Hold
	// Paired, when set, narrows the quota to pods of the pairing protocol Token, and Rest is
	// the bound on all. Spare of them may leave that a surge added and nobody wants.
	Paired bool
	Token  string
	Spare  int32
	Rest   *Quota
}

// take spends one; it returns the hold when none is left. A nil quota has no end.
func (q *Quota) take(spent *int32) *Hold {
	if q == nil {
		return nil
	}
	if *spent >= q.Left {
		return q.Hold
	}
	*spent++
	return nil
}

// takeDrain spends one for a pod that leaves rotation. A pod that only gives back what a
// surge added is bound by the pairing alone.
func (q *Quota) takeDrain(p *pod, gives bool, spent map[*Quota]int32) *Hold {
	for at := q; at != nil; at = at.Rest {
		if !at.bounds(p, gives) {
			continue
		}
		limit := at.Left
		if gives {
			limit = at.Spare
		}
		if spent[at] >= limit {
			return at.Hold
		}
	}
	for at := q; at != nil; at = at.Rest {
		if at.bounds(p, gives) {
			spent[at]++
		}
	}
	return nil
}

func (q *Quota) bounds(p *pod, gives bool) bool {
	if q.Paired {
		return q.Token == p.obj.Labels[v1beta1.PairingProtocolLabel]
	}
	return !gives
}

// keeps is true while p is the last of a token that a pairing keeps.
func (q *Quota) keeps(p *pod) bool {
	for at := q; at != nil; at = at.Rest {
		if at.Paired && at.Spare <= 0 && at.bounds(p, true) {
			return true
		}
	}
	return false
}

// Census sums the pods of a component for those who weigh it against its siblings.
type Census struct {
	// Serving counts pods in rotation, extra ones included.
	Serving int32
	// Coming counts pods that an operation brings up and that do not serve yet.
	Coming int32
	// Pairs counts Instances that serve with more pods than one: an old one may leave each.
	Pairs int32
	// ByToken counts serving pods by their pairing protocol.
	ByToken map[string]int32
	// Unoffered counts those of them that no endpoint offers yet, or not for minReadySeconds:
	// who sends requests may not know of them. Due is when that time is over for the next one.
	Unoffered map[string]int32
	Due       time.Time
}

// TakeCensus counts the pods that belong to the owner.
func TakeCensus(rows []v1beta1.InstanceStatus, pods []*corev1.Pod, owner types.UID, routed map[types.UID]bool, now time.Time, minReady time.Duration) Census {
	c := Census{ByToken: map[string]int32{}, Unoffered: map[string]int32{}}
	in := Input{Routed: routed, Now: now, MinReady: minReady}
	in.Owner.UID = owner
	rising := map[[2]int32]bool{}
	of := map[int32]int32{}
	for i := range rows {
		row := &rows[i]
		if op := row.Operation; op != nil && row.Phase != v1beta1.InstanceFailed {
			switch {
			case op.Type == v1beta1.OperationUpdate && op.Strategy == v1beta1.SurgeThenDrain && op.Step == v1beta1.StepSurge && op.TargetRevision != row.RunningRevision:
				rising[[2]int32{row.Index, 1 - row.ActiveOrdinal}] = true
			case op.Type == v1beta1.OperationCreate, op.Type == v1beta1.OperationRestart,
				op.Type == v1beta1.OperationUpdate && op.Strategy != v1beta1.SurgeThenDrain:
				rising[[2]int32{row.Index, row.ActiveOrdinal}] = true
			}
		}
	}
	for _, obj := range pods {
		if !ownedBy(obj, &in) {
			continue
		}
		p := observe(obj, &in)
		if !p.serving() {
			continue
		}
		c.Serving++
		token := obj.Labels[v1beta1.PairingProtocolLabel]
		c.ByToken[token]++
		if ok, due := p.available(&in); !ok {
			c.Unoffered[token]++
			if !due.IsZero() && (c.Due.IsZero() || due.Before(c.Due)) {
				c.Due = due
			}
		}
		if index, err := strconv.ParseInt(obj.Labels[v1beta1.InstanceIndexLabel], 10, 32); err == nil {
			delete(rising, [2]int32{int32(index), p.ordinal})
			if of[int32(index)]++; of[int32(index)] == 2 {
				c.Pairs++
			}
		}
	}
	c.Coming = int32(len(rising))
	return c
}
