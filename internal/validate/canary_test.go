package validate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"ome.io/ome/api/v1beta1"
)

func step(capacity intstr.IntOrString, traffic int32, change ...func(*v1beta1.RolloutGroupStep)) v1beta1.RolloutGroupStep {
	s := v1beta1.RolloutGroupStep{Capacity: capacity, Traffic: traffic}
	for _, c := range change {
		c(&s)
	}
	return s
}

// finalStep is one that nothing is wrong with.
func finalStep() v1beta1.RolloutGroupStep { return step(*pct("100%"), 100) }

func duration(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func paused(d *metav1.Duration) func(*v1beta1.RolloutGroupStep) {
	return func(s *v1beta1.RolloutGroupStep) { s.Pause = &v1beta1.RolloutPause{Duration: d} }
}

// canaryOf puts engine and decoder into a canary of these steps.
func canaryOf(steps ...v1beta1.RolloutGroupStep) edit {
	return canaryWith(func(c *v1beta1.GroupCanary) { c.Steps = steps })
}

func canaryWith(change func(*v1beta1.GroupCanary)) edit {
	return groups(with(canaryGroup(engine, decoder), func(g *v1beta1.RolloutGroup) { change(g.Canary) }))
}

// analysed is a last step with an analysis of one metric.
func analysed(change func(*v1beta1.RolloutAnalysis)) edit {
	return canaryOf(step(*pct("100%"), 100, func(s *v1beta1.RolloutGroupStep) {
		s.Analysis = &v1beta1.RolloutAnalysis{Interval: *duration(30 * time.Second), FailureLimit: 3, Metrics: []v1beta1.AnalysisMetric{
			{Name: "error-rate", Query: `sum(rate(errors_total{revision_hash="{{.CanaryRevision}}"}[5m]))`, Operator: v1beta1.MetricLT, Threshold: "0.01"},
		}}
		change(s.Analysis)
	}))
}

func metricWith(change func(*v1beta1.AnalysisMetric)) edit {
	return analysed(func(a *v1beta1.RolloutAnalysis) { change(&a.Metrics[0]) })
}

func asks(query string) edit { return metricWith(func(m *v1beta1.AnalysisMetric) { m.Query = query }) }

func prometheus(p v1beta1.AnalysisPrometheus) edit {
	return canaryWith(func(c *v1beta1.GroupCanary) { c.Prometheus = &p })
}

func inFlight(hash string) edit {
	return func(s *v1beta1.InferenceService) {
		s.Status.Components = map[v1beta1.ComponentType]v1beta1.ComponentStatus{engine: {Canary: &v1beta1.CanaryStatus{CanaryRevisionHash: hash}}}
	}
}

// canaryCases are the rules of canary groups and of analysis; their verdicts are in
// testdata/canary.golden.
var canaryCases = []struct {
	name   string
	before edit
	change edit
}{
	{name: "three good steps", change: canaryOf(
		step(*pct("0%"), 0), step(*pct("25%"), 10, paused(nil)), step(*num(2), 50, paused(duration(time.Minute))), finalStep())},
	{name: "a lone step is a gate", change: canaryOf(step(*pct("100%"), 100, paused(nil)))},
	{name: "a pause of zero", change: canaryOf(step(*pct("100%"), 100, paused(duration(0))))},

	{name: "no steps", change: canaryOf()},
	{name: "the last traffic isn't 100", change: canaryOf(step(*pct("100%"), 99))},
	{name: "the last traffic is zero", change: canaryOf(step(*pct("100%"), 0))},
	{name: "the last percentage isn't 100", change: canaryOf(step(*pct("99%"), 100))},
	{name: "the last capacity is a count", change: canaryOf(step(*num(3), 100))},
	{name: "the last capacity is no Instance", change: canaryOf(step(*num(0), 100))},
	{name: "traffic falls", change: canaryOf(step(*pct("25%"), 20), step(*pct("50%"), 10), finalStep())},
	{name: "traffic without capacity", change: canaryOf(step(*pct("0%"), 1), step(*num(0), 2), finalStep())},
	{name: "capacity by a quoted count", change: canaryOf(step(*pct("3"), 0), finalStep())},
	{name: "capacity by a fraction", change: canaryOf(step(*pct("2.5%"), 0), finalStep())},
	{name: "capacity above all", change: canaryOf(step(*pct("101%"), 0), finalStep())},
	{name: "capacity with a sign", change: canaryOf(step(*pct("+5%"), 0), finalStep())},
	{name: "capacity with a blank", change: canaryOf(step(*pct("5 %"), 0), finalStep())},
	{name: "capacity of nothing", change: canaryOf(step(*pct(""), 0), finalStep())},
	{name: "capacity below zero", change: canaryOf(step(*num(-1), 0), finalStep())},
	{name: "a pause below zero", change: canaryOf(step(*pct("25%"), 10, paused(duration(-time.Second))), finalStep())},
	{name: "a ready timeout of zero", change: canaryWith(func(c *v1beta1.GroupCanary) { c.ReadyTimeout = duration(0) })},
	{name: "a ready timeout below zero", change: canaryWith(func(c *v1beta1.GroupCanary) { c.ReadyTimeout = duration(-time.Minute) })},
	{name: "a scale-down delay below zero", change: canaryWith(func(c *v1beta1.GroupCanary) { c.ScaleDownDelaySeconds = ptr.To[int32](-1) })},
	{name: "a scale-down delay of zero", change: canaryWith(func(c *v1beta1.GroupCanary) { c.ScaleDownDelaySeconds = ptr.To[int32](0) })},
	{name: "a step like the one before warns", change: canaryOf(step(*pct("25%"), 10, paused(nil)), step(*pct("25%"), 10, paused(nil)), finalStep())},
	{name: "the same capacity behind another gate", change: canaryOf(step(*pct("25%"), 10, paused(nil)), step(*pct("25%"), 10), finalStep())},
	{name: "capacity that falls warns", change: canaryOf(step(*pct("50%"), 10), step(*pct("25%"), 10), step(*num(3), 20), step(*num(2), 20), finalStep())},

	{name: "a component that is none", change: groups(canaryGroup(engine, decoder, "encoder"))},
	{name: "a component that isn't declared", change: both(func(s *v1beta1.InferenceService) { s.Spec.Router = nil }, groups(canaryGroup(router)))},
	{name: "engine without decoder", change: groups(canaryGroup(engine))},
	{name: "decoder without engine", change: groups(canaryGroup(decoder))},
	{name: "router and engine without decoder", change: groups(canaryGroup(router, engine))},
	{name: "engine alone where there is no decoder", change: both(func(s *v1beta1.InferenceService) { s.Spec.Decoder = nil }, groups(canaryGroup(engine)))},
	{name: "all three in one group", change: groups(canaryGroup(router, engine, decoder))},
	{name: "a canary of the router beside one of the others", change: both(concurrently, groups(canaryGroup(router), canaryGroup(engine, decoder)))},
	{name: "two canaries of one unit", change: both(concurrently, groups(canaryGroup(engine), canaryGroup(decoder)))},
	{name: "two canaries of the router", change: both(concurrently, groups(canaryGroup(router), canaryGroup(router, engine, decoder)))},
	{name: "a ratio", change: groups(with(canaryGroup(engine, decoder), func(g *v1beta1.RolloutGroup) { g.MaintainRatio = &v1beta1.MaintainRatio{} }))},
	{name: "a member that scales to zero", change: both(canaryOf(finalStep()), func(s *v1beta1.InferenceService) { s.Spec.Engine.MinReplicas = ptr.To(0) })},
	{name: "a policy of canaries has the rules of membership", change: groups(with(group(engine), func(g *v1beta1.RolloutGroup) {
		g.PolicyRef = &v1beta1.RolloutPolicyRef{Name: "slow", Progression: v1beta1.ProgressionCanary, Kind: v1beta1.RolloutPolicyKind}
	}))},

	{name: "a good analysis", change: analysed(func(*v1beta1.RolloutAnalysis) {})},
	{name: "an interval of zero", change: analysed(func(a *v1beta1.RolloutAnalysis) { a.Interval.Duration = 0 })},
	{name: "an interval below zero", change: analysed(func(a *v1beta1.RolloutAnalysis) { a.Interval.Duration = -time.Second })},
	{name: "an initial delay below zero", change: analysed(func(a *v1beta1.RolloutAnalysis) { a.InitialDelay = duration(-time.Second) })},
	{name: "an initial delay of zero", change: analysed(func(a *v1beta1.RolloutAnalysis) { a.InitialDelay = duration(0) })},
	{name: "a pause for ever beside an analysis warns", change: both(analysed(func(*v1beta1.RolloutAnalysis) {}), func(s *v1beta1.InferenceService) {
		s.Spec.Rollout.Groups[0].Canary.Steps[0].Pause = &v1beta1.RolloutPause{}
	})},
	{name: "a metric without a name", change: metricWith(func(m *v1beta1.AnalysisMetric) { m.Name = "" })},
	{name: "a metric without a query", change: asks("")},
	{name: "a blank query", change: asks(" \n")},
	{name: "a threshold that is no number", change: metricWith(func(m *v1beta1.AnalysisMetric) { m.Threshold = "1%" })},
	{name: "no threshold", change: metricWith(func(m *v1beta1.AnalysisMetric) { m.Threshold = "" })},
	{name: "a threshold of NaN", change: metricWith(func(m *v1beta1.AnalysisMetric) { m.Threshold = "NaN" })},
	{name: "a threshold without bound", change: metricWith(func(m *v1beta1.AnalysisMetric) { m.Threshold = "-Inf" })},
	{name: "a threshold out of range", change: metricWith(func(m *v1beta1.AnalysisMetric) { m.Threshold = "1e999" })},
	{name: "a threshold below zero", change: metricWith(func(m *v1beta1.AnalysisMetric) { m.Threshold = "-1.5e-3" })},
	{name: "a template that isn't closed", change: asks(`up{a="{{.Namespace}"}`)},
	{name: "a field that is none", change: asks(`up{a="{{.Revision}}"}`)},
	{name: "a function that is none of ours", change: asks(`up{a="{{printf "%s" .Namespace}}"}`)},
	{name: "no PromQL", change: asks(`sum(rate(errors_total[5m])`)},
	{name: "no PromQL once it is filled in", change: asks(`up{component={{.Component}}}`)},
	{name: "PromQL for each component", change: asks(`{{if eq .Component "engine"}}up{{else}}((({{end}}`)},
	{name: "a range vector warns", change: asks(`errors_total[5m]`)},
	{name: "a text warns", change: asks(`"text"`)},
	{name: "one moment for ever warns", change: asks(`errors_total @ 1609746000`)},

	{name: "a server of its own", change: prometheus(v1beta1.AnalysisPrometheus{ServerAddress: "https://prom.example/prometheus"})},
	{name: "an address that is none", change: prometheus(v1beta1.AnalysisPrometheus{ServerAddress: "prom:9090"})},
	{name: "a password in the address", change: prometheus(v1beta1.AnalysisPrometheus{ServerAddress: "http://a:pa55word@prom"})},
	{name: "a query in the address", change: prometheus(v1beta1.AnalysisPrometheus{ServerAddress: "http://prom/?q=1"})},
	{name: "a fragment in the address", change: prometheus(v1beta1.AnalysisPrometheus{ServerAddress: "http://prom/#q"})},
	{name: "headers", change: prometheus(v1beta1.AnalysisPrometheus{Headers: map[string]string{"X-Scope-OrgID": "a", "Authorization": "Bearer x", "host": "b", "TE": "x", "X A": "y"}})},
	{name: "a token from nowhere", change: prometheus(v1beta1.AnalysisPrometheus{AuthRef: &corev1.SecretKeySelector{Key: "token"}})},

	{name: "a stored canary takes an unrelated edit", before: canaryOf(), change: both(canaryOf(), func(s *v1beta1.InferenceService) {
		s.Spec.Router.MaxReplicas = ptr.To(9)
	})},
	{name: "a stored canary is judged when the rollout is edited", before: canaryOf(), change: both(canaryOf(), concurrently)},
	{name: "a member of a stored canary starts to scale to zero", before: canaryOf(finalStep()), change: both(canaryOf(finalStep()), func(s *v1beta1.InferenceService) {
		s.Spec.Decoder.MinReplicas = ptr.To(0)
	})},

	{name: "promote", change: annotate(v1beta1.RolloutPromoteAnnotation, "8be0917f")},
	{name: "promote of six", change: annotate(v1beta1.RolloutPromoteAnnotation, "abc123")},
	{name: "promote of five", change: annotate(v1beta1.RolloutPromoteAnnotation, "abc12")},
	{name: "promote in capitals", change: annotate(v1beta1.RolloutPromoteAnnotation, "8BE0917F")},
	{name: "promote of nothing", change: annotate(v1beta1.RolloutPromoteAnnotation, "")},
	{name: "rollback", change: annotate(v1beta1.RolloutRollbackAnnotation, "true")},
	{name: "rollback that isn't", change: annotate(v1beta1.RolloutRollbackAnnotation, "false")},
	{name: "rollback by another word", change: annotate(v1beta1.RolloutRollbackAnnotation, "yes")},
	{name: "rollback of one canary in flight", change: both(inFlight("8be0917f"), annotate(v1beta1.RolloutRollbackAnnotation, "8be0917f"))},
	{name: "rollback of a canary that isn't in flight", change: both(inFlight("8be0917f"), annotate(v1beta1.RolloutRollbackAnnotation, "banana"))},
	{name: "rollback of nothing", change: both(inFlight(""), annotate(v1beta1.RolloutRollbackAnnotation, ""))},
	{name: "rollback in capitals", change: annotate(v1beta1.RolloutRollbackAnnotation, "True")},
}

func TestCanaryMessages(t *testing.T) {
	var b strings.Builder
	found, seen := map[string]bool{}, map[string]bool{}
	for _, tc := range canaryCases {
		if seen[tc.name] {
			t.Fatalf("two cases are called %q", tc.name)
		}
		seen[tc.name] = true
		var old *v1beta1.InferenceService
		if tc.before != nil {
			old = sample(t)
			tc.before(old)
		}
		s := sample(t)
		tc.change(s)
		r := InferenceService(s, old, Options{PoliciesServed: true})
		fmt.Fprintf(&b, "%s\n%s", tc.name, verdict(r))
		for _, p := range slices.Concat(r.Errors, r.Warnings) {
			found[p.Code] = true
			if p.Code != "" && !strings.HasSuffix(p.String(), " ("+p.Code+")") {
				t.Errorf("%q does not end in its code", p)
			}
			if strings.Contains(p.String(), "pa55word") {
				t.Errorf("a message repeats a password: %q", p)
			}
		}
	}
	for _, code := range []string{CodeCanaryInvalid, CodeMultipleCanaryGroups, CodeAnalysisInvalid} {
		if !found[code] {
			t.Errorf("no case for %s", code)
		}
	}
	golden(t, "canary.golden", b.String())
}

// The lines whose words are fixed.
func TestFixedLines(t *testing.T) {
	where := "spec.rollout.groups[0].canary"
	for _, tc := range []struct {
		change edit
		want   string
	}{
		{analysed(func(a *v1beta1.RolloutAnalysis) { a.Interval.Duration = 0 }), where + `.steps[0].analysis: interval must be > 0 (AnalysisInvalid)`},
		{metricWith(func(m *v1beta1.AnalysisMetric) { m.Name = "" }), where + `.steps[0].analysis.metrics[0].name must not be empty (AnalysisInvalid)`},
		{asks("  "), where + `.steps[0].analysis.metrics[0] ("error-rate"): query must not be empty (AnalysisInvalid)`},
		{metricWith(func(m *v1beta1.AnalysisMetric) { m.Threshold = "low" }), where + `.steps[0].analysis.metrics[0] ("error-rate"): threshold "low" must be numeric (AnalysisInvalid)`},
	} {
		s := sample(t)
		tc.change(s)
		if got := InferenceService(s, nil, Options{}).Denial(); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
	for change, want := range map[*v1beta1.RolloutGroup]string{
		ptr.To(canaryGroup(engine)):  `a canary group naming either must name both`,
		ptr.To(canaryGroup(decoder)): `must include its entrypoint Component "engine"`,
	} {
		s := sample(t)
		groups(*change)(s)
		if got := InferenceService(s, nil, Options{}).Denial(); !strings.Contains(got, want) || !strings.HasSuffix(got, "(CanaryInvalid)") {
			t.Errorf("%s lacks %s", got, want)
		}
	}
}

// A policy's canary has the same rules under its own path, and its queries must do for any component.
func TestCanaryOfAPolicy(t *testing.T) {
	s := sample(t)
	asks(`{{if eq .Component "router"}}((({{else}}up{{end}}`)(s)
	if r := InferenceService(s, nil, Options{}); !r.OK() {
		t.Errorf("of an engine: %s", r.Denial())
	}
	var r Result
	checkCanary(&r, "spec.canary", s.Spec.Rollout.Groups[0].Canary, v1beta1.Components()...)
	if got := r.Denial(); !strings.HasPrefix(got, `spec.canary.steps[0].analysis.metrics[0] ("error-rate"): query: not PromQL`) || !strings.HasSuffix(got, "(AnalysisInvalid)") {
		t.Errorf("of a policy: %s", got)
	}
}
