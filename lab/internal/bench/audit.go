package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// auditEvent is what is read of one line of the audit log.
type auditEvent struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// Requests is how often one client made one kind of request.
type Requests struct {
	Client   string `json:"client"`
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	// Accepted were answered with success, Rejected with anything else.
	Accepted int `json:"accepted"`
	Rejected int `json:"rejected,omitempty"`
}

// All is every request, whatever its answer.
func (r Requests) All() int { return r.Accepted + r.Rejected }

type requestKey struct{ client, verb, resource string }

// tally counts the requests about one namespace.
type tally struct {
	namespace string
	counts    map[requestKey]*Requests
}

func newTally(namespace string) *tally {
	return &tally{namespace: namespace, counts: map[requestKey]*Requests{}}
}

// add counts one event; it reports whether the event was a write in the namespace.
func (t *tally) add(e *auditEvent) bool {
	// A watch is answered for as long as it lives; every other request has exactly one end.
	if e.Stage != "ResponseComplete" && e.Stage != "Panic" || e.ObjectRef == nil || e.ObjectRef.Namespace != t.namespace || e.Verb == "watch" {
		return false
	}
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	key := requestKey{clientOf(e.User.Username), e.Verb, resource}
	c := t.counts[key]
	if c == nil {
		c = &Requests{Client: key.client, Verb: key.verb, Resource: key.resource}
		t.counts[key] = c
	}
	if code := e.ResponseStatus.Code; code >= 200 && code < 300 {
		c.Accepted++
	} else {
		c.Rejected++
	}
	return isWrite(e.Verb)
}

func isWrite(verb string) bool { return verb != "get" && verb != "list" && verb != "watch" }

// list returns the counts by client, then the most frequent first.
func (t *tally) list() []Requests {
	out := make([]Requests, 0, len(t.counts))
	for _, c := range t.counts {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Requests) int {
		return cmp.Or(strings.Compare(a.Client, b.Client), cmp.Compare(b.All(), a.All()), strings.Compare(a.Resource, b.Resource), strings.Compare(a.Verb, b.Verb))
	})
	return out
}

// The names of clients in the report.
const (
	managerClient = "ome-manager"
	setterClient  = "gate-setter"
	kubeletClient = "kubelets"
	benchClient   = "bench"
)

// clientOf shortens a user name to the program behind it.
func clientOf(user string) string {
	if name, ok := strings.CutPrefix(user, "system:serviceaccount:kube-system:"); ok {
		return name // a controller of the controller manager
	}
	switch user {
	case managerUser:
		return managerClient
	case setterUser:
		return setterClient
	case kubeletsUser:
		return kubeletClient
	case adminUser:
		return benchClient
	}
	return strings.TrimPrefix(user, "system:")
}

// auditReader reads the lines that the API server adds to its audit log.
type auditReader struct {
	path string
	at   int64
	part []byte // of a line that is still being written
}

// openAudit starts at the end of what is there.
func openAudit(path string) (*auditReader, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the API server writes no audit log at %s", path)
	case err != nil:
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return &auditReader{path: path, at: info.Size()}, nil
}

// read hands over each event that is new.
func (r *auditReader) read(each func(*auditEvent)) error {
	f, err := os.Open(r.path)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(r.at, io.SeekStart); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	fresh, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	r.at += int64(len(fresh))
	data := append(r.part, fresh...)
	for {
		line, rest, ok := bytes.Cut(data, []byte("\n"))
		if !ok {
			break
		}
		data = rest
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("audit log %s: a line is no event: %w", r.path, err)
		}
		each(&e)
	}
	r.part = bytes.Clone(data)
	return nil
}
