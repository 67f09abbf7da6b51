package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/rows"
	"ome.io/ome/internal/guarded"
)

// readRun is one read command under way, as a person who holds the reader role
// and nothing else.
type readRun struct {
	user     string
	terminal bool
	clock    clock.Clock
	hook     hook
	out      interface{ Write([]byte) (int, error) }
	// date is what answers carry as their time; the case's own time when zero.
	date time.Time
}

type readResult struct {
	code           int
	stdout, stderr string
	requests       []string
}

func (r readRun) do(ctx context.Context, words ...string) readResult {
	var out, errOut bytes.Buffer
	res := readResult{}
	app := &App{Streams: guarded.Streams{In: strings.NewReader(""), Out: &out, Err: &errOut, OutIsTerminal: r.terminal}, Clock: r.clock, Budget: time.Minute}
	if r.terminal {
		app.Streams.Width = 80
	}
	if r.out != nil {
		app.Streams.Out = r.out
	}
	if app.Clock == nil {
		app.Clock = fixedClock()
	}
	date := r.date
	if date.IsZero() {
		date = now
	}
	app.WrapConfig = func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return &transport{next: next, log: &res.requests, hook: func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
				h := r.hook
				if h == nil {
					h = http.RoundTripper.RoundTrip
				}
				resp, err := h(next, req)
				if err == nil {
					resp.Header.Set("Date", date.UTC().Format(http.TimeFormat))
				}
				return resp, err
			}}
		})
	}
	user := r.user
	if user == "" {
		user = "reader"
	}
	if !strings.Contains(strings.Join(words, " "), "--kubeconfig") {
		words = append(words, "--kubeconfig", server.users[user])
	}
	res.code = app.Run(ctx, words)
	res.stdout, res.stderr = out.String(), errOut.String()
	return res
}

// scene is a service at work with its replicas, pods, events and an autoscaler.
type scene struct {
	namespace string
	// names replaces what differs from run to run.
	names []string
}

