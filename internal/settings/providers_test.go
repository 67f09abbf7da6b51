package settings

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ome.io/ome/internal/core/config"
)

func TestMetricProviders(t *testing.T) {
	type bindings = map[string]config.MetricProvider
	main := config.MetricProvider{ServerAddress: "http://prom:9090"}
	known := config.Default()
	known.MetricProviders = bindings{"main": {ServerAddress: "http://old:9090"}}
	for _, c := range []struct {
		name     string
		data     map[string]string
		lastGood *config.Settings
		want     bindings
		problems []string
	}{
		{"none", nil, nil, nil, nil},
		{"empty", map[string]string{"metricProviders": " "}, nil, nil, nil},
		{"one", map[string]string{"metricProviders": `{"main":{"serverAddress":"http://prom:9090"}}`}, nil, bindings{"main": main}, nil},
		{"all fields", map[string]string{"metricProviders": `{"m":{"serverAddress":"https://p","authSecretRef":{"name":"s","key":"k"},"headers":{"X":"a"}}}`}, nil,
			bindings{"m": {ServerAddress: "https://p", AuthSecretRef: &config.SecretKey{Name: "s", Key: "k"}, Headers: map[string]string{"X": "a"}}}, nil},
		{"a broken one leaves the others", map[string]string{"metricProviders": `{"a":{},"b":7,"c":{"serverAddress":"prom:9090"},"d":{"serverAddress":"http://p","authSecretRef":{"name":"s"}},"e":{"serverAddress":5},"main":{"serverAddress":"http://prom:9090"}}`}, nil,
			bindings{"main": main}, []string{
				`metricProviders: a: serverAddress "": must be a URL such as http://prometheus.monitoring.svc:9090; the provider is unbound`,
				`metricProviders: b: must be a JSON object with serverAddress; the provider is unbound`,
				`metricProviders: c: serverAddress "prom:9090": must be a URL such as http://prometheus.monitoring.svc:9090; the provider is unbound`,
				`metricProviders: d: authSecretRef: needs both name and key; the provider is unbound`,
				`metricProviders: e: {"serverAddress":5}: must have the form {serverAddress, authSecretRef: {name, key}, headers}; the provider is unbound`,
			}},
		{"a broken one keeps its last good form", map[string]string{"metricProviders": `{"main":{}}`}, &known, known.MetricProviders,
			[]string{`metricProviders: main: serverAddress "": must be a URL such as http://prometheus.monitoring.svc:9090; using the last good value`}},
		{"one that was removed is unbound", map[string]string{"metricProviders": `{}`}, &known, nil, nil},
		{"no JSON", map[string]string{"metricProviders": `{`}, &known, known.MetricProviders,
			[]string{`metricProviders: not a JSON object: unexpected EOF; using the last good value`}},
		{"older place", map[string]string{"autoscalerPolicy": `{"metricProviders":{"main":{"serverAddress":"http://prom:9090"}}}`}, nil, bindings{"main": main}, nil},
		{"older place without any", map[string]string{"autoscalerPolicy": `{"other":1}`}, nil, nil, nil},
		{"both places", map[string]string{"metricProviders": `{}`, "autoscalerPolicy": `{"metricProviders":{"main":{"serverAddress":"http://prom:9090"}}}`}, nil, nil, nil},
		{"older place, broken", map[string]string{"autoscalerPolicy": `{"metricProviders":[]}`}, nil, nil,
			[]string{`autoscalerPolicy: metricProviders: must be a JSON object; using the default`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := Parse(c.data, c.lastGood)
			if diff := cmp.Diff(c.want, got.MetricProviders); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.problems, messages(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			again, err := Decode(Encode(got))
			if diff := cmp.Diff(got, again); err != nil || diff != "" {
				t.Errorf("encoded and decoded: %v\n%s", err, diff)
			}
		})
	}
}
