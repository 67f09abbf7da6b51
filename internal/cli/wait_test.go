package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// jumpClock makes every poll due at once: asking for its timer moves the time.
type jumpClock struct{ *clocktesting.FakeClock }

func newJumpClock() *jumpClock { return &jumpClock{clocktesting.NewFakeClock(now)} }

func (c *jumpClock) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	if d <= pollInterval {
		c.Step(d)
	}
	return timer
}

// waitFor stores a service and lets a case change it at the nth look at it.
type waitFor struct {
	*running
	clock *jumpClock
	looks int
	// onLook runs before the nth read of the service is forwarded.
	onLook map[int]func(*waitFor)
	// answers replace the nth answer.
	answers map[int]hook
	watches int
}

func newWait(t *testing.T) *waitFor {
	w := &waitFor{running: &running{t: t, namespace: newNamespace(t)}, clock: newJumpClock(), onLook: map[int]func(*waitFor){}, answers: map[int]hook{}}
	f := settled()
	set(f.service, []any{map[string]any{"type": "Ready", "status": "False", "lastTransitionTime": "2026-09-28T14:00:00Z"}}, "status", "conditions")
	f.store(t, w.namespace)
	return w
}

func (w *waitFor) hook(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	if strings.Contains(req.URL.RawQuery, "watch=true") {
		w.watches++
	} else if strings.HasSuffix(req.URL.Path, "/inferenceservices/chat") {
		w.looks++
		if do := w.onLook[w.looks]; do != nil {
			do(w)
		}
		if h := w.answers[w.looks]; h != nil {
			return h(next, req)
		}
	}
	return next.RoundTrip(req)
}

func (w *waitFor) run(ctx context.Context, flags ...string) readResult {
	return readRun{clock: w.clock, hook: w.hook}.do(ctx, append([]string{"wait", "chat", "-n", w.namespace}, flags...)...)
}

// ready stores a Ready condition.
func (w *waitFor) ready(status string) {
	w.status("InferenceService", "chat", func(u *unstructured.Unstructured) {
		set(u, []any{map[string]any{"type": "Ready", "status": status, "lastTransitionTime": "2026-09-28T14:00:00Z"}}, "status", "conditions")
	})
}

// canary stores the groups and the status of a fixture, in a phase.
func (w *waitFor) canary(f *fixture, word string) {
	phase(f, "engine", word)
	w.change(func(u *unstructured.Unstructured) {
		groups, _, _ := unstructured.NestedSlice(f.service.Object, "spec", "rollout", "groups")
		set(u, groups, "spec", "rollout", "groups")
	})
	w.status("InferenceService", "chat", func(u *unstructured.Unstructured) {
		status := f.service.Object["status"].(map[string]any)
		status["observedGeneration"] = u.GetGeneration()
		set(f.service, u.GetGeneration(), "status", "rollout", "observedGeneration")
		record(f, "engine", map[string]any{"observedGeneration": u.GetGeneration()})
		set(f.service, map[string]any{}, "status", "components", "decoder")
		u.Object["status"] = status
	})
}

func (w *waitFor) status(kind, name string, edit func(*unstructured.Unstructured)) {
	w.t.Helper()
	u := w.stored(kind, name)
	edit(u)
	if err := server.cluster.Status().Update(context.Background(), u); err != nil {
		w.t.Fatal(err)
	}
}

func (w *waitFor) stored(kind, name string) *unstructured.Unstructured {
	w.t.Helper()
	u := object(kind, w.namespace, name)
	if err := server.cluster.Get(context.Background(), client.ObjectKeyFromObject(u), u); err != nil {
		w.t.Fatal(err)
	}
	return u
}

