package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ome.io/ome/internal/guarded"
)

// runCommand runs one command line as oncall unless the words say otherwise.
func runCommand(t *testing.T, terminal bool, out interface{ Write([]byte) (int, error) }, words ...string) (code int, stderr string) {
	t.Helper()
	var errOut bytes.Buffer
	app := &App{Streams: guarded.Streams{In: strings.NewReader(""), Out: out, Err: &errOut, OutIsTerminal: terminal}, Clock: fixedClock(), Budget: time.Minute}
	if terminal {
		app.Streams.Width = 80
	}
	if !strings.Contains(strings.Join(words, " "), "--kubeconfig") {
		words = append(words, "--kubeconfig", server.users["oncall"])
	}
	return app.Run(t.Context(), words), errOut.String()
}

func TestRolloutStatus(t *testing.T) {
	r := &running{t: t, namespace: newNamespace(t)}
	f := rolling()
	set(f.service, map[string]any{"engine": map[string]any{
		"latestReadyRevision": "chat-engine-rev-bbbbbbbb", "latestRolledoutRevision": "chat-engine-rev-aaaaaaaa",
		"lifecycle": map[string]any{"replicas": int64(3), "readyReplicas": int64(2), "servingReplicas": int64(2), "availableReplicas": int64(2),
			"updatedReplicas": int64(1), "updatedReadyReplicas": int64(0), "currentRevision": "a", "updateRevision": "b"},
	}, "decoder": map[string]any{}}, "status", "components")
	f.store(t, r.namespace)
	r.name(f)
	for _, c := range []struct {
		name     string
		terminal bool
		words    []string
		code     int
		message  string
	}{
		{"table", false, []string{"chat", "-n", r.namespace}, 0, ""},
		{"table on a terminal", true, []string{"chat", "-n", r.namespace}, 0, ""},
		{"wide", false, []string{"chat", "-n", r.namespace, "-o", "wide"}, 0, ""},
		{"wide on a terminal", true, []string{"chat", "-n", r.namespace, "-o", "wide"}, 0, ""},
		{"json", false, []string{"chat", "-n", r.namespace, "-o", "json"}, 0, ""},
		{"json on a terminal", true, []string{"chat", "-n", r.namespace, "-o", "json"}, 0, ""},
		{"yaml", false, []string{"chat", "-n", r.namespace, "-o", "yaml"}, 0, ""},
		{"not found", false, []string{"nope", "-n", r.namespace}, 1, `get InferenceService: inferenceservices.ome.io "nope" not found`},
		{"forbidden", false, []string{"chat", "-n", r.namespace, "--kubeconfig", server.users["stranger"]}, 1,
			`get InferenceService: inferenceservices.ome.io "chat" is forbidden: User "stranger" cannot get resource "inferenceservices" in API group "ome.io" in the namespace "` + r.namespace + `"`},
		{"bad output", false, []string{"chat", "-o", "name"}, 1, "output must be table, wide, json or yaml"},
		{"no argument", false, nil, 1, "exactly one inference service is required"},
		{"no server", false, []string{"chat", "-n", "prod", "--kubeconfig", server.users["nobody-listens"]}, 1,
			"get InferenceService: dial tcp 127.0.0.1:1: connect: connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			code, stderr := runCommand(t, c.terminal, &out, append([]string{"rollout", "status"}, c.words...)...)
			if code != c.code || errorLine(stderr) != c.message {
				t.Errorf("exit %d, want %d; error %q, want %q", code, c.code, errorLine(stderr), c.message)
			}
			if code != 0 && out.Len() > 0 {
				t.Errorf("stdout after an error: %s", out.String())
			}
			r := *r
			r.t = t
			r.golden("status", c.name, fmt.Sprintf("-- stdout --\n%s-- stderr --\n%s", out.String(), stderr))
		})
	}
	if code, stderr := runCommand(t, false, brokenWriter{}, "rollout", "status", "chat", "-n", r.namespace); code != 1 || errorLine(stderr) != "write rollout status report failed" {
		t.Errorf("broken stdout: exit %d, %s", code, stderr)
	}
}

