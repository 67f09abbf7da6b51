package stub

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestBehaviourOf(t *testing.T) {
	with := func(change func(*Behaviour)) Behaviour {
		b := Defaults()
		change(&b)
		return b
	}
	for name, tc := range map[string]struct {
		image string
		env   []string
		want  Behaviour
		err   string
	}{
		"plain tag":             {image: "lab.ome.io/engine:v1", want: Defaults()},
		"no tag, registry port": {image: "localhost:5000/engine", want: Defaults()},
		"digest":                {image: "lab.ome.io/engine:v1-start2s@sha256:abc", want: with(func(b *Behaviour) { b.Start = 2 * time.Second })},
		"several words": {image: "lab.ome.io/engine:v2-start3s-err20-lat50ms-wire2-drain1s-pull0s", want: with(func(b *Behaviour) {
			b.Start, b.ErrorRate, b.Latency, b.Wire, b.Drain, b.Pull = 3*time.Second, .2, 50*time.Millisecond, "2", time.Second, 0
		})},
		"unpullable alone":    {image: "lab.ome.io/engine:unpullable", want: with(func(b *Behaviour) { b.PullFails = true })},
		"unpullable as word":  {image: "lab.ome.io/engine:v2-unpullable", want: with(func(b *Behaviour) { b.PullFails = true })},
		"crash after a while": {image: "x:v2-crash5s", want: with(func(b *Behaviour) { b.Crashes, b.CrashAfter = true, 5*time.Second })},
		"crash twice": {image: "x:v2-crash5s-times2-exitcode137", want: with(func(b *Behaviour) {
			b.Crashes, b.CrashAfter, b.CrashTimes, b.ExitCode = true, 5*time.Second, 2, 137
		})},
		"crash after serving": {image: "x:v2-serves5s", want: with(func(b *Behaviour) { b.Serves = 5 * time.Second })},
		"crashes by env": {image: "x:v2", env: []string{"OME_LAB_SERVES=2", "OME_LAB_CRASH_TIMES=3", "OME_LAB_EXIT_CODE=9"}, want: with(func(b *Behaviour) {
			b.Serves, b.CrashTimes, b.ExitCode = 2*time.Second, 3, 9
		})},
		"processor": {image: "x:v1-cpu1.5-cost20ms", want: with(func(b *Behaviour) { b.CPU, b.Cost = 1500, 20*time.Millisecond })},
		"processor by env": {image: "x:v1-cpu1.5-cost20ms", env: []string{"OME_LAB_CPU=250m", "OME_LAB_COST_MS=0.5"}, want: with(func(b *Behaviour) {
			b.CPU, b.Cost = 250, 500*time.Microsecond
		})},
		"image for processors":     {image: "vllm:v0.6-cpu", want: Defaults()},
		"no quantity":              {image: "x:v1-cpu5x", err: "want a quantity of cores"},
		"no quantity by env":       {image: "x:v1", env: []string{"OME_LAB_CPU=-1"}, err: "want a quantity of cores"},
		"no exit code":             {image: "x:v2", env: []string{"OME_LAB_EXIT_CODE=256"}, err: "want a number from 1 to 255"},
		"exit":                     {image: "x:v2-exit1s", want: with(func(b *Behaviour) { b.Exits, b.ExitAfter = true, time.Second })},
		"never ready":              {image: "x:v2-neverready", want: with(func(b *Behaviour) { b.NeverReady = true })},
		"a version called start9":  {image: "x:start9", want: Defaults()},
		"foreign words":            {image: "lmsysorg/sglang:v0.5.1-cu126-dev", want: Defaults()},
		"word with a bad argument": {image: "x:v1-start9", err: `tag word "start9": want a duration`},
		"error rate over 100":      {image: "x:v1-err200", err: `tag word "err200"`},
		"env": {image: "x:v1", env: []string{"OME_LAB_START_SECONDS=1.5", "OME_LAB_ERROR_RATE=5%", "OME_LAB_LATENCY_MS=7", "MODEL_PATH=/m"}, want: with(func(b *Behaviour) {
			b.Start, b.ErrorRate, b.Latency = 1500*time.Millisecond, .05, 7*time.Millisecond
		})},
		"env wins over tag":   {image: "x:v1-start9s-crash", env: []string{"OME_LAB_START_SECONDS=0", "OME_LAB_CRASH=false"}, want: with(func(b *Behaviour) { b.Start = 0 })},
		"env crash after":     {image: "x:v1", env: []string{"OME_LAB_CRASH=3"}, want: with(func(b *Behaviour) { b.Crashes, b.CrashAfter = true, 3*time.Second })},
		"pull fails by env":   {image: "x:v1", env: []string{"OME_LAB_PULL=fail"}, want: with(func(b *Behaviour) { b.PullFails = true })},
		"unknown env":         {image: "x:v1", env: []string{"OME_LAB_ERORR_RATE=1"}, err: `env "OME_LAB_ERORR_RATE" is unknown`},
		"unreadable env":      {image: "x:v1", env: []string{"OME_LAB_LATENCY_MS=fast"}, err: `env OME_LAB_LATENCY_MS="fast": want a number`},
		"not a number at all": {image: "x:v1", env: []string{"OME_LAB_ERROR_RATE=NaN"}, err: "want a share"},
	} {
		t.Run(name, func(t *testing.T) {
			c := corev1.Container{Name: "main", Image: tc.image}
			for _, e := range tc.env {
				k, v, _ := strings.Cut(e, "=")
				c.Env = append(c.Env, corev1.EnvVar{Name: k, Value: v})
			}
			got, err := BehaviourOf(&c)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want it to contain %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPodBehaviour(t *testing.T) {
	pod := func(asked string) *corev1.Pod {
		p := &corev1.Pod{}
		p.Annotations = map[string]string{AnnotationBehaviour: asked}
		p.Spec.Containers = []corev1.Container{
			{Name: "sidecar", Image: "x:v1"},
			{Name: "main", Image: "x:v1-err20", Ports: []corev1.ContainerPort{{ContainerPort: 8080}}},
		}
		return p
	}
	want := Defaults()
	want.ErrorRate, want.Crashes, want.CrashTimes = .2, true, 1
	p := pod("crash-times1")
	if got, err := PodBehaviour(p, &p.Spec.Containers[1]); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("main container: %+v, %v", got, err)
	}
	if got, err := PodBehaviour(p, &p.Spec.Containers[0]); err != nil || cmp.Diff(Defaults(), got) != "" {
		t.Errorf("the sidecar should go on: %+v, %v", got, err)
	}
	for _, asked := range []string{"crahs", "crash-", "start", "Crash"} {
		p := pod(asked)
		if _, err := PodBehaviour(p, &p.Spec.Containers[1]); err == nil || !strings.Contains(err.Error(), AnnotationBehaviour) {
			t.Errorf("%q: error %v, want the annotation named", asked, err)
		}
	}
}