func (w *waitFor) check(t *testing.T, name string, r readResult, code int, message string, has ...string) {
	t.Helper()
	if r.code != code || errorLine(r.stderr) != message {
		t.Errorf("exit %d, want %d; error %q, want %q", r.code, code, errorLine(r.stderr), message)
	}
	for _, text := range has {
		if !strings.Contains(r.stdout, text) {
			t.Errorf("no %q in:\n%s", text, r.stdout)
		}
	}
	got := fmt.Sprintf("-- requests --\n%s\n-- stdout --\n%s-- stderr --\n%s-- exit --\n%d\n", strings.Join(r.requests, "\n"), r.stdout, r.stderr, r.code)
	replacements := []string{w.namespace, "<ns>"}
	for _, kind := range []string{"InferenceService", "InferenceReplica"} {
		for object, as := range map[string]string{"chat": "<service>", "chat-engine": "<engine>"} {
			u := objectOrNil(kind, w.namespace, object)
			if u != nil {
				replacements = append(replacements, string(u.GetUID()), as, "resourceVersion="+u.GetResourceVersion(), "resourceVersion=<rv>")
			}
		}
	}
	got = strings.NewReplacer(replacements...).Replace(got)
	got = watchVersion.ReplaceAllString(got, "resourceVersion=<rv>")
	compareGolden(t, filepath.Join("testdata", "wait", strings.ReplaceAll(name, " ", "-")+".txt"), got)
}

func objectOrNil(kind, namespace, name string) *unstructured.Unstructured {
	u := object(kind, namespace, name)
	if server.cluster.Get(context.Background(), client.ObjectKeyFromObject(u), u) != nil {
		return nil
	}
	return u
}

var watchVersion = regexp.MustCompile(`resourceVersion=\d+`)

