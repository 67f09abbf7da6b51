package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	quietServices, quietNamespaces = 50, 5
	// window is how long the API server's log is watched.
	window = time.Minute
	// hush is how long nothing may have happened before the window opens. A status write that is put off because only
	// numbers changed comes within 15 s.
	hush = 17 * time.Second
)

// TestRestIsQuiet counts the manager's requests over a minute in which there is nothing to do for fifty services.
func TestRestIsQuiet(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	// 100 of the 150 pods ask for a GPU, and a node has eight. The lease times are those of a real installation.
	l := startLab(ctx, t, "--nodes=13",
		"--manager-flag=--leader-elect-lease-duration=15s", "--manager-flag=--leader-elect-renew-deadline=10s", "--manager-flag=--leader-elect-retry-period=2s")
	objs := samples(t)
	for n := range quietNamespaces {
		objs = append(objs, namespace("quiet-"+strconv.Itoa(n)))
	}
	l.apply(ctx, t, objs...)
	for i := range quietServices {
		l.apply(ctx, t, sampleService(t, "quiet-"+strconv.Itoa(i%quietNamespaces), "service-"+strconv.Itoa(i), "", oneEach))
	}
	began := time.Now()
	until(ctx, t, "all services to come up", 5*time.Minute, func() []string { return l.unready(ctx) })
	t.Logf("%d services up %.0fs after the last was applied", quietServices, time.Since(began).Seconds())

	log := &auditLog{path: l.Log("audit")}
	next := func() []request {
		requests, err := log.next()
		if err != nil {
			t.Fatal(err)
		}
		return requests
	}
	last := time.Now()
	until(ctx, t, fmt.Sprintf("%s without a request", hush), 3*time.Minute, func() []string {
		found := offences(next())
		if len(found) > 0 {
			last = time.Now()
		}
		if time.Since(last) >= hush {
			return nil
		}
		if len(found) == 0 {
			found = []string{fmt.Sprintf("the last request was %s ago", time.Since(last).Round(time.Second))}
		}
		return found
	})

	manager := l.manager(t)
	from := time.Now()
	select {
	case <-time.After(window):
	case <-ctx.Done():
		t.Fatal("no time left for the window")
	}
	to := time.Now()
	// The log is whole up to the end of the window once it holds a later request; kubelets make one all the time.
	var inside []request
	later := false
	until(ctx, t, "the end of the window in the log", time.Minute, func() []string {
		for _, r := range next() {
			switch {
			case r.Received.After(to):
				later = true
			case !r.Received.Before(from):
				inside = append(inside, r)
			}
		}
		if !later {
			return []string{"no request after the window yet"}
		}
		return nil
	})
	memory, err := rss(manager.PID)
	if err != nil {
		t.Error(err)
	}
	fmt.Printf("%s at rest with %d services, manager at %s; requests by verb and user:\n%s", window, quietServices, memory, census(inside))
	for _, o := range offences(inside) {
		t.Errorf("the manager's request at rest: %s", o)
	}
	if now := l.manager(t); now.Identity != manager.Identity {
		t.Errorf("the manager was process %d when the window opened and %d when it closed", manager.PID, now.PID)
	}
	renewals := 0
	for _, r := range inside {
		if r.User.Name == managerUser && r.Verb == "update" {
			renewals++
		}
	}
	if renewals < 15 {
		t.Errorf("%d renewals of the manager's lease in the log, want about 30: it does not tell all", renewals)
	}
	if still := l.unready(ctx); len(still) > 0 {
		t.Errorf("after the window: %v", still)
	}

	// The same count sees work where there is some.
	l.apply(ctx, t, sampleService(t, "quiet-0", "service-0", "v2", oneEach))
	until(ctx, t, "requests for a change of one service in the log", time.Minute, func() []string {
		if found := offences(next()); len(found) == 0 {
			return []string{"none"}
		}
		return nil
	})
}

// unready names the services that are not up.
func (l *lab) unready(ctx context.Context) (out []string) {
	list, err := l.dynamic.Resource(services).List(ctx, metav1.ListOptions{})
	if err != nil {
		return []string{err.Error()}
	}
	if len(list.Items) != quietServices {
		out = append(out, fmt.Sprintf("%d services, want %d", len(list.Items), quietServices))
	}
	for i := range list.Items {
		var s service
		if err := read(&list.Items[i], &s); err != nil {
			return []string{err.Error()}
		}
		if !s.ready() || s.Status.ObservedGeneration != s.Metadata.Generation {
			out = append(out, fmt.Sprintf("%s/%s: generation %d of %d, %v", s.Metadata.Namespace, s.Metadata.Name, s.Status.ObservedGeneration, s.Metadata.Generation, s.Status.Conditions))
		}
	}
	return out
}

func rss(pid int) (string, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(raw)
	if m == nil {
		return "", fmt.Errorf("process %d shows no resident memory", pid)
	}
	kb, err := strconv.Atoi(string(m[1]))
	return fmt.Sprintf("%d MiB", kb>>10), err
}
