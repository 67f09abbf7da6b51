package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

const managerUser = "system:serviceaccount:ome:ome-controller-manager"

// request is one line of an API server's audit log.
type request struct {
	ID    string `json:"auditID"`
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	URI   string `json:"requestURI"`
	User  struct {
		Name string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	// Body is what was asked, of replicas and their scale.
	Body     json.RawMessage `json:"requestObject"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
}

func (r request) String() string {
	return fmt.Sprintf("%s %s %s -> %d", r.Received.Format("15:04:05.000"), r.Verb, r.URI, r.Response.Code)
}

// allowed is what the manager may do at rest: renew its lease, and open again a watch that the API server closed, from
// where it was. A watch that asks for the initial state is a list by another name.
func (r request) allowed() bool {
	switch r.Verb {
	case "update":
		return r.Object.Resource == "leases" && r.Object.Namespace == "ome" && r.Object.Name == "ome-manager"
	case "watch":
		u, err := url.Parse(r.URI)
		if err != nil {
			return false
		}
		q := u.Query()
		return q.Get("sendInitialEvents") != "true" && q.Get("resourceVersion") != "" && q.Get("resourceVersion") != "0"
	}
	return false
}

// offences are the manager's requests that rest does not allow.
func offences(requests []request) (out []string) {
	for _, r := range requests {
		if r.User.Name == managerUser && !r.allowed() {
			out = append(out, r.String())
		}
	}
	return out
}

// auditLog reads a growing log, each request once: a watch is logged when it begins and when it ends.
type auditLog struct {
	path   string
	offset int64
	seen   map[string]bool
}

func (a *auditLog) next() ([]request, error) {
	f, err := os.Open(a.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(a.offset, io.SeekStart); err != nil {
		return nil, err
	}
	var out []request
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil // the rest of an unfinished line comes with the next call
		} else if err != nil {
			return nil, err
		}
		a.offset += int64(len(line))
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w in %s", a.path, err, line)
		}
		if a.seen == nil {
			a.seen = map[string]bool{}
		}
		if !a.seen[r.ID] {
			a.seen[r.ID] = true
			out = append(out, r)
		}
	}
}

// census counts requests by user and verb, the busiest first.
func census(requests []request) string {
	type key struct{ user, verb string }
	counts := map[key]int{}
	for _, r := range requests {
		counts[key{r.User.Name, r.Verb}]++
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b key) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.user, b.user), cmp.Compare(a.verb, b.verb))
	})
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "  %5d %-7s %s\n", counts[k], k.verb, k.user)
	}
	return b.String()
}

func TestOffences(t *testing.T) {
	path := t.TempDir() + "/audit.log"
	line := func(id, user, stage, verb, uri, resource, ns, name string) string {
		return fmt.Sprintf(`{"auditID":%q,"stage":%q,"verb":%q,"requestURI":%q,"user":{"username":%q},"objectRef":{"resource":%q,"namespace":%q,"name":%q},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:05.678901Z"}`+"\n",
			id, stage, verb, uri, user, resource, ns, name)
	}
	const done = "ResponseComplete"
	text := line("1", managerUser, done, "update", "/lease", "leases", "ome", "ome-manager") +
		line("2", managerUser, "ResponseStarted", "watch", "/pods?resourceVersion=7", "pods", "", "") +
		line("2", managerUser, done, "watch", "/pods?resourceVersion=7", "pods", "", "") +
		line("3", managerUser, "ResponseStarted", "watch", "/fresh?sendInitialEvents=true&resourceVersion=7", "pods", "", "") +
		line("4", managerUser, "ResponseStarted", "watch", "/fromzero?resourceVersion=0", "pods", "", "") +
		line("5", managerUser, done, "get", "/lease", "leases", "ome", "ome-manager") +
		line("6", managerUser, done, "list", "/pods", "pods", "", "") +
		line("7", managerUser, done, "patch", "/status", "inferencereplicas", "a", "b") +
		line("8", managerUser, done, "update", "/other", "leases", "ome", "other") +
		line("9", "somebody", done, "patch", "/pods", "pods", "a", "b")
	if err := os.WriteFile(path, []byte(text+`{"auditID":"unfinished`), 0o600); err != nil {
		t.Fatal(err)
	}
	log := &auditLog{path: path}
	got, err := log.next()
	if err != nil {
		t.Fatal(err)
	}
	const at = "03:04:05.678 "
	want := []string{at + "watch /fresh?sendInitialEvents=true&resourceVersion=7 -> 200", at + "watch /fromzero?resourceVersion=0 -> 200",
		at + "get /lease -> 200", at + "list /pods -> 200", at + "patch /status -> 200", at + "update /other -> 200"}
	if d := gocmp.Diff(want, offences(got)); d != "" {
		t.Errorf("offences (-want +got):\n%s", d)
	}
	if more, err := log.next(); err != nil || len(more) != 0 {
		t.Errorf("read again: %v, %v", more, err)
	}
	if len(got) != 9 {
		t.Errorf("%d requests in the log, want 9", len(got))
	}
}