// TestWaitPolls: the reader role may not watch, so every wait of it polls; it ends
// with the exit code that its outcome has.
func TestWaitPolls(t *testing.T) {
	const unmet = "RequestedConditionUnmet"
	replicaFlags := []string{"--component", "engine", "--replicas", "1"}
	for _, c := range []struct {
		name    string
		flags   []string
		set     func(*waitFor)
		code    int
		message string
		has     []string
	}{
		{"ready at once", []string{"--for=condition=Ready=False"}, func(*waitFor) {}, 0, "", []string{"Source method           InitialGET"}},
		{"ready later", []string{"--for=condition=Ready"}, func(w *waitFor) {
			w.onLook[3] = func(w *waitFor) { w.ready("True") }
		}, 0, "", []string{"GET / WATCH / polls     3 / 1 / 2", "Polling fallback        true", "Elapsed milliseconds    10000"}},
		{"never ready", []string{"--for=condition=Ready", "--timeout=12s"}, func(*waitFor) {}, 2, unmet, []string{"TimedOut", "ConditionNotMatched"}},
		{"json", []string{"--for=condition=Ready", "--timeout=6s", "-o", "json"}, func(*waitFor) {}, 2, unmet, []string{`"sources": []`, `"outcome": "TimedOut"`}},
		{"stable", []string{"--for=rollout=stable"}, func(w *waitFor) {
			w.status("InferenceService", "chat", func(u *unstructured.Unstructured) {
				set(u, map[string]any{"engine": map[string]any{"rolloutPhase": "Stable"}, "decoder": map[string]any{"rolloutPhase": "Stable"}}, "status", "components")
				set(u, []any{map[string]any{"name": "0", "phase": "Idle", "policy": "BlueGreen", "components": []any{"engine", "decoder"}}}, "status", "rolloutCoordination", "groups")
			})
		}, 0, "", []string{"Reported rollout        Succeeded"}},
		{"canary at its gate", []string{"--for=rollout=paused"}, func(w *waitFor) {
			w.canary(promotable(), "Pending")
			w.onLook[3] = func(w *waitFor) { w.canary(promotable(), "Paused") }
		}, 0, "", []string{"Requested               Rollout=Paused", "Reported rollout        Paused", "GET / WATCH / polls     3 / 1 / 2"}},
		{"canary rolled back", []string{"--for=rollout=rolled-back"}, func(w *waitFor) {
			w.canary(promotable(), "Paused")
			w.onLook[2] = func(w *waitFor) { w.canary(rejected(), "RolledBack") }
		}, 0, "", []string{"Reported rollout        RolledBack"}},
		{"canary failed", []string{"--for=rollout=failed"}, func(w *waitFor) {
			w.canary(failedAt(manualStep, "CapacityTimeout"), "Failed")
		}, 0, "", []string{"Reported rollout        Failed"}},
		{"not found", []string{"--for=condition=Ready"}, func(w *waitFor) { w.remove() }, 2, unmet, []string{"NotFound", "PredicateUnmet"}},
		{"deleted", []string{"--for=condition=Ready"}, func(w *waitFor) { w.onLook[2] = func(w *waitFor) { w.remove() } }, 2, unmet, []string{"Deleted"}},
		{"replaced", []string{"--for=condition=Ready"}, func(w *waitFor) {
			w.onLook[2] = func(w *waitFor) {
				w.remove()
				create(w.t, rolling().service, w.namespace)
			}
		}, 2, unmet, []string{"Replaced"}},
		{"replicas ready", append([]string{"--for=replicas=ready"}, replicaFlags...), func(w *waitFor) {
			w.status("InferenceReplica", "chat-engine", func(u *unstructured.Unstructured) { set(u, int64(0), "status", "readyReplicas") })
			w.onLook[2] = func(w *waitFor) {
				w.status("InferenceReplica", "chat-engine", func(u *unstructured.Unstructured) { set(u, int64(1), "status", "readyReplicas") })
			}
		}, 0, "", []string{"ReplicaReadyMatched"}},
		{"replicas ready wide", append([]string{"--for=replicas=ready", "-o", "wide"}, replicaFlags...), func(*waitFor) {}, 0, "", []string{"Count authority"}},
		{"replicas current", append([]string{"--for=replicas=current"}, replicaFlags...), func(*waitFor) {}, 0, "", []string{"ReplicaScaleMatched"}},
		{"replica replaced", append([]string{"--for=replicas=current", "--timeout=10s"}, "--component", "engine", "--replicas", "2"), func(w *waitFor) {
			w.onLook[2] = func(w *waitFor) {
				old := w.stored("InferenceReplica", "chat-engine")
				if err := server.cluster.Delete(context.Background(), old.DeepCopy()); err != nil {
					w.t.Fatal(err)
				}
				fresh := replica("engine")
				fresh.SetOwnerReferences(old.GetOwnerReferences())
				fresh.SetAnnotations(old.GetAnnotations())
				create(w.t, fresh, w.namespace)
			}
		}, 2, unmet, []string{"Replaced"}},
		{"migration without record", []string{"--for=migration=terminal", "--request-id", "7a0d1f2e-0000-4000-8000-000000000001", "--timeout=6s"}, func(*waitFor) {}, 2, unmet, []string{"MigrationNotRecorded"}},
		{"sync never asked for", []string{"--for=runtime-sync=acknowledged", "--request-id", "7a0d1f2e-0000-4000-8000-000000000001", "--timeout=6s"}, func(*waitFor) {}, 2, unmet, []string{"RuntimeSyncNotRecorded"}},
		{"passing failure", []string{"--for=condition=Ready"}, func(w *waitFor) {
			w.answers[2] = answer(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "etcd is electing a leader")
			w.onLook[3] = func(w *waitFor) { w.ready("True") }
		}, 0, "", []string{"Matched"}},
		{"failure at first", []string{"--for=condition=Ready"}, func(w *waitFor) {
			w.answers[1] = answer(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "etcd is electing a leader")
		}, 1, "AcquisitionFailed", nil},
		{"rights taken away", []string{"--for=condition=Ready"}, func(w *waitFor) {
			w.answers[2] = answer(http.StatusForbidden, metav1.StatusReasonForbidden, "no longer")
		}, 1, "AcquisitionFailed", nil},
		{"answer about another", []string{"--for=condition=Ready"}, func(w *waitFor) {
			w.answers[1] = rewrite(func(o map[string]any) { metadata(o)["name"] = "other" })
		}, 1, "InvalidIdentity", nil},
		{"too many conditions", []string{"--for=condition=Ready"}, func(w *waitFor) {
			w.answers[1] = rewrite(func(o map[string]any) { o["status"] = map[string]any{"conditions": make([]map[string]any, 65)} })
		}, 1, "ConditionInspectionLimit", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWait(t)
			c.set(w)
			w.check(t, c.name, w.run(t.Context(), c.flags...), c.code, c.message, c.has...)
		})
	}
}

