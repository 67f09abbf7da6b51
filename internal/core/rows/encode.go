package rows

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"ome.io/ome/api/v1beta1"
)

// Options are the operator's choice of encoding.
type Options struct {
	// Encoding to aim at; empty means DenseV1.
	Encoding v1beta1.InstanceStatusEncoding
	// MaxDecoded is the most rows that may be written as columns, because more
	// could not be read back.
	MaxDecoded int
}

// Encoded is one stored form of the rows. Exactly one of Rows and Columns is
// set, and neither when there are no rows.
type Encoded struct {
	Encoding v1beta1.InstanceStatusEncoding
	Rows     []v1beta1.InstanceStatus
	Columns  *v1beta1.InstanceStatusColumns
}

// Encode writes rows in the configured encoding, or as a list when columns
// could not be read back or would not be smaller. The result shares nothing
// with rows. An error means that rows can't be told apart or can't be stored.
func Encode(rows []v1beta1.InstanceStatus, opts Options) (Encoded, error) {
	switch opts.Encoding {
	case "", v1beta1.InstanceStatusDenseV1, v1beta1.InstanceStatusColumnarV2:
	default:
		return Encoded{}, fmt.Errorf("omenativeStatus.instanceStatusEncoding: %q is not an encoding; use %s or %s",
			opts.Encoding, v1beta1.InstanceStatusDenseV1, v1beta1.InstanceStatusColumnarV2)
	}
	if err := check(rows); err != nil {
		return Encoded{}, err
	}
	dense := Encoded{Encoding: v1beta1.InstanceStatusDenseV1}
	if len(rows) == 0 {
		return dense, nil
	}
	dense.Rows = normalized(rows)
	if opts.Encoding != v1beta1.InstanceStatusColumnarV2 || len(rows) > opts.MaxDecoded {
		return dense, nil
	}
	columns := columnsOf(dense.Rows)
	smaller, err := columnsAreSmaller(dense.Rows, columns)
	if err != nil {
		return Encoded{}, err
	}
	if !smaller {
		return dense, nil
	}
	return Encoded{Encoding: v1beta1.InstanceStatusColumnarV2, Columns: columns}, nil
}

// Apply puts the rows into a status, and takes out the other form.
func Apply(status *v1beta1.InferenceReplicaStatus, encoded Encoded) {
	status.InstanceStatuses, status.InstanceStatusColumns, status.InstanceStatusEncoding = encoded.Rows, encoded.Columns, ""
	if encoded.Columns != nil {
		status.InstanceStatusEncoding = v1beta1.InstanceStatusColumnarV2
	}
}

func check(rows []v1beta1.InstanceStatus) error {
	seen := make(map[int32]bool, len(rows))
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Index < 0:
			return fmt.Errorf("row %d: index %d is negative", i, r.Index)
		case seen[r.Index]:
			return fmt.Errorf("row %d: index %d has a row already", i, r.Index)
		case !knownPhase(r.Phase):
			return fmt.Errorf("Instance %d: phase %q is not a phase", r.Index, r.Phase)
		case r.PodCount < 0 || r.ServingPodCount < 0 || r.AvailablePodCount < 0:
			return fmt.Errorf("Instance %d: a pod count is negative: %d owned, %d serving, %d available", r.Index, r.PodCount, r.ServingPodCount, r.AvailablePodCount)
		case r.ActiveOrdinal != 0 && r.ActiveOrdinal != 1:
			return fmt.Errorf("Instance %d: activeOrdinal %d is neither 0 nor 1", r.Index, r.ActiveOrdinal)
		}
		seen[r.Index] = true
	}
	return nil
}

// normalized copies rows as they are stored: without the fields that only older
// readers know, and with nothing where there is nothing.
func normalized(rows []v1beta1.InstanceStatus) []v1beta1.InstanceStatus {
	out := make([]v1beta1.InstanceStatus, len(rows))
	for i := range rows {
		rows[i].DeepCopyInto(&out[i])
		r := &out[i]
		r.ReadyPodCount, r.ScheduledPodCount, r.NodesOccupied = 0, 0, nil
		if len(r.Conditions) == 0 {
			r.Conditions = nil
		}
		if len(r.Announced) == 0 {
			r.Announced = nil
		}
		if r.ReadySince.IsZero() {
			r.ReadySince = nil
		}
	}
	return out
}

