package rows

import (
	"math"
	"slices"
	"strconv"

	"ome.io/ome/api/v1beta1"
)

// EncodingOf is the encoding in which a status holds its rows. It trusts the
// marker; Decode checks it.
func EncodingOf(status *v1beta1.InferenceReplicaStatus) v1beta1.InstanceStatusEncoding {
	if status.InstanceStatusEncoding == "" {
		return v1beta1.InstanceStatusDenseV1
	}
	return status.InstanceStatusEncoding
}

// Decode returns the rows of a status in their stored order. The rows are a
// copy: nothing in them is shared with status. limit bounds the rows that
// columns may expand to; a list is already expanded and is not bounded here.
// The error is a *DecodeError.
func Decode(status *v1beta1.InferenceReplicaStatus, limit int) ([]v1beta1.InstanceStatus, error) {
	rows, err := decode(status, limit)
	if err != nil {
		return nil, err
	}
	return rows, nil
}

func decode(status *v1beta1.InferenceReplicaStatus, limit int) ([]v1beta1.InstanceStatus, *DecodeError) {
	columns := status.InstanceStatusColumns
	switch {
	case status.InstanceStatusEncoding == "" && columns == nil:
		return decodeDense(status.InstanceStatuses)
	case status.InstanceStatusEncoding == "":
		return nil, fault(UnionMixed, "columns are present without the marker %q", v1beta1.InstanceStatusColumnarV2).at("instanceStatusEncoding")
	case status.InstanceStatusEncoding != v1beta1.InstanceStatusColumnarV2:
		return nil, fault(EncodingUnknown, "encoding %q is not known to this release; a newer manager may have written it",
			clip(string(status.InstanceStatusEncoding))).at("instanceStatusEncoding")
	case columns == nil:
		return nil, fault(ColumnsMissing, "the marker says %s and there are no columns", v1beta1.InstanceStatusColumnarV2).at("instanceStatusColumns")
	case status.InstanceStatuses != nil:
		return nil, fault(UnionMixed, "%d rows are listed beside the columns", len(status.InstanceStatuses)).at("instanceStatuses")
	}
	d := decoder{columns: columns, limit: limit}
	if err := d.run(); err != nil {
		return nil, err
	}
	return d.rows, nil
}

func decodeDense(list []v1beta1.InstanceStatus) ([]v1beta1.InstanceStatus, *DecodeError) {
	if len(list) == 0 {
		return nil, nil
	}
	seen := make(map[int32]bool, len(list))
	rows := make([]v1beta1.InstanceStatus, len(list))
	for i := range list {
		index := list[i].Index
		if index < 0 {
			return nil, fault(IndexOverflow, "index %d is negative", index).at("instanceStatuses[%d].index", i)
		}
		if seen[index] {
			return nil, fault(Overlap, "index %d has two rows", index).at("instanceStatuses[%d].index", i)
		}
		seen[index] = true
		list[i].DeepCopyInto(&rows[i])
	}
	return rows, nil
}

// decoder works on rows in ascending order and puts them in row order last.
type decoder struct {
	columns *v1beta1.InstanceStatusColumns
	limit   int
	members memberSet
	rows    []v1beta1.InstanceStatus
	// taken marks, for the column being read, the rows that have a value: taken
	// when it holds the column's number.
	taken  []uint8
	column uint8
}

func (d *decoder) run() *DecodeError {
	c := d.columns
	spans, err := parseSet(string(c.Members))
	if err != nil {
		return err.at("instanceStatusColumns.members")
	}
	count := cardinality(spans)
	if d.limit <= 0 {
		return fault(CardinalityLimit, "columns hold %d rows and no bound is configured; set omenativeStatus.maxDecodedInstances", count).at("instanceStatusColumns.members")
	}
	if count > int64(d.limit) {
		return fault(CardinalityLimit, "columns hold %d rows, above the bound of %d", count, d.limit).at("instanceStatusColumns.members")
	}
	d.members = newMemberSet(spans)
	d.taken = make([]uint8, count)

	// Every set is checked before the first row is made.
	if len(c.Phases) > 0 { // else nothing is covered
		if err := checkColumn(d, "phases", c.Phases, phaseGroup); err != nil {
			return err
		}
	}
	if i := slices.Index(d.taken, 0); i >= 0 {
		return fault(Coverage, "index %d has no phase", d.members.indexes()[i]).at("instanceStatusColumns.phases")
	}
	if err := checkColumn(d, "runningRevisions", c.RunningRevisions, revisionGroup); err != nil {
		return err
	}
	if err := checkColumn(d, "targetRevisions", c.TargetRevisions, revisionGroup); err != nil {
		return err
	}
	if err := checkColumn(d, "incarnations", c.Incarnations, incarnationGroup); err != nil {
		return err
	}
	if err := checkColumn(d, "podCounts", c.PodCounts, countGroup); err != nil {
		return err
	}
	if err := checkColumn(d, "servingPodCounts", c.ServingPodCounts, countGroup); err != nil {
		return err
	}
	if err := checkColumn(d, "availablePodCounts", c.AvailablePodCounts, countGroup); err != nil {
		return err
	}
	if err := d.checkFlag("admitted", c.Admitted); err != nil {
		return err
	}
	if err := d.checkFlag("activeOrdinalOne", c.ActiveOrdinalOne); err != nil {
		return err
	}
	places, err := d.checkOrder()
	if err != nil {
		return err
	}
	if err := d.checkEntries(); err != nil {
		return err
	}

	d.fill()
	if places != nil {
		ordered := make([]v1beta1.InstanceStatus, len(d.rows))
		for i, place := range places {
			ordered[i] = d.rows[place]
		}
		d.rows = ordered
	}
	return nil
}