// TestWaitHeld: a release is answered when the block is gone and the request too.
func TestWaitHeld(t *testing.T) {
	w := newWait(t)
	const revision = "chat-engine-eeeeeeee"
	w.status("InferenceReplica", "chat-engine", func(u *unstructured.Unstructured) {
		set(u, []any{map[string]any{"targetRevision": revision, "state": "Held", "attemptsStarted": int64(3), "lastFailureAt": "2026-09-28T13:00:00Z"}}, "status", "retryBlocks")
	})
	engine := w.stored("InferenceReplica", "chat-engine")
	a := engine.GetAnnotations()
	a["ome.io/release-held-revision"] = revision
	engine.SetAnnotations(a)
	if err := server.cluster.Update(t.Context(), engine); err != nil {
		t.Fatal(err)
	}
	w.onLook[2] = func(w *waitFor) {
		u := w.stored("InferenceReplica", "chat-engine")
		a := u.GetAnnotations()
		delete(a, "ome.io/release-held-revision")
		u.SetAnnotations(a)
		if err := server.cluster.Update(context.Background(), u); err != nil {
			w.t.Fatal(err)
		}
	}
	w.onLook[3] = func(w *waitFor) {
		w.status("InferenceReplica", "chat-engine", func(u *unstructured.Unstructured) { set(u, []any{}, "status", "retryBlocks") })
	}
	r := w.run(t.Context(), "--for=held-revision=unheld", "--component=engine", "--revision="+revision, "--ir-name=chat-engine", "--ir-uid="+string(engine.GetUID()))
	w.check(t, "held", r, 0, "", "GET / WATCH / polls    6 / 0 / 2", "Unheld")
	r = w.run(t.Context(), "--for=held-revision=unheld", "--component=engine", "--revision="+revision, "--ir-name=chat-engine", "--ir-uid=somebody-else", "--timeout=6s")
	w.check(t, "held by another uid", r, 2, "RequestedConditionUnmet", "ReplicaReplaced")
}

