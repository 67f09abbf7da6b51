package preview_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/preview"
	"ome.io/ome/internal/validate"
	"ome.io/ome/internal/view"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scenario is a service and a change of it.
type scenario struct {
	name string
	old  string
	// change edits the old spec.
	change  func(*v1beta1.InferenceService)
	outcome preview.Outcome
}

func images(s *v1beta1.InferenceService, version string, kinds ...v1beta1.ComponentType) {
	for _, k := range kinds {
		runner := &v1beta1.RunnerSpec{}
		runner.Name, runner.Image = v1beta1.MainContainerName, "lab.ome.io/"+string(k)+":"+version
		switch k {
		case v1beta1.EngineComponent:
			s.Spec.Engine.Runner = runner
		case v1beta1.DecoderComponent:
			s.Spec.Decoder.Runner = runner
		case v1beta1.RouterComponent:
			s.Spec.Router.Runner = runner
		}
	}
}

// next gives both sides of a prefill and decode pair another image.
func next(s *v1beta1.InferenceService) {
	images(s, "v2", v1beta1.EngineComponent, v1beta1.DecoderComponent)
}

const pd42 = `
engine: {minReplicas: 4, maxReplicas: 4}
decoder: {minReplicas: 2, maxReplicas: 2}
router: {}
rollout: {groups: [{components: [engine, decoder]}]}`

func ratio(tolerance string) string {
	return `
engine: {minReplicas: 4, maxReplicas: 4}
decoder: {minReplicas: 2, maxReplicas: 2}
rollout: {groups: [{components: [engine, decoder], rollingUpdate: {maxSurge: 2, maxUnavailable: 0}, maintainRatio: {tolerance: ` + tolerance + `}}]}`
}

func recreated(strategy, tolerance string) string {
	return `
engine: {minReplicas: 4, maxReplicas: 4, lifecycle: {updateStrategy: {type: ` + strategy + `, rollingUpdate: {maxUnavailable: 1}}}}
decoder: {minReplicas: 2, maxReplicas: 2, lifecycle: {updateStrategy: {type: ` + strategy + `, rollingUpdate: {maxUnavailable: 1}}}}
rollout: {groups: [{components: [engine, decoder], rollingUpdate: {maxSurge: 0, maxUnavailable: 1}, maintainRatio: {tolerance: ` + tolerance + `}}]}`
}