// group is one group of any column, in a shape that one check serves.
type group[V any] struct {
	value   V
	indexes v1beta1.IndexSet
	problem string // why the value is not allowed
}

func phaseGroup(g *v1beta1.InstancePhaseGroup) group[string] {
	out := group[string]{value: string(g.Value), indexes: g.Indexes}
	if !knownPhase(g.Value) {
		out.problem = "is not a phase that this release knows"
	}
	return out
}

func revisionGroup(g *v1beta1.InstanceRevisionGroup) group[string] {
	out := group[string]{value: g.Value, indexes: g.Indexes}
	if g.Value == "" {
		out.problem = "is the default, which has no group"
	}
	return out
}

func incarnationGroup(g *v1beta1.InstanceIncarnationGroup) group[int64] {
	out := group[int64]{value: g.Value, indexes: g.Indexes}
	if g.Value == 0 {
		out.problem = "is the default, which has no group"
	}
	return out
}

func countGroup(g *v1beta1.InstanceCountGroup) group[int64] {
	out := group[int64]{value: int64(g.Value), indexes: g.Indexes}
	if g.Value < 1 {
		out.problem = "is not a count of at least 1"
	}
	return out
}

func checkColumn[G any, V string | int64](d *decoder, name string, groups []G, view func(*G) group[V]) *DecodeError {
	if groups == nil {
		return nil
	}
	if len(groups) == 0 {
		return fault(GroupValue, "the list is empty; leave it out").at("instanceStatusColumns.%s", name)
	}
	d.column++
	var previous V
	for i := range groups {
		g := view(&groups[i])
		if g.problem != "" {
			return fault(GroupValue, "value %s %s", quote(g.value), g.problem).at("instanceStatusColumns.%s[%d].value", name, i)
		}
		if i > 0 && g.value <= previous {
			return fault(GroupOrder, "value %s must come once, and before %s", quote(g.value), quote(previous)).at("instanceStatusColumns.%s[%d].value", name, i)
		}
		previous = g.value
		if err := d.checkSet(g.indexes); err != nil {
			return err.at("instanceStatusColumns.%s[%d].indexes", name, i)
		}
	}
	return nil
}

