package view

import (
	"strings"
	"testing"

	"ome.io/ome/api/v1beta1"
)

// TestRolloutQueryReport: a row a metric, and usable only when each gave a value.
func TestRolloutQueryReport(t *testing.T) {
	s := &v1beta1.InferenceService{}
	s.Name, s.Namespace = "chat", "prod"
	good := v1beta1.MetricResult{Name: "error-rate", Passed: true, Value: "0.4", Operator: "LT", Threshold: "1", Query: "up"}
	bad := v1beta1.MetricResult{Name: "p95", Value: "2.5", Operator: "LT", Threshold: "2", Query: "slow"}
	none := v1beta1.MetricResult{Name: "gone", Operator: "LT", Threshold: "2", Message: "no data\x1b[2J"}
	source := v1beta1.MetricResult{Name: "prometheus", Message: "no metrics server"}
	draw := func(table *Table) string {
		var b strings.Builder
		if err := table.Write(&b, 0); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, c := range []struct {
		tried  []Tried
		usable bool
		table  string
	}{
		{[]Tried{{0, 2, []v1beta1.MetricResult{good, bad}}}, true,
			"GROUP   STEP   METRIC       RESULT   VALUE   MUST BE   MESSAGE\n" +
				"0       2      error-rate   Passed   0.4     LT 1      -\n" +
				"0       2      p95          Failed   2.5     LT 2      -\n"},
		{[]Tried{{0, 1, []v1beta1.MetricResult{good}}, {1, 3, []v1beta1.MetricResult{none}}}, false,
			"GROUP   STEP   METRIC       RESULT         VALUE   MUST BE   MESSAGE\n" +
				"0       1      error-rate   Passed         0.4     LT 1      -\n" +
				"1       3      gone         Inconclusive   -       LT 2      no data [2J\n"},
		{[]Tried{{0, 1, []v1beta1.MetricResult{source}}}, false,
			"GROUP   STEP   METRIC       RESULT         VALUE   MUST BE   MESSAGE\n" +
				"0       1      prometheus   Inconclusive   -       -         no metrics server\n"},
	} {
		r := BuildRolloutQuery(s, c.tried, now)
		if got := draw(RolloutQueryTable(r)); got != c.table || r.Content.Usable != c.usable || (len(r.Warnings) == 0) != c.usable {
			t.Errorf("usable %t:\n%s\nwant\n%s", r.Content.Usable, got, c.table)
		}
		if wide := draw(RolloutQueryWide(r)); !strings.Contains(strings.SplitN(wide, "\n", 2)[0], "QUERY") {
			t.Errorf("no query in:\n%s", wide)
		}
	}
}