func newScene(t *testing.T) *scene {
	s := &scene{namespace: newNamespace(t)}
	f := rolling()
	engine, decoder := f.replicas["engine"], f.replicas["decoder"]
	set(engine, int64(2), "spec", "replicas")
	set(engine, map[string]any{
		"observedGeneration": int64(1), "replicas": int64(2), "readyReplicas": int64(1), "servingReplicas": int64(1), "availableReplicas": int64(1),
		"updatedReplicas": int64(0), "updatedReadyReplicas": int64(0), "currentRevision": "chat-engine-aaaaaaaa", "updateRevision": "chat-engine-bbbbbbbb",
		"instanceStatuses": []any{
			map[string]any{"index": int64(0), "phase": "Ready", "incarnation": int64(1), "runningRevision": "chat-engine-aaaaaaaa", "podCount": int64(1), "servingPodCount": int64(1), "availablePodCount": int64(1), "admitted": true},
			map[string]any{"index": int64(1), "phase": "Updating", "incarnation": int64(1), "runningRevision": "chat-engine-aaaaaaaa", "targetRevision": "chat-engine-bbbbbbbb", "podCount": int64(1), "admitted": true,
				"operation":   map[string]any{"id": "op1", "type": "Update", "step": "Surge", "startedAt": "2026-09-28T14:00:00Z", "lastProgressAt": "2026-09-28T14:01:00Z", "deadline": "2026-09-28T14:20:00Z", "strategy": "SurgeThenDrain", "targetRevision": "chat-engine-bbbbbbbb"},
				"lastFailure": map[string]any{"podName": "chat-engine-1-default-0", "containerName": "ome-container", "reason": "ErrImagePull", "message": "pull failed, token=abcdef0123456789", "time": "2026-09-28T14:00:30Z"}},
		},
		"retryBlocks": []any{
			map[string]any{"targetRevision": "chat-engine-bbbbbbbb", "state": "Backoff", "attemptsStarted": int64(1), "nextRetryAt": "2026-09-28T14:06:00Z", "firstFailureAt": "2026-09-28T14:00:30Z", "lastFailureAt": "2026-09-28T14:00:30Z", "reason": "ErrImagePull"},
			map[string]any{"targetRevision": "chat-engine-eeeeeeee", "state": "Held", "attemptsStarted": int64(3), "countedFailures": int64(3), "firstFailureAt": "2026-09-27T14:00:30Z", "lastFailureAt": "2026-09-27T14:10:30Z", "reason": "CrashLoopBackOff"},
		},
	}, "status")
	set(decoder, map[string]any{
		"observedGeneration": int64(1), "replicas": int64(2), "readyReplicas": int64(2), "servingReplicas": int64(2), "availableReplicas": int64(2), "updatedReplicas": int64(0), "updatedReadyReplicas": int64(0),
		"instanceStatusEncoding": "ColumnarV2",
		"instanceStatusColumns": map[string]any{"members": "0,2", "phases": []any{map[string]any{"value": "Ready", "indexes": "0,2"}},
			"podCounts": []any{map[string]any{"value": int64(1), "indexes": "0,2"}}, "servingPodCounts": []any{map[string]any{"value": int64(1), "indexes": "0,2"}}},
	}, "status")
	set(f.service, []any{map[string]any{"type": "Ready", "status": "False", "lastTransitionTime": "2026-09-28T14:00:00Z"}}, "status", "conditions")
	set(f.service, map[string]any{
		"engine": map[string]any{
			"scaleTargetRef": map[string]any{"apiVersion": "ome.io/v1beta1", "kind": "InferenceReplica", "name": "chat-engine"},
			"autoscaler":     map[string]any{"class": "HPA", "managedBy": "ome", "specSource": "isvc", "currentReplicas": int64(2), "desiredReplicas": int64(2)},
		},
		"decoder": map[string]any{
			"scaleTargetRef": map[string]any{"apiVersion": "ome.io/v1beta1", "kind": "InferenceReplica", "name": "chat-decoder"},
			"autoscaler":     map[string]any{"class": "None", "managedBy": "none", "specSource": "default"},
		},
	}, "status", "components")
	f.store(t, s.namespace)
	s.name(f.service, "<service>")
	s.name(engine, "<engine>")
	s.name(decoder, "<decoder>")

	hpa := fromYAML(`
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: chat-engine}
spec:
  maxReplicas: 4
  scaleTargetRef: {apiVersion: ome.io/v1beta1, kind: InferenceReplica, name: chat-engine}
status: {currentReplicas: 2, desiredReplicas: 2, conditions: [{type: AbleToScale, status: "True", lastTransitionTime: "2026-09-28T14:00:00Z"}]}`)
	create(t, hpa, s.namespace)
	s.name(hpa, "<hpa>")
	pod := fromYAML(`
apiVersion: v1
kind: Pod
metadata:
  name: chat-engine-1-default-0
  labels: {ome.io/inferenceservice: chat, component: engine, ome.io/instance-index: "1", ome.io/pod-ordinal: "0", ome.io/revision-hash: bbbbbbbb}
spec:
  automountServiceAccountToken: false
  containers: [{name: ome-container, image: "e:v1", env: [{name: HF_TOKEN, value: never-shown}]}]
status:
  phase: Pending
  containerStatuses: [{name: ome-container, image: "e:v1", imageID: "", ready: false, restartCount: 4, state: {waiting: {reason: ImagePullBackOff, message: "Back-off pulling image"}}}]`)
	set(pod, []any{map[string]any{"apiVersion": "ome.io/v1beta1", "kind": "InferenceReplica", "name": "chat-engine", "uid": string(engine.GetUID()), "controller": true}}, "metadata", "ownerReferences")
	create(t, pod, s.namespace)
	s.name(pod, "<pod>")
	event := fromYAML(`
apiVersion: v1
kind: Event
metadata: {name: chat-engine-1.1}
type: Warning
reason: Failed
message: "Failed to pull image \"e:v1\": password=hunter2hunter2"
count: 3
lastTimestamp: "2026-09-28T14:04:00Z"`)
	set(event, map[string]any{"kind": "Pod", "namespace": s.namespace, "name": "chat-engine-1-default-0", "uid": string(pod.GetUID())}, "involvedObject")
	create(t, event, s.namespace)
	return s
}

func (s *scene) name(u *unstructured.Unstructured, as string) {
	s.names = append(s.names, string(u.GetUID()), as)
}

var created = regexp.MustCompile(`("?createdAt"?: "?)[0-9TZ:-]+`)

