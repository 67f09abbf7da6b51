package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"ome.io/ome/internal/core/config"
)

func messages(problems []Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Error())
	}
	return out
}

func TestParse(t *testing.T) {
	lastGood := config.Default()
	lastGood.Lifecycle.InstanceReadyTimeout = 7 * time.Minute
	lastGood.Lifecycle.RevisionHistoryLimit = 4
	lastGood.Deploy.UpdateStrategy.Engine.MaxSurge = intstr.FromInt32(3)

	two := intstr.FromInt32(2)
	tests := map[string]struct {
		data     map[string]string
		change   func(*config.Settings)
		problems []string
	}{
		"nothing": {},
		"unknown keys and fields are ignored": {
			data: map[string]string{"ingress": "not json", "lifecycle": `{"audit":{"maxInFlightMigrations":3},"later":true}`},
		},
		"blank key counts as missing": {data: map[string]string{"lifecycle": " \n"}},
		"every kind of field": {
			data: map[string]string{
				"lifecycle":           `{"instanceReadyTimeout":"5m","updateRetry":{"maxAttempts":5},"autoMigrate":{"maxAttempts":0},"audit":{"window":"2h"},"forceDelete":{"overdueSlack":"30s","nodeUnreachableThreshold":"5m"},"requeue":{"operation":"2s"},"teardown":{"deadline":"1h"},"maxOpenOperations":50}`,
				"deploy":              `{"terminationGracePeriodSeconds":90,"replicas":{"defaultMinReplicas":2,"defaultMaxReplicas":{"router":9}},"updateStrategy":{"decoder":{"type":"RecreatePod","maxUnavailable":1}}}`,
				"omenativeStatus":     `{"instanceStatusEncoding":"DenseV1"}`,
				"podDisruptionBudget": `{"omeNative":{"minAvailable":2}}`,
				"rollout":             `{"maxConcurrentServices":6}`,
				"coordination":        `{"defaultRatioTolerancePercent":0}`,
				"canaryAnalysis":      `{"bundledPrometheusAddress":"","defaultProvider":"main","queryTimeout":"2s","maxConcurrency":3,"cacheTTL":"1m","allowedServerAddresses":["*.monitoring.svc","127.0.0.0/8"]}`,
			},
			change: func(s *config.Settings) {
				s.Lifecycle.InstanceReadyTimeout = 5 * time.Minute
				s.Lifecycle.UpdateRetry.MaxAttempts = 5
				s.Lifecycle.AutoMigrate.MaxAttempts = 0
				s.Lifecycle.Audit.Window = 2 * time.Hour
				s.Lifecycle.ForceDelete = config.ForceDelete{OverdueSlack: 30 * time.Second, NodeUnreachableThreshold: 5 * time.Minute}
				s.Lifecycle.Requeue.Operation = 2 * time.Second
				s.Lifecycle.TeardownDeadline = time.Hour
				s.Lifecycle.MaxOpenOperations = 50
				s.Deploy.TerminationGracePeriodSeconds = 90
				s.Deploy.DefaultMinReplicas = 2
				s.Deploy.DefaultMaxReplicas.Router = 9
				s.Deploy.UpdateStrategy.Decoder.Type = "RecreatePod"
				s.Deploy.UpdateStrategy.Decoder.MaxUnavailable = intstr.FromInt32(1)
				s.InstanceStatus.Encoding = "DenseV1"
				s.PodDisruptionBudget.OMENative = config.DisruptionBudget{MinAvailable: &two}
				s.Rollout.MaxConcurrentServices = 6
				s.Coordination.DefaultRatioTolerancePercent = 0
				s.CanaryAnalysis = config.CanaryAnalysis{DefaultProvider: "main", QueryTimeout: 2 * time.Second, MaxConcurrency: 3,
					CacheTTL: time.Minute, AllowedServerAddresses: []string{"*.monitoring.svc", "127.0.0.0/8"}}
			},
		},
		"null turns a setting off": {
			data: map[string]string{"lifecycle": `{"instanceReadyTimeout":null,"revisionHistoryLimit":null,"autoMigrate":{"maxAttempts":null},"audit":{"window":null},"forceDelete":{"overdueSlack":null}}`, "podDisruptionBudget": `{"omeNative":null}`},
			change: func(s *config.Settings) {
				s.Lifecycle.InstanceReadyTimeout = 0
				s.Lifecycle.RevisionHistoryLimit = 0
				s.Lifecycle.AutoMigrate.MaxAttempts = 0
				s.Lifecycle.Audit.Window = 0
				s.PodDisruptionBudget.OMENative = config.DisruptionBudget{}
			},
		},
		"a bad value disables only itself": {
			data: map[string]string{"lifecycle": `{"instanceReadyTimeout":30,"stuckPodGracePeriod":"2m","revisionHistoryLimit":0}`},
			change: func(s *config.Settings) {
				s.Lifecycle.InstanceReadyTimeout = 7 * time.Minute
				s.Lifecycle.StuckPodGracePeriod = 2 * time.Minute
				s.Lifecycle.RevisionHistoryLimit = 4
			},
			problems: []string{
				`lifecycle: instanceReadyTimeout: 30: must be a duration with a unit, such as "30m"; using the last good value`,
				`lifecycle: revisionHistoryLimit: 0: must be a whole number, 1 or more; using the last good value`,
			},
		},
		"a bad key keeps its whole last good value and no other": {
			data: map[string]string{"lifecycle": `{`, "rollout": `{"defaultReadyTimeout":"1m"}`},
			change: func(s *config.Settings) {
				s.Lifecycle.InstanceReadyTimeout = 7 * time.Minute
				s.Lifecycle.RevisionHistoryLimit = 4
				s.Rollout.DefaultReadyTimeout = time.Minute
			},
			problems: []string{"lifecycle: not a JSON object: unexpected EOF; using the last good value"},
		},
		"bad values of the analysis keep its defaults": {
			data: map[string]string{"canaryAnalysis": `{"bundledPrometheusAddress":"prom:9090","queryTimeout":"0s","maxConcurrency":0,"cacheTTL":null,"allowedServerAddresses":["http://prom"],"defaultProvider":7}`},
			problems: []string{
				`canaryAnalysis: bundledPrometheusAddress: "prom:9090": must be a URL such as http://prometheus.monitoring.svc:9090; using the last good value`,
				`canaryAnalysis: defaultProvider: 7: must be a text; using the last good value`,
				`canaryAnalysis: queryTimeout: "0s": must be above zero; using the last good value`,
				`canaryAnalysis: maxConcurrency: 0: must be a whole number from 1 to 1000; using the last good value`,
				`canaryAnalysis: cacheTTL: null: must be a duration with a unit, such as "30m"; using the last good value`,
				`canaryAnalysis: allowedServerAddresses: ["http://prom"]: "http://prom" is neither a host pattern such as "*.monitoring.svc" nor a network such as "10.0.0.0/8"; using the last good value`,
			},
		},
		"text after the object": {
			data: map[string]string{"coordination": `{} {}`},
			problems: []string{
				"coordination: not a JSON object: something follows it; using the last good value",
			},
		},
		"a parent that is no object is reported once": {
			data: map[string]string{"deploy": `{"updateStrategy":{"engine":"SurgeThenDrain"}}`},
			change: func(s *config.Settings) {
				s.Deploy.UpdateStrategy.Engine.MaxSurge = intstr.FromInt32(3)
			},
			problems: []string{"deploy: updateStrategy.engine: must be a JSON object; using the last good value"},
		},
		"budgets that let nothing move": {
			data: map[string]string{"deploy": `{"updateStrategy":{"engine":{"maxSurge":"0%","maxUnavailable":0}}}`},
			change: func(s *config.Settings) {
				s.Deploy.UpdateStrategy.Engine.MaxSurge = intstr.FromInt32(3)
			},
			problems: []string{"deploy: updateStrategy.engine: maxSurge and maxUnavailable are both zero, so no Instance could ever move; set one of them above zero; using the last good value"},
		},
		"two disruption budgets": {
			data:     map[string]string{"podDisruptionBudget": `{"rawDeployment":{"minAvailable":1,"maxUnavailable":1}}`},
			problems: []string{"podDisruptionBudget: rawDeployment: minAvailable and maxUnavailable are both set; keep one of them; using the last good value"},
		},
		"columnar status without a bound": {
			data:     map[string]string{"omenativeStatus": `{"maxDecodedInstances":null}`},
			problems: []string{"omenativeStatus: maxDecodedInstances: ColumnarV2 needs a bound above zero; using the last good value"},
		},
		"words and budgets": {
			data: map[string]string{
				"deploy":          `{"defaultDeploymentMode":"OMENative","updateStrategy":{"router":{"type":"Recreate","maxSurge":"101%"}}}`,
				"omenativeStatus": `{"instanceStatusEncoding":2}`,
			},
			problems: []string{
				`deploy: defaultDeploymentMode: "OMENative": must be RawDeployment; using the last good value`,
				`deploy: updateStrategy.router.type: "Recreate": must be SurgeThenDrain or RecreatePod or InPlaceIfPossible or InPlaceOnly; using the last good value`,
				`deploy: updateStrategy.router.maxSurge: "101%": must be a whole number, 0 or more, or a percentage from "0%" to "100%"; using the last good value`,
				`omenativeStatus: instanceStatusEncoding: 2: must be DenseV1 or ColumnarV2; using the last good value`,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want := config.Default()
			if tc.change != nil {
				tc.change(&want)
			}
			got, problems := Parse(tc.data, &lastGood)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.problems, messages(problems)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseWithoutLastGoodFallsBackOnDefaults(t *testing.T) {
	got, problems := Parse(map[string]string{"lifecycle": `{"instanceReadyTimeout":"soon"}`}, nil)
	want := []string{`lifecycle: instanceReadyTimeout: "soon": must be a duration with a unit, such as "30m"; using the default`}
	if diff := cmp.Diff(want, messages(problems)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if got.Lifecycle.InstanceReadyTimeout != config.Default().Lifecycle.InstanceReadyTimeout {
		t.Errorf("got timeout %s", got.Lifecycle.InstanceReadyTimeout)
	}
}

func TestEncodeDecode(t *testing.T) {
	want, problems := Parse(map[string]string{
		"deploy":              `{"updateStrategy":{"engine":{"maxSurge":2}}}`,
		"podDisruptionBudget": `{"omeNative":{"minAvailable":"50%"},"rawDeployment":null}`,
	}, nil)
	if problems != nil {
		t.Fatal(problems)
	}
	got, err := Decode(Encode(want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := Decode("{"); err == nil || !strings.Contains(err.Error(), LastGoodAnnotation) {
		t.Errorf("bad annotation: %v", err)
	}
	if diff := cmp.Diff(config.Default(), func() config.Settings { s, _ := Parse(nil, nil); return s }()); diff != "" {
		t.Errorf("decoding changed the defaults:\n%s", diff)
	}
}

// Whatever the text, each field ends with a value that was good once.
func TestParseNeverTakesABadValue(t *testing.T) {
	scalar := rapid.SampledFrom([]string{`-1`, `0`, `1`, `1.5`, `99999999999`, `"5m"`, `"-5m"`, `"x"`, `true`, `null`, `[]`, `{}`, `"50%"`, `"150%"`})
	rapid.Check(t, func(t *rapid.T) {
		data := map[string]string{}
		for _, key := range keys() {
			if rapid.Bool().Draw(t, "broken key") {
				data[key] = rapid.SampledFrom([]string{`{`, `[]`, `7`, ``}).Draw(t, "text")
				continue
			}
			var parts []string
			seen := map[string]bool{}
			for _, f := range fields {
				first := strings.Split(f.path, ".")
				if f.key != key || seen[first[0]] || !rapid.Bool().Draw(t, "set") {
					continue
				}
				seen[first[0]] = true
				text := scalar.Draw(t, f.path)
				for i := len(first) - 1; i > 0; i-- {
					text = `{"` + first[i] + `":` + text + `}`
				}
				parts = append(parts, `"`+first[0]+`":`+text)
			}
			data[key] = "{" + strings.Join(parts, ",") + "}"
		}
		got, _ := Parse(data, nil)
		if got.Lifecycle.MaxOpenOperations < 1 || got.Deploy.DefaultMinReplicas < 1 || got.Lifecycle.InstanceReadyTimeout < 0 ||
			got.Lifecycle.UpdateRetry.InitialBackoff <= 0 || got.Lifecycle.UpdateRetry.BackoffFactor < 1 ||
			(got.InstanceStatus.Encoding == encodingColumnar && got.InstanceStatus.MaxDecodedInstances < 1) {
			t.Fatalf("%v gave %+v", data, got)
		}
		for _, c := range []string{"engine", "decoder", "router"} {
			if s := got.Deploy.UpdateStrategy.For(c); isZero(s.MaxSurge) && isZero(s.MaxUnavailable) {
				t.Fatalf("%v leaves %s without a budget", data, c)
			}
		}
	})
}