// TestWaitWatches: with the right to watch a wait hears of changes at once.
func TestWaitWatches(t *testing.T) {
	kubeconfig := watcherKubeconfig(t)
	run := func(w *waitFor, ctx context.Context, h hook, flags ...string) readResult {
		return readRun{clock: w.clock, hook: h}.do(ctx, append([]string{"wait", "chat", "-n", w.namespace, "--kubeconfig", kubeconfig, "--as", "watcher"}, flags...)...)
	}
	// onWatch does something once the watch is open.
	onWatch := func(w *waitFor, do func()) hook {
		return func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
			resp, err := w.hook(next, req)
			if err == nil && strings.Contains(req.URL.RawQuery, "watch=true") {
				do()
			}
			return resp, err
		}
	}
	t.Run("ready", func(t *testing.T) {
		w := newWait(t)
		w.check(t, "watched", run(w, t.Context(), onWatch(w, func() { w.ready("True") }), "--for=condition=Ready"), 0, "",
			"Source method           Watch", "GET / WATCH / polls     1 / 1 / 0", "Events / observations   1 / 2")
	})
	t.Run("deleted", func(t *testing.T) {
		w := newWait(t)
		w.check(t, "watched and deleted", run(w, t.Context(), onWatch(w, w.remove), "--for=condition=Ready"), 2, "RequestedConditionUnmet", "Deleted")
	})
	t.Run("time is up", func(t *testing.T) {
		w := newWait(t)
		w.check(t, "watched in vain", run(w, t.Context(), onWatch(w, func() { w.clock.Step(time.Minute) }), "--for=condition=Ready"), 2, "RequestedConditionUnmet", "TimedOut")
	})
	t.Run("interrupted", func(t *testing.T) {
		w := newWait(t)
		ctx, cancel := context.WithCancel(t.Context())
		w.check(t, "interrupted", run(w, ctx, onWatch(w, cancel), "--for=condition=Ready"), 1, "Canceled")
	})
	body := func(text string) hook {
		return func(_ http.RoundTripper, req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Request: req, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text))}, nil
		}
	}
	for _, c := range []struct {
		name, text string
		code       int
		message    string
		has        string
	}{
		{"watch ends at once", "", 2, "RequestedConditionUnmet", "Polling fallback        true"},
		{"watch says gone", `{"type":"ERROR","object":{"kind":"Status","code":410}}` + "\n", 2, "RequestedConditionUnmet", "Source method           RefreshGET"},
		{"watch about another", `{"type":"MODIFIED","object":{"metadata":{"name":"other"}}}` + "\n", 1, "InvalidIdentity", ""},
		{"watch of nonsense", "nonsense\n", 2, "RequestedConditionUnmet", "Polling fallback        true"},
		{"event too large", `{"type":"` + strings.Repeat("x", maxEventBytes) + "\n", 1, "AcquisitionBudgetExceeded", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWait(t)
			h := func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
				if strings.Contains(req.URL.RawQuery, "watch=true") {
					if w.watches++; w.watches > 1 {
						// What the first watch said has been acted on: end the wait.
						w.clock.Step(time.Minute)
						return stall(next, req)
					}
					return body(c.text)(next, req)
				}
				return next.RoundTrip(req)
			}
			w.check(t, c.name, run(w, t.Context(), h, "--for=condition=Ready"), c.code, c.message, c.has)
		})
	}
	t.Run("first read hangs", func(t *testing.T) {
		w := newWait(t)
		h := func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
			w.clock.Step(time.Minute)
			return stall(next, req)
		}
		w.check(t, "first read hangs", run(w, t.Context(), h, "--for=condition=Ready"), 2, "RequestedConditionUnmet", "PredicateUnmet")
	})
}