// columnsOf builds the columns of normalized rows, whose records it shares.
func columnsOf(rows []v1beta1.InstanceStatus) *v1beta1.InstanceStatusColumns {
	c := &v1beta1.InstanceStatusColumns{}
	sorted := make([]*v1beta1.InstanceStatus, len(rows))
	for i := range rows {
		sorted[i] = &rows[i]
	}
	byIndex := func(a, b *v1beta1.InstanceStatus) int { return cmp.Compare(a.Index, b.Index) }
	if !slices.IsSortedFunc(sorted, byIndex) {
		c.RowOrder = make([]int32, len(rows))
		for i := range rows {
			c.RowOrder[i] = rows[i].Index
		}
		slices.SortFunc(sorted, byIndex)
	}

	var members, admitted, ordinalOne setBuilder
	phases, running, target := newColumn[v1beta1.InstancePhase](), newColumn[string](), newColumn[string]()
	incarnations := newColumn[int64]()
	owned, serving, available := newColumn[int32](), newColumn[int32](), newColumn[int32]()
	for _, r := range sorted {
		members.add(r.Index)
		phases.add(r.Phase, r.Index)
		running.add(r.RunningRevision, r.Index)
		target.add(r.TargetRevision, r.Index)
		incarnations.add(r.Incarnation, r.Index)
		owned.add(r.PodCount, r.Index)
		serving.add(r.ServingPodCount, r.Index)
		available.add(r.AvailablePodCount, r.Index)
		if r.Admitted {
			admitted.add(r.Index)
		}
		if r.ActiveOrdinal == 1 {
			ordinalOne.add(r.Index)
		}
		if r.Conditions != nil || r.ReadySince != nil || r.Operation != nil || r.LastFailure != nil || r.Announced != nil {
			c.Entries = append(c.Entries, v1beta1.InstanceStatusEntry{
				Index: r.Index, Conditions: r.Conditions, ReadySince: r.ReadySince,
				Operation: r.Operation, LastFailure: r.LastFailure, Announced: r.Announced,
			})
		}
	}
	c.Members = members.set()
	c.Admitted = admitted.set()
	c.ActiveOrdinalOne = ordinalOne.set()
	c.Phases = groupsOf(phases, func(v v1beta1.InstancePhase, s v1beta1.IndexSet) v1beta1.InstancePhaseGroup {
		return v1beta1.InstancePhaseGroup{Value: v, Indexes: s}
	})
	revisionGroup := func(v string, s v1beta1.IndexSet) v1beta1.InstanceRevisionGroup {
		return v1beta1.InstanceRevisionGroup{Value: v, Indexes: s}
	}
	countGroup := func(v int32, s v1beta1.IndexSet) v1beta1.InstanceCountGroup {
		return v1beta1.InstanceCountGroup{Value: v, Indexes: s}
	}
	c.RunningRevisions = groupsOf(running, revisionGroup)
	c.TargetRevisions = groupsOf(target, revisionGroup)
	c.Incarnations = groupsOf(incarnations, func(v int64, s v1beta1.IndexSet) v1beta1.InstanceIncarnationGroup {
		return v1beta1.InstanceIncarnationGroup{Value: v, Indexes: s}
	})
	c.PodCounts = groupsOf(owned, countGroup)
	c.ServingPodCounts = groupsOf(serving, countGroup)
	c.AvailablePodCounts = groupsOf(available, countGroup)
	return c
}

func (b *setBuilder) set() v1beta1.IndexSet { return v1beta1.IndexSet(b.String()) }

// column collects the indexes of each value but the zero value, which is the
// default of every column.
type column[V cmp.Ordered] struct {
	sets  map[V]*setBuilder
	last  *setBuilder // of value, because neighbours mostly agree
	value V
}

func newColumn[V cmp.Ordered]() *column[V] {
	return &column[V]{sets: map[V]*setBuilder{}}
}

func (c *column[V]) add(value V, index int32) {
	var zero V
	if value == zero {
		return
	}
	if c.last == nil || c.value != value {
		set := c.sets[value]
		if set == nil {
			set = &setBuilder{}
			c.sets[value] = set
		}
		c.last, c.value = set, value
	}
	c.last.add(index)
}

func groupsOf[V cmp.Ordered, G any](c *column[V], make func(V, v1beta1.IndexSet) G) []G {
	var out []G
	for _, v := range slices.Sorted(maps.Keys(c.sets)) {
		out = append(out, make(v, c.sets[v].set()))
	}
	return out
}

// columnsAreSmaller compares the serialized forms. Writing them out only to compare
// them is most of the cost of an encoding, so bounds are tried first: a floor under the
// list's size, which is what every row holds at least, and a bound above the columns'.
func columnsAreSmaller(rows []v1beta1.InstanceStatus, columns *v1beta1.InstanceStatusColumns) (bool, error) {
	if columnsAtMost(columns) < denseFloor(rows) {
		return true, nil
	}
	raw, err := json.Marshal(columns)
	if err != nil {
		return false, err
	}
	if len(raw) < denseFloor(rows) {
		return true, nil
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return false, err
	}
	return len(raw) < len(list), nil
}

// denseFloor is never above the length of the list's JSON.
func denseFloor(rows []v1beta1.InstanceStatus) int {
	size := 1 // the opening bracket; each row then ends in a comma or the closing one
	var digits [20]byte
	for i := range rows {
		r := &rows[i]
		size += len(`{"index":,"phase":""},`) + len(strconv.AppendInt(digits[:0], int64(r.Index), 10)) + len(r.Phase)
		if r.RunningRevision != "" {
			size += len(`,"runningRevision":""`) + len(r.RunningRevision)
		}
		if r.TargetRevision != "" {
			size += len(`,"targetRevision":""`) + len(r.TargetRevision)
		}
	}
	return size
}