// golden compares a transcript in which what differs from run to run has a name.
func (s *scene) golden(t *testing.T, folder, name string, r readResult) {
	t.Helper()
	got := fmt.Sprintf("-- requests --\n%s\n-- stdout --\n%s-- stderr --\n%s-- exit --\n%d\n", strings.Join(r.requests, "\n"), r.stdout, r.stderr, r.code)
	got = strings.NewReplacer(append([]string{s.namespace, "<ns>"}, s.names...)...).Replace(got)
	got = created.ReplaceAllString(got, "${1}<created>")
	compareGolden(t, filepath.Join("testdata", folder, strings.ReplaceAll(name, " ", "-")+".txt"), got)
}

// TestInstanceReads runs the reads against a real API server under the reader role.
func TestInstanceReads(t *testing.T) {
	s := newScene(t)
	for _, c := range []struct {
		name     string
		user     string
		terminal bool
		words    string
		code     int
		message  string
	}{
		{"list", "", false, "instance list chat", 0, ""},
		{"list on a terminal", "", true, "instance list chat", 0, ""},
		{"list json", "", false, "instance list chat -o json", 0, ""},
		{"list yaml", "", false, "instance list chat -o yaml", 0, ""},
		{"list has no wide", "", false, "instance list chat -o wide", 1, "output must be table, json or yaml"},
		{"list without replicas", "replicaless", false, "instance list chat", 0, ""},
		{"list forbidden", "stranger", false, "instance list chat", 1,
			`get InferenceService: inferenceservices.ome.io "chat" is forbidden: User "stranger" cannot get resource "inferenceservices" in API group "ome.io" in the namespace "` + s.namespace + `"`},
		{"list not found", "", false, "instance list nope", 1, `get InferenceService: inferenceservices.ome.io "nope" not found`},
		{"list bad name", "", false, "instance list Chat", 1, "invalid inference service name"},
		{"list without a name", "", false, "instance list", 1, "exactly one inference service is required"},

		{"retry-blocks", "", false, "instance retry-blocks chat --component engine", 0, ""},
		{"retry-blocks empty", "", false, "instance retry-blocks chat --component decoder", 0, ""},
		{"retry-blocks missing", "", false, "instance retry-blocks chat --component router", 0, ""},
		{"retry-blocks json", "", false, "instance retry-blocks chat --component engine -o json", 0, ""},
		{"retry-blocks has no wide", "", false, "instance retry-blocks chat --component engine -o wide", 1, "output must be table, json or yaml"},
		{"retry-blocks without component", "", false, "instance retry-blocks chat", 1, "component must be engine, decoder or router"},

		{"status", "", false, "instance status chat 1 --component engine", 0, ""},
		{"status on a terminal", "", true, "instance status chat 1 --component engine", 0, ""},
		{"status wide", "", false, "instance status chat 1 --component engine -o wide", 0, ""},
		{"status json", "", false, "instance status chat 1 --component engine -o json", 0, ""},
		{"status of a gap", "", false, "instance status chat 1 --component decoder", 0, ""},
		{"status not projected", "", false, "instance status chat 0 --component router", 0, ""},
		{"status without rights", "modelless", false, "instance status chat 1 --component engine", 0, ""},
		{"status bad index", "", false, "instance status chat 01 --component engine", 1, "invalid Instance index"},
		{"status without index", "", false, "instance status chat --component engine", 1, "an inference service and an Instance index are required"},
		{"status bad component", "", false, "instance status chat 1 --component sidecar", 1, "component must be engine, decoder or router"},

		{"autoscale", "", false, "autoscale status chat", 0, ""},
		{"autoscale live", "", false, "autoscale status chat --live-scale --live-scaler", 0, ""},
		{"autoscale live wide", "", false, "autoscale status chat --live-scale --live-scaler -o wide", 0, ""},
		{"autoscale live json", "", false, "autoscale status chat --live-scale --live-scaler -o json", 0, ""},
		{"autoscale live without rights", "modelless", false, "autoscale status chat --live-scale --live-scaler", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := readRun{user: c.user, terminal: c.terminal}.do(t.Context(), append(strings.Fields(c.words), "-n", s.namespace)...)
			if r.code != c.code || errorLine(r.stderr) != c.message {
				t.Errorf("exit %d, want %d; error %q, want %q", r.code, c.code, errorLine(r.stderr), c.message)
			}
			if c.code != 0 && r.stdout != "" {
				t.Errorf("stdout after an error: %s", r.stdout)
			}
			for _, secret := range []string{"never-shown", "hunter2", "abcdef0123456789"} {
				if strings.Contains(r.stdout+r.stderr, secret) {
					t.Errorf("shows %s", secret)
				}
			}
			for _, req := range r.requests {
				if !strings.HasPrefix(req, "GET ") {
					t.Errorf("a read sent %s", req)
				}
			}
			s.golden(t, "reads", c.name, r)
		})
	}
	for _, words := range []string{"instance list chat", "instance retry-blocks chat --component engine", "instance status chat 1 --component engine", "autoscale status chat"} {
		r := readRun{out: brokenWriter{}}.do(t.Context(), append(strings.Fields(words), "-n", s.namespace)...)
		if !strings.HasPrefix(errorLine(r.stderr), "write ") || r.code != 1 {
			t.Errorf("%s with a broken stdout: exit %d, %s", words, r.code, r.stderr)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := (readRun{}).do(ctx, "instance", "list", "chat", "-n", s.namespace); r.code != 1 || errorLine(r.stderr) != "context canceled" {
		t.Errorf("interrupted: exit %d, %s", r.code, r.stderr)
	}
}

// TestClockSkew: recorded times are held against the API server's clock, and a
// person hears that the local one is wrong.
func TestClockSkew(t *testing.T) {
	s := newScene(t)
	r := readRun{date: now.Add(-time.Hour)}.do(t.Context(), "instance", "retry-blocks", "chat", "--component", "engine", "-n", s.namespace)
	if !strings.Contains(r.stderr, "Note: the local clock differs from the API server's by 1h0m0s") || !strings.Contains(r.stdout, "TIME_BAD") {
		t.Errorf("an hour behind:\n%s%s", r.stdout, r.stderr)
	}
	r = readRun{}.do(t.Context(), "instance", "retry-blocks", "chat", "--component", "engine", "-n", s.namespace)
	if r.stderr != "" || strings.Contains(r.stdout, "TIME_BAD") {
		t.Errorf("in time:\n%s%s", r.stdout, r.stderr)
	}
}

// TestListAtItsBound: a replica with as many rows as a list looks at is stored by
// the API server and listed in whole.
func TestListAtItsBound(t *testing.T) {
	namespace := newNamespace(t)
	f := settled()
	var list []v1beta1.InstanceStatus
	for i := range int32(20_000) {
		list = append(list, v1beta1.InstanceStatus{Index: i, Phase: v1beta1.InstanceReady, RunningRevision: "chat-engine-aaaaaaaa", PodCount: 1, ServingPodCount: 1})
	}
	encoded, err := rows.Encode(list, rows.Options{Encoding: v1beta1.InstanceStatusColumnarV2, MaxDecoded: len(list)})
	if err != nil {
		t.Fatal(err)
	}
	var st v1beta1.InferenceReplicaStatus
	rows.Apply(&st, encoded)
	b, err := json.Marshal(&st)
	if err != nil {
		t.Fatal(err)
	}
	status := map[string]any{}
	if err := json.Unmarshal(b, &status); err != nil {
		t.Fatal(err)
	}
	status["observedGeneration"] = int64(1)
	delete(f.replicas, "decoder")
	f.replicas["engine"].Object["status"] = status
	f.store(t, namespace)
	r := readRun{}.do(t.Context(), "instance", "list", "chat", "-n", namespace)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if want := 1 + len(list) + 1; r.code != 0 || len(lines) != want { // header, rows, the decoder's dash row
		t.Fatalf("exit %d, %d lines, want %d: %.300s %s", r.code, len(lines), want, r.stdout, r.stderr)
	}
	if last := lines[len(list)]; !strings.HasPrefix(last, "engine    19999/0") || !strings.HasSuffix(last, "OK") {
		t.Errorf("last row %q", last)
	}
}

// TestReadsHelp: the help of the reads is reviewed as text.
func TestReadsHelp(t *testing.T) {
	for _, words := range []string{"instance list", "instance status", "instance retry-blocks", "autoscale", "autoscale status", "wait", "rollout explain", "rollout history", "rollout validate"} {
		r := readRun{}.do(t.Context(), append(strings.Fields(words), "--help")...)
		if r.code != 0 || len(r.requests) > 0 {
			t.Fatalf("%s: exit %d, %s", words, r.code, r.stderr)
		}
		text, _, _ := strings.Cut(r.stdout, "\nGlobal Flags:")
		compareGolden(t, filepath.Join("testdata", "help", "help-"+strings.ReplaceAll(words, " ", "-")+".txt"), text)
	}
}