// watcherKubeconfig is the admin's, to impersonate somebody who may read and watch
// services and nothing else.
func watcherKubeconfig(t *testing.T) string {
	t.Helper()
	for _, u := range []*unstructured.Unstructured{fromYAML(strings.Replace(role("watch-services", "inferenceservices"), "[get, list]", "[get, watch]", 1)), binding("watch-services", "watcher")} {
		if err := server.cluster.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "admin")
	admin := rest.CopyConfig(server.admin)
	if err := writeKubeconfig(path, contextName, admin); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWaitFlags: each predicate takes its own flags and no others, and nothing is
// asked of a server before the line is right.
func TestWaitFlags(t *testing.T) {
	const id = "7a0d1f2e-0000-4000-8000-000000000001"
	held := "--for=held-revision=unheld --component=engine --revision=chat-engine-eeeeeeee --ir-name=chat-engine --ir-uid=u"
	for line, want := range map[string]string{
		"chat":                                 msgWaitPredicate,
		"chat --for=condition=Ready --bogus=1": "InvalidWaitFlags",
		"--for=condition=Ready":                "accepts 1 arg(s), received 0",
		"chat more --for=condition=Ready":      "accepts 1 arg(s), received 2",
		"Chat --for=condition=Ready":           "InvalidInferenceServiceName",
		"chat --for=condition=Ready=Maybe":     msgWaitPredicate,
		"chat --for=condition=EngineReady":     msgWaitPredicate,
		"chat --for=rollout=done":              msgWaitPredicate,
		"chat --for=migration=terminal":        msgWaitMigration,
		"chat --for=migration=terminal --request-id=" + strings.ToUpper(id):                      msgWaitMigration,
		"chat --for=condition=Ready --request-id=" + id:                                          msgWaitMigration,
		"chat --for=runtime-sync=acknowledged --request-id=7a0d1f2e":                             msgWaitSync,
		"chat --for=runtime-sync=acknowledged --request-id=7a0d1f2e-0000-1000-8000-000000000001": msgWaitSync,
		"chat --for=replicas=ready":                                                              msgWaitReady,
		"chat --for=replicas=ready --component=engine":                                           msgWaitReady,
		"chat --for=replicas=ready --component=engine --replicas=-1":                             msgWaitReady,
		"chat --for=replicas=ready --component=engine --replicas=01":                             msgWaitReady,
		"chat --for=replicas=ready --component=sidecar --replicas=1":                             msgWaitReady,
		"chat --for=replicas=ready --component=engine --replicas=1 --ir-name=x":                  msgWaitReady,
		"chat --for=condition=Ready --component=engine":                                          msgWaitReady,
		"chat --for=rollout=stable --replicas=1":                                                 msgWaitReady,
		"chat --for=replicas=current --component=engine --replicas=0":                            msgWaitCurrent,
		"chat --for=replicas=current --component=engine --replicas=1 --ir-name=x":                msgWaitCurrent,
		"chat --for=condition=Ready --ir-uid=x":                                                  msgWaitCurrent,
		"chat --for=condition=Ready --revision=x":                                                msgWaitHeld,
		"chat --for=held-revision=unheld":                                                        msgWaitHeld,
		"chat " + strings.Replace(held, "eeeeeeee", "EEEEEEEE", 1):                               msgWaitHeld,
		"chat " + strings.Replace(held, "chat-engine-e", "chat-decoder-e", 1):                    msgWaitHeld,
		"chat " + strings.Replace(held, "--ir-uid=u", "", 1):                                     msgWaitHeld,
		"chat " + held + " --replicas=1":                                                         msgWaitHeld,
		"chat --for=condition=Ready --timeout=0s":                                                msgWaitTimeout,
		"chat --for=condition=Ready --timeout=25h":                                               msgWaitTimeout,
		"chat --for=condition=Ready --timeout=soon":                                              msgWaitTimeout,
		"chat --for=condition=Ready -o name":                                                     msgWaitOutput,
		"chat --for=condition=Ready --context=nowhere":                                           "WaitConfigurationUnavailable",
		"chat --for=condition=Ready -n Prod":                                                     "InvalidNamespace",
	} {
		r := readRun{clock: newJumpClock()}.do(t.Context(), append([]string{"wait"}, strings.Fields(line)...)...)
		if r.code != 1 || errorLine(r.stderr) != want || r.stdout != "" || len(r.requests) > 0 {
			t.Errorf("%s: exit %d, error %q, want %q; %d requests", line, r.code, errorLine(r.stderr), want, len(r.requests))
		}
	}
	w := newWait(t)
	r := readRun{clock: w.clock, out: brokenWriter{}}.do(t.Context(), "wait", "chat", "-n", w.namespace, "--for=condition=Ready=False")
	if r.code != 1 || errorLine(r.stderr) != "WaitOutputFailed" {
		t.Errorf("broken stdout: exit %d, %s", r.code, r.stderr)
	}
	r = readRun{clock: w.clock}.do(t.Context(), "wait", "chat", "--for=condition=Ready", "-n", "prod", "--kubeconfig", server.users["nobody-listens"])
	if r.code != 1 || errorLine(r.stderr) != "AcquisitionFailed" || !strings.Contains(r.stderr, "Network") {
		t.Errorf("no server: exit %d, %s", r.code, r.stderr)
	}
}
