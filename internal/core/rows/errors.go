package rows

import "fmt"

// Reason is the stable word for why rows do not decode. Metrics, events and
// scripts use it.
type Reason string

const (
	// CardinalityLimit: more rows than the bound, or columns without a bound.
	CardinalityLimit Reason = "cardinality_limit"
	// Coverage: the phases do not cover the members.
	Coverage Reason = "coverage"
	// RangeSyntax: an index set is malformed or not canonical.
	RangeSyntax Reason = "range_syntax"
	// EncodingUnknown: the marker names an encoding this release does not know.
	EncodingUnknown Reason = "encoding_unknown"
	// UnionMixed: the marker, the list and the columns contradict each other.
	UnionMixed Reason = "union_mixed"
	// ColumnsMissing: the marker says ColumnarV2 and there are no columns.
	ColumnsMissing Reason = "columns_missing"
	// IndexOverflow: an index is negative or does not fit 31 bits.
	IndexOverflow Reason = "index_overflow"
	// NotMember: a set names an index that is not in members.
	NotMember Reason = "not_member"
	// Overlap: an index has two values, or two rows.
	Overlap Reason = "overlap"
	// GroupOrder: the values of a column do not strictly ascend.
	GroupOrder Reason = "group_order"
	// GroupValue: a column holds a value it can't hold, or an empty list.
	GroupValue Reason = "group_value"
	// RowOrder: the row order is not a permutation of the members, or says no
	// more than ascending order.
	RowOrder Reason = "row_order"
	// EntryOrder: entries are not strictly ascending by index.
	EntryOrder Reason = "entry_order"
	// EntryEmpty: an entry, or a list in it, holds nothing.
	EntryEmpty Reason = "entry_empty"
)

// Reasons lists every reason.
func Reasons() []Reason {
	return []Reason{CardinalityLimit, Coverage, RangeSyntax, EncodingUnknown, UnionMixed, ColumnsMissing, IndexOverflow,
		NotMember, Overlap, GroupOrder, GroupValue, RowOrder, EntryOrder, EntryEmpty}
}

// DecodeError says where stored rows are not what this release writes.
type DecodeError struct {
	Reason Reason
	// Field is the path under status.
	Field string
	// Detail names the value and the way out.
	Detail string
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("status.%s: %s (%s)", e.Field, e.Detail, e.Reason)
}

func fault(r Reason, format string, args ...any) *DecodeError {
	return &DecodeError{Reason: r, Detail: fmt.Sprintf(format, args...)}
}

// at fills in the field of a fault.
func (e *DecodeError) at(format string, args ...any) *DecodeError {
	e.Field = fmt.Sprintf(format, args...)
	return e
}