var scenarios = []scenario{
	{"blue-green 4+2", pd42, next, preview.Completes},
	{"nothing changes", pd42, func(*v1beta1.InferenceService) {}, preview.Completes},
	{"pairing token 1+1", `
engine: {}
decoder: {}
router: {}
rollout: {pairingProtocol: kv-v1, groups: [{components: [engine, decoder]}]}`,
		func(s *v1beta1.InferenceService) { s.Spec.Rollout.PairingProtocol = "kv-v2" }, preview.Completes},
	{"ratio 4+2 tolerance 0", ratio("0"), next, preview.Completes},
	{"ratio 4+2 tolerance 5", ratio("5"), next, preview.Completes},
	{"ratio 4+2 tolerance 25", ratio("25"), next, preview.Completes},
	{"ratio 4+2 recreate tolerance 0", recreated("RecreatePod", "0"), next, preview.Stalls},
	{"ratio 4+2 recreate tolerance 25", recreated("RecreatePod", "25"), next, preview.Completes},
	{"sequence with soak", `
engine: {minReplicas: 2, maxReplicas: 2}
decoder: {minReplicas: 1, maxReplicas: 1}
rollout: {groups: [{components: [decoder], soak: 5m}, {components: [engine]}]}`, next, preview.Completes},
	{"recreate with no budget", `
engine: {minReplicas: 2, maxReplicas: 2, lifecycle: {updateStrategy: {type: RecreatePod, rollingUpdate: {maxUnavailable: 0}}}}
decoder: {}
rollout: {groups: [{components: [engine, decoder]}]}`, next, preview.Stalls},
	{"rolling update with budgets", `
engine: {minReplicas: 6, maxReplicas: 6}
decoder: {minReplicas: 3, maxReplicas: 3}
rollout: {groups: [{components: [engine, decoder], rollingUpdate: {maxSurge: 50%, maxUnavailable: 0}}]}`, next, preview.Completes},
	{"ungrouped", `
engine: {minReplicas: 2, maxReplicas: 2, lifecycle: {updateStrategy: {type: InPlaceIfPossible, rollingUpdate: {maxUnavailable: 1}}}}
decoder: {minReplicas: 4, maxReplicas: 4, lifecycle: {updateStrategy: {rollingUpdate: {maxSurge: 2}}}}
router: {}`, func(s *v1beta1.InferenceService) {
		next(s)
		images(s, "v2", v1beta1.RouterComponent)
	}, preview.Completes},
	{"scale up and down", `
engine: {minReplicas: 2, maxReplicas: 2}
decoder: {minReplicas: 4, maxReplicas: 4}`, func(s *v1beta1.InferenceService) {
		s.Spec.Engine.MinReplicas, s.Spec.Engine.MaxReplicas = new(5), new(5)
		s.Spec.Decoder.MinReplicas, s.Spec.Decoder.MaxReplicas = new(1), new(1)
	}, preview.Completes},
	{"minReadySeconds", `
engine: {minReplicas: 2, maxReplicas: 2, lifecycle: {minReadySeconds: 45}}`,
		func(s *v1beta1.InferenceService) { images(s, "v2", v1beta1.EngineComponent) }, preview.Completes},
	{"partition", `
engine: {minReplicas: 4, maxReplicas: 4, lifecycle: {updateStrategy: {rollingUpdate: {partition: 3}}}}`,
		func(s *v1beta1.InferenceService) { images(s, "v2", v1beta1.EngineComponent) }, preview.Partitioned},
	{"paused", pd42, func(s *v1beta1.InferenceService) {
		next(s)
		s.Annotations = map[string]string{v1beta1.RolloutPausedAnnotation: "true"}
	}, preview.Stalls},
	{"canary", `
engine: {minReplicas: 4, maxReplicas: 4}
rollout: {groups: [{components: [engine], canary: {steps: [{capacity: 25%, traffic: 25, pause: {}}, {capacity: 50%, traffic: 50, pause: {duration: 10m}}, {capacity: 100%, traffic: 100}]}}]}`,
		func(s *v1beta1.InferenceService) { images(s, "v2", v1beta1.EngineComponent) }, preview.Completes},
	{"canary of a pair", `
engine: {minReplicas: 4, maxReplicas: 4}
decoder: {minReplicas: 2, maxReplicas: 2}
rollout: {pairingProtocol: kv-v1, groups: [{components: [engine, decoder], canary: {steps: [{capacity: 50%, traffic: 50, pause: {}}, {capacity: 100%, traffic: 100, pause: {}}]}}]}`,
		func(s *v1beta1.InferenceService) { s.Spec.Rollout.PairingProtocol = "kv-v2" }, preview.Completes},
	{"a router joins", `
engine: {}`, func(s *v1beta1.InferenceService) { s.Spec.Router = &v1beta1.RouterSpec{} }, preview.Completes},
	{"the decoder leaves", `
engine: {}
decoder: {minReplicas: 2, maxReplicas: 2}`, func(s *v1beta1.InferenceService) { s.Spec.Decoder = nil }, preview.Completes},
}

// play is a scenario's outcome; its new spec is one that admission lets in.
func play(t testing.TB, sc scenario) (preview.Result, preview.Input) {
	t.Helper()
	old := serviceOf(t, sc.old)
	changed := old.DeepCopy()
	sc.change(changed)
	preview.Default(changed)
	if r := validate.InferenceService(old, nil, validate.Options{}); !r.OK() {
		t.Fatal(r.Denial())
	}
	if r := validate.InferenceService(changed, old, validate.Options{}); !r.OK() {
		t.Fatal(r.Denial())
	}
	in := preview.Input{Now: now, Settings: config.Default(), Timing: usual, Old: specOf(t, old), New: specOf(t, changed)}
	return preview.Preview(in), in
}

func TestPreview(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			res, in := play(t, sc)
			if res.Outcome != sc.outcome {
				t.Errorf("outcome %s, want %s", res.Outcome, sc.outcome)
			}
			report := view.BuildRolloutPreview(&res, view.PreviewSubject{Basis: view.BasisFile, Service: in.New.Service, Timing: in.Timing}, now)
			var out bytes.Buffer
			out.WriteString(view.RolloutPreviewHead(report, 0))
			if err := view.RolloutPreviewTable(report).Write(&out, 0); err != nil {
				t.Fatal(err)
			}
			out.WriteString(view.RolloutPreviewFoot(report, 0))
			path := filepath.Join("testdata", strings.ReplaceAll(sc.name, " ", "-")+".txt")
			if *update {
				if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("%s, run with -update if this is meant (-want +got):\n%s", path, diff)
			}
			if _, err := yaml.Marshal(report); err != nil {
				t.Error(err)
			}
		})
	}
}