func TestVersion(t *testing.T) {
	ns := newNamespace(t)
	deployment := fromYAML(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: ome-controller-manager}
spec:
  selector: {matchLabels: {app: m}}
  template:
    metadata: {labels: {app: m}}
    spec: {containers: [{name: proxy, image: "p:v9"}, {name: manager, image: "ghcr.example:5000/ome/manager:v1.3.0"}]}`)
	create(t, deployment, ns)
	for _, c := range []struct {
		terminal bool
		words    []string
		want     string
	}{
		{false, []string{"--ome-namespace", ns}, "Client Version: dev\nOperator Version: v1.3.0\n"},
		{true, []string{"--ome-namespace", ns}, "COMPONENT   VERSION\nclient      dev\noperator    v1.3.0\n"},
		{false, []string{"--ome-namespace", "nowhere"}, "Client Version: dev\nOperator Version: unknown (NotFound)\n"},
		{false, []string{"--kubeconfig", server.users["nobody-listens"]}, "Client Version: dev\nOperator Version: unknown (Network)\n"},
	} {
		var out bytes.Buffer
		if code, stderr := runCommand(t, c.terminal, &out, append([]string{"version"}, c.words...)...); code != 0 || out.String() != c.want {
			t.Errorf("%v: exit %d, %q, want %q; %s", c.words, code, out.String(), c.want, stderr)
		}
	}
}

func TestImageVersion(t *testing.T) {
	for in, want := range map[string]string{
		"a/b:v1": "v1", "host:5000/a/b": "unknown (untagged image)", "a@sha256:00": "sha256:00", "a:v1@sha256:00": "sha256:00",
	} {
		if got := imageVersion(in); got != want {
			t.Errorf("imageVersion(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestCompletion: names come from the cluster, values from the flags, and a shell
// sees no error text.
func TestCompletion(t *testing.T) {
	ns := newNamespace(t)
	rolling().store(t, ns)
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"rollout", "pause", "-n", ns, ""}, "chat\n:4\n"},
		{[]string{"rollout", "status", "-n", ns, ""}, "chat\n:4\n"},
		{[]string{"rollout", "status", "-n", ns, "chat", ""}, ":4\n"},
		{[]string{"scale", "-n", ns, ""}, "chat\n:4\n"},
		{[]string{"instance", "release-held", "-n", ns, ""}, "chat\n:4\n"},
		{[]string{"scale", "--component", ""}, "engine\ndecoder\nrouter\n:4\n"},
		{[]string{"rollout", "pause", "--dry-run", ""}, "none\nclient\nserver\n:4\n"},
		{[]string{"rollout", "pause", "-n", "prod", "--context", "nowhere", ""}, ":4\n"},
	} {
		var out bytes.Buffer
		words := append([]string{"__complete", "--kubeconfig", server.users["oncall"]}, c.words...)
		runCommand(t, false, &out, words...)
		if out.String() != c.want {
			t.Errorf("%v: %q, want %q", c.words, out.String(), c.want)
		}
	}
}

// TestHelp: the help of the whole tree is reviewed as text.
func TestHelp(t *testing.T) {
	for _, words := range [][]string{nil, {"rollout"}, {"rollout", "status"}, {"rollout", "pause"}, {"rollout", "resume"}, {"rollout", "repin"}, {"rollout", "promote"}, {"rollout", "rollback"}, {"rollout", "retry"}, {"scale"}, {"instance"}, {"instance", "release-held"}, {"version"}} {
		var out bytes.Buffer
		if code, stderr := runCommand(t, false, &out, append(words, "--help")...); code != 0 {
			t.Fatalf("%v: exit %d, %s", words, code, stderr)
		}
		text, _, _ := strings.Cut(out.String(), "\nGlobal Flags:")
		if len(words) == 0 {
			text, _, _ = strings.Cut(text, "\nFlags:")
		}
		compareGolden(t, filepath.Join("testdata", "help", "help-"+strings.Join(words, "-")+".txt"), text)
	}
}