func quote(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(clip(v))
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// checkSet parses a set, and marks its rows as taken in the current column.
func (d *decoder) checkSet(set v1beta1.IndexSet) *DecodeError {
	spans, err := parseSet(string(set))
	if err != nil {
		return err
	}
	for _, s := range spans {
		place, ok := d.members.find(s)
		if !ok {
			return fault(NotMember, "%s is not in members", (&setBuilder{spans: []span{s}}).String())
		}
		for i := place; i < place+int(s.size()); i++ {
			if d.taken[i] == d.column {
				return fault(Overlap, "index %d has two values", s.first+int32(i-place))
			}
			d.taken[i] = d.column
		}
	}
	return nil
}

func (d *decoder) checkFlag(name string, set v1beta1.IndexSet) *DecodeError {
	if set == "" {
		return nil // absent
	}
	d.column++
	if err := d.checkSet(set); err != nil {
		return err.at("instanceStatusColumns.%s", name)
	}
	return nil
}

// checkOrder returns the place of each row, in row order; nil for ascending.
func (d *decoder) checkOrder() ([]int, *DecodeError) {
	order := d.columns.RowOrder
	if order == nil {
		return nil, nil
	}
	const field = "instanceStatusColumns.rowOrder"
	if len(order) != d.members.count {
		return nil, fault(RowOrder, "%d indexes are ordered and there are %d members", len(order), d.members.count).at(field)
	}
	if slices.IsSorted(order) {
		return nil, fault(RowOrder, "the order is ascending; leave it out").at(field)
	}
	d.column++
	places := make([]int, len(order))
	for i, index := range order {
		place, ok := d.members.find(span{index, index})
		if !ok {
			return nil, fault(RowOrder, "index %d is not in members", index).at("%s[%d]", field, i)
		}
		if d.taken[place] == d.column {
			return nil, fault(RowOrder, "index %d is listed twice", index).at("%s[%d]", field, i)
		}
		d.taken[place] = d.column
		places[i] = place
	}
	return places, nil
}

func (d *decoder) checkEntries() *DecodeError {
	entries := d.columns.Entries
	if entries != nil && len(entries) == 0 {
		return fault(EntryEmpty, "the list is empty; leave it out").at("instanceStatusColumns.entries")
	}
	previous := int64(math.MinInt64)
	for i := range entries {
		e := &entries[i]
		if e.Index < 0 {
			return fault(IndexOverflow, "index %d is negative", e.Index).at("instanceStatusColumns.entries[%d].index", i)
		}
		if int64(e.Index) <= previous {
			return fault(EntryOrder, "index %d must come once, and before %d", e.Index, previous).at("instanceStatusColumns.entries[%d].index", i)
		}
		previous = int64(e.Index)
		if _, ok := d.members.find(span{e.Index, e.Index}); !ok {
			return fault(NotMember, "index %d is not in members", e.Index).at("instanceStatusColumns.entries[%d].index", i)
		}
		if e.Conditions != nil && len(e.Conditions) == 0 {
			return fault(EntryEmpty, "the list is empty; leave it out").at("instanceStatusColumns.entries[%d].conditions", i)
		}
		if e.Announced != nil && len(e.Announced) == 0 {
			return fault(EntryEmpty, "the list is empty; leave it out").at("instanceStatusColumns.entries[%d].announced", i)
		}
		if e.ReadySince != nil && e.ReadySince.IsZero() {
			return fault(EntryEmpty, "the time is null; leave it out").at("instanceStatusColumns.entries[%d].readySince", i)
		}
		if e.Conditions == nil && e.Announced == nil && e.ReadySince == nil && e.Operation == nil && e.LastFailure == nil {
			return fault(EntryEmpty, "index %d has an entry that holds no record", e.Index).at("instanceStatusColumns.entries[%d]", i)
		}
	}
	return nil
}

// fill makes the rows; every set is known to be good.
func (d *decoder) fill() {
	c := d.columns
	rows := make([]v1beta1.InstanceStatus, d.members.count)
	d.rows = rows
	for i, index := range d.members.indexes() {
		rows[i].Index = index
	}
	for _, g := range c.Phases {
		d.each(g.Indexes, func(r *v1beta1.InstanceStatus) { r.Phase = g.Value })
	}
	for _, g := range c.RunningRevisions {
		d.each(g.Indexes, func(r *v1beta1.InstanceStatus) { r.RunningRevision = g.Value })
	}
	for _, g := range c.TargetRevisions {
		d.each(g.Indexes, func(r *v1beta1.InstanceStatus) { r.TargetRevision = g.Value })
	}
	for _, g := range c.Incarnations {
		d.each(g.Indexes, func(r *v1beta1.InstanceStatus) { r.Incarnation = g.Value })
	}
	for _, g := range c.PodCounts {
		d.each(g.Indexes, func(r *v1beta1.InstanceStatus) { r.PodCount = g.Value })
	}
	for _, g := range c.ServingPodCounts {
		d.each(g.Indexes, func(r *v1beta1.InstanceStatus) { r.ServingPodCount = g.Value })
	}
	for _, g := range c.AvailablePodCounts {
		d.each(g.Indexes, func(r *v1beta1.InstanceStatus) { r.AvailablePodCount = g.Value })
	}
	d.each(c.Admitted, func(r *v1beta1.InstanceStatus) { r.Admitted = true })
	d.each(c.ActiveOrdinalOne, func(r *v1beta1.InstanceStatus) { r.ActiveOrdinal = 1 })
	for i := range c.Entries {
		e := c.Entries[i].DeepCopy()
		place, _ := d.members.find(span{e.Index, e.Index})
		r := &rows[place]
		r.Conditions, r.ReadySince, r.Operation, r.LastFailure, r.Announced = e.Conditions, e.ReadySince, e.Operation, e.LastFailure, e.Announced
	}
}

func (d *decoder) each(set v1beta1.IndexSet, do func(*v1beta1.InstanceStatus)) {
	if set == "" {
		return
	}
	spans, _ := parseSet(string(set)) // checked before
	for _, s := range spans {
		place, _ := d.members.find(s)
		for i := range int(s.size()) {
			do(&d.rows[place+i])
		}
	}
}

func knownPhase(p v1beta1.InstancePhase) bool {
	switch p {
	case v1beta1.InstancePending, v1beta1.InstanceCreating, v1beta1.InstanceReady, v1beta1.InstanceUpdating,
		v1beta1.InstanceRestarting, v1beta1.InstanceMigrating, v1beta1.InstanceFailed, v1beta1.InstanceDeleting:
		return true
	}
	return false
}
