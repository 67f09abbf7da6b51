package analysis

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ome.io/ome/api/v1beta1"
)

// judge compares the worst value of an answer with the threshold. seen is the memory of the series
// that were there before; it comes back with those of the answer in it.
func (m *metric) judge(answer *Answer, seen string) (v1beta1.MetricResult, string, Judgement) {
	r := v1beta1.MetricResult{Name: m.Name, Query: m.query, Threshold: m.Threshold, Operator: string(m.Operator)}
	unclear := func(format string, args ...any) (v1beta1.MetricResult, string, Judgement) {
		r.Message = clip(fmt.Sprintf(format, args...))
		return r, seen, Inconclusive
	}
	threshold, err := strconv.ParseFloat(m.Threshold, 64)
	switch {
	case m.problem != "":
		return unclear("%s", m.problem)
	case err != nil || !usable(threshold):
		return unclear("threshold %q is not a number", m.Threshold)
	case sign(m.Operator) == "":
		return unclear("operator %q is none of LT, LTE, GT, GTE", m.Operator)
	case answer == nil:
		return unclear("no answer")
	case answer.Error != "":
		return unclear("%s", answer.Error)
	case answer.Type != Scalar && answer.Type != Vector:
		return unclear("the query answers with a %s; a number, or one for each series, is needed", answer.Type)
	}
	worst, values := worstOf(m.Operator, answer.Series)
	seen, gone := grow(seen, answer.Series)

	// A value that breaks the threshold is a failure, whatever else is wrong.
	if values > 0 && !holds(worst, m.Operator, threshold) {
		r.Value = number(worst)
		if n := len(answer.Series); n > 1 {
			r.Message = fmt.Sprintf("worst of %d series", n)
		}
		return r, seen, Failed
	}
	switch {
	case len(answer.Series) > MaxSeries:
		return unclear("%d series are more than the %d that are followed; put max, min or sum around the query", len(answer.Series), MaxSeries)
	case values == 0 && gone == 0:
		return unclear("no data%s", unusable(answer.Series))
	case values == 0:
		return unclear("no data: %d series that were there earlier in this step are gone", gone)
	case gone > 0:
		return unclear("%d of the series that were there earlier in this step are gone", gone)
	case values < len(answer.Series):
		return unclear("%d of %d series are NaN or infinite", len(answer.Series)-values, len(answer.Series))
	}
	if w := warning(answer.Warnings); w != "" {
		return unclear("the server warns: %s", w)
	}
	r.Passed, r.Value = true, number(worst)
	return r, seen, Passed
}

// unusable tells an answer without any series from one whose series have no values.
func unusable(series []Series) string {
	if len(series) == 0 {
		return ""
	}
	return fmt.Sprintf(": %d series, all NaN or infinite", len(series))
}

// worstOf is the value that is hardest on the threshold, and how many values there were.
func worstOf(op v1beta1.MetricOperator, series []Series) (worst float64, n int) {
	high := op == v1beta1.MetricLT || op == v1beta1.MetricLTE
	for _, s := range series {
		switch {
		case !usable(s.Value):
			continue
		case n == 0:
			worst = s.Value
		case high:
			worst = math.Max(worst, s.Value)
		default:
			worst = math.Min(worst, s.Value)
		}
		n++
	}
	return worst, n
}

func holds(value float64, op v1beta1.MetricOperator, threshold float64) bool {
	switch op {
	case v1beta1.MetricLT:
		return value < threshold
	case v1beta1.MetricLTE:
		return value <= threshold
	case v1beta1.MetricGT:
		return value > threshold
	case v1beta1.MetricGTE:
		return value >= threshold
	}
	return false
}

func sign(op v1beta1.MetricOperator) string {
	switch op {
	case v1beta1.MetricLT:
		return "<"
	case v1beta1.MetricLTE:
		return "<="
	case v1beta1.MetricGT:
		return ">"
	case v1beta1.MetricGTE:
		return ">="
	}
	return ""
}

// infoPrefix starts a remark on the style of a query, which older servers send among the warnings.
const infoPrefix = "PromQL info:"

func warning(all []string) string {
	for _, w := range all {
		if !strings.HasPrefix(w, infoPrefix) {
			return w
		}
	}
	return ""
}

// maxMessage bounds a message in status.
const maxMessage = 256

// clip makes text from elsewhere one line of bounded length.
func clip(text string) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, strings.ToValidUTF8(text, "?"))
	if len(text) <= maxMessage {
		return text
	}
	cut := maxMessage - len("...")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}
