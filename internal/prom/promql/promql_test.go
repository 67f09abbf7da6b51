package promql

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestReach: a query looks as far back as its farthest selector.
func TestReach(t *testing.T) {
	for query, want := range map[string]time.Duration{
		`up`:                           0,
		`1 + 1`:                        0,
		`time()`:                       0,
		`rate(x_total[5m])`:            5 * time.Minute,
		`rate(x_total[1h30m])`:         90 * time.Minute,
		`x offset 10m`:                 10 * time.Minute,
		`x offset -10m`:                0,
		`rate(x_total[5m] offset 1h)`:  65 * time.Minute,
		`rate(x_total[5m] offset -2m)`: 3 * time.Minute,
		`sum(rate(a_total{code=~"5.."}[2m])) / sum(rate(b_total[7m]))`:         7 * time.Minute,
		`max_over_time(rate(x_total[5m])[1h:1m])`:                              65 * time.Minute,
		`max_over_time(sum(rate(x_total[5m] offset 1m))[1h:] offset 2h)`:       186 * time.Minute,
		`histogram_quantile(0.95, sum by (le) (rate(d_bucket{a="[9d]"}[3m])))`: 3 * time.Minute,
		`rate(x_total[5m] @ end())`:                                            5 * time.Minute,
		`x{revision_hash="8be0917f"} # [9d] in a comment`:                      0,
		`predict_linear(free[1d], 4 * 3600)`:                                   24 * time.Hour,
	} {
		got, err := Reach(query)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", query, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for query, want := range map[string]string{
		``:                                     "no expression",
		`rate(x`:                               "unclosed left parenthesis",
		`rate(x)`:                              "expected type range vector",
		`x{a=~"("}`:                            "error parsing regexp",
		`nosuch(x)`:                            "unknown function",
		`{}`:                                   "",
		`x or "text"`:                          "",
		`x @ 1609746000`:                       ErrFixedTime.Error(),
		`rate(x[5m] @ 1609746000)`:             ErrFixedTime.Error(),
		`max_over_time(x[5m:] @ 7)`:            ErrFixedTime.Error(),
		"x[5x]":                                "",
		strings.Repeat("1+", MaxBytes/2) + "1": "may have",
	} {
		_, err := Parse(query)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want one with %q", query, err, want)
		}
		if want == ErrFixedTime.Error() && !errors.Is(err, ErrFixedTime) {
			t.Errorf("%s: not ErrFixedTime: %v", query, err)
		}
	}
}

func TestType(t *testing.T) {
	for query, want := range map[string]bool{`up`: true, `1`: true, `scalar(up)`: true, `up[5m]`: false, `"text"`: false, `up[5m:1m]`: false} {
		q, err := Parse(query)
		if err != nil || q.Numbers != want || q.Type == "" {
			t.Errorf("%s: %+v, %v; want numbers %v", query, q, err, want)
		}
	}
}

func FuzzReach(f *testing.F) {
	for _, q := range []string{`rate(x[5m])`, `x offset -1h`, `x[5m:1m] @ end()`, `-x`, `a and on(b) c`} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if q, err := Parse(query); err == nil && q.Reach < 0 {
			t.Errorf("%q reaches %s", query, q.Reach)
		}
	})
}
