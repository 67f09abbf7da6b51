package promql

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// MaxBytes bounds a query, as a template and filled in.
const MaxBytes = 16 << 10

// grammar takes all that a current server may have switched on, but for durations that are
// worked out in the query: what they reach can't be told from outside.
var grammar = parser.NewParser(parser.Options{
	EnableExperimentalFunctions:  true,
	EnableExtendedRangeSelectors: true,
	EnableBinopFillModifiers:     true,
})

// ErrFixedTime says that a query looks at one moment for ever.
var ErrFixedTime = errors.New("a selector is fixed to one moment by @; leave @ out, since a step is judged by what happens in it")

// Query is what can be told of a query without running it.
type Query struct {
	// Reach is the longest way back from the moment of evaluation: ranges and offsets, added
	// up where a subquery holds another.
	Reach time.Duration
	// Numbers is true when the answer is a scalar or one number for each series.
	Numbers bool
	// Type is the type of the answer in the words of PromQL.
	Type string
}

// Parse reads a query.
func Parse(text string) (Query, error) {
	if len(text) > MaxBytes {
		return Query{}, fmt.Errorf("%d bytes are more than the %d that a query may have", len(text), MaxBytes)
	}
	expr, err := grammar.ParseExpr(text)
	if err != nil {
		return Query{}, err
	}
	reach, err := back(expr, 0)
	if err != nil {
		return Query{}, err
	}
	kind := expr.Type()
	return Query{
		Reach:   max(reach, 0), // an offset may be negative
		Numbers: kind == parser.ValueTypeScalar || kind == parser.ValueTypeVector,
		Type:    parser.DocumentedType(kind),
	}, nil
}

// Reach is how far back a query looks.
func Reach(text string) (time.Duration, error) {
	q, err := Parse(text)
	return q.Reach, err
}

// back walks down to the selectors. so is what the subqueries above add.
func back(node parser.Node, so time.Duration) (time.Duration, error) {
	fixed := false
	switch n := node.(type) {
	case *parser.VectorSelector:
		so += n.OriginalOffset
		fixed = n.Timestamp != nil
	case *parser.MatrixSelector:
		so += n.Range
	case *parser.SubqueryExpr:
		so += n.Range + n.OriginalOffset
		fixed = n.Timestamp != nil
	}
	if fixed {
		return 0, ErrFixedTime
	}
	longest, first := so, true
	for child := range parser.ChildrenIter(node) {
		reach, err := back(child, so)
		if err != nil {
			return 0, err
		}
		if first || reach > longest {
			longest, first = reach, false
		}
	}
	return longest, nil
}
