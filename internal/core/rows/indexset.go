package rows

import (
	"math"
	"strconv"
	"strings"
)

// span is a closed range of indexes.
type span struct{ first, last int32 }

func (s span) size() int64 { return int64(s.last) - int64(s.first) + 1 }

// parseSet reads a canonical index set: spans ascend, are disjoint and do not
// touch. Nothing is expanded. The error is a bare *DecodeError without a field.
func parseSet(text string) ([]span, *DecodeError) {
	if text == "" {
		return nil, fault(RangeSyntax, "the set is empty; leave it out or name an index")
	}
	spans := make([]span, 0, strings.Count(text, ",")+1)
	next := int64(0) // the least index that may follow
	for rest, more := text, true; more; {
		var term string
		term, rest, more = strings.Cut(rest, ",")
		from, to, ranged := strings.Cut(term, "-")
		first, err := parseIndex(from)
		if err != nil {
			return nil, err
		}
		last := first
		if ranged {
			if last, err = parseIndex(to); err != nil {
				return nil, err
			}
			if last <= first {
				return nil, fault(RangeSyntax, "range %q must have its first index below its last", term)
			}
		}
		if int64(first) < next {
			return nil, fault(RangeSyntax, "term %q must start at %d or later: terms ascend and neighbours are one range", term, next)
		}
		next = int64(last) + 2
		spans = append(spans, span{first, last})
	}
	return spans, nil
}

func parseIndex(s string) (int32, *DecodeError) {
	if s == "" || len(s) > 1 && s[0] == '0' {
		return 0, fault(RangeSyntax, "%q is not an index: write decimal digits without a leading zero", clip(s))
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, fault(RangeSyntax, "%q is not an index: write decimal digits without a leading zero", clip(s))
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > math.MaxInt32 {
		return 0, fault(IndexOverflow, "%q is above the largest index %d", clip(s), math.MaxInt32)
	}
	return int32(n), nil
}

// clip keeps an error short when the text is not.
func clip(s string) string {
	const most = 32
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

func cardinality(spans []span) int64 {
	var n int64
	for _, s := range spans {
		n += s.size()
	}
	return n
}

// setBuilder collects ascending indexes into a canonical set.
type setBuilder struct{ spans []span }

func (b *setBuilder) add(index int32) {
	if n := len(b.spans); n > 0 && int64(b.spans[n-1].last)+1 == int64(index) {
		b.spans[n-1].last = index
		return
	}
	b.spans = append(b.spans, span{index, index})
}

func (b *setBuilder) String() string {
	out := make([]byte, 0, 8*len(b.spans))
	for i, s := range b.spans {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, int64(s.first), 10)
		if s.last != s.first {
			out = append(out, '-')
			out = strconv.AppendInt(out, int64(s.last), 10)
		}
	}
	return string(out)
}

// memberSet finds the place of an index in the ascending list of members.
type memberSet struct {
	spans []span
	base  []int // place of each span's first index
	count int
}

func newMemberSet(spans []span) memberSet {
	m := memberSet{spans: spans, base: make([]int, len(spans))}
	for i, s := range spans {
		m.base[i] = m.count
		m.count += int(s.size())
	}
	return m
}

// find returns the place of s.first, and false unless all of s are members.
// Members are merged spans, so a range of members lies inside one of them.
func (m memberSet) find(s span) (int, bool) {
	low, high := 0, len(m.spans)
	for low < high {
		mid := (low + high) / 2
		if m.spans[mid].last < s.first {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == len(m.spans) || m.spans[low].first > s.first || m.spans[low].last < s.last {
		return 0, false
	}
	return m.base[low] + int(s.first-m.spans[low].first), true
}

// indexes lists all members in ascending order.
func (m memberSet) indexes() []int32 {
	out := make([]int32, 0, m.count)
	for _, s := range m.spans {
		for i := int64(s.first); i <= int64(s.last); i++ {
			out = append(out, int32(i))
		}
	}
	return out
}
