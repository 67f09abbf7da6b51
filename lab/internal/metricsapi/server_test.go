package metricsapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type fixed struct{ err error }

func (f fixed) Usage(context.Context) ([]Pod, []Node, error) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pod := func(ns, name, app string, milli int64) Pod {
		return Pod{Namespace: ns, Name: name, Node: "lab-00", Labels: map[string]string{"app": app},
			Containers: []Container{{Name: "main", Milli: milli, Bytes: 64 << 20}}, Usage: Usage{At: at, Window: 2 * time.Second, Milli: milli, Bytes: 64 << 20}}
	}
	return []Pod{pod("a", "x", "one", 250), pod("a", "y", "two", 5), pod("b", "x", "one", 7)},
		[]Node{{Name: "lab-00", Usage: Usage{At: at, Window: 2 * time.Second, Milli: 262, Bytes: 192 << 20}}}, f.err
}

func TestServer(t *testing.T) {
	tests := []struct {
		name, path string
		user       string
		source     Source
		code       int
		names      []string
	}{
		{name: "all pods", path: "/pods", code: 200, names: []string{"a/x 250m 65536Ki", "a/y 5m 65536Ki", "b/x 7m 65536Ki"}},
		{name: "a namespace", path: "/namespaces/a/pods", code: 200, names: []string{"a/x 250m 65536Ki", "a/y 5m 65536Ki"}},
		{name: "by label", path: "/namespaces/a/pods?labelSelector=app%3Done", code: 200, names: []string{"a/x 250m 65536Ki"}},
		{name: "by field", path: "/pods?fieldSelector=metadata.name%3Dx", code: 200, names: []string{"a/x 250m 65536Ki", "b/x 7m 65536Ki"}},
		{name: "nobody", path: "/namespaces/c/pods", code: 200},
		{name: "one", path: "/namespaces/b/pods/x", code: 200, names: []string{"b/x 7m 65536Ki"}},
		{name: "none of the name", path: "/namespaces/b/pods/y", code: 404},
		{name: "nodes", path: "/nodes", code: 200, names: []string{"/lab-00 262m 196608Ki"}},
		{name: "a node", path: "/nodes/lab-00", code: 200, names: []string{"/lab-00 262m 196608Ki"}},
		{name: "no selector", path: "/pods?labelSelector=!!", code: 400},
		{name: "somebody else", path: "/pods", user: "ome-lab-admin", code: 401},
		{name: "no answer", path: "/pods", source: fixed{errors.New("the lab is going down")}, code: 503},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var s Server
			if s.SetSource(test.source); test.source == nil {
				s.SetSource(fixed{})
			}
			user := test.user
			if user == "" {
				user = Proxy
			}
			code, body := ask(t, &s, user, test.path)
			if code != test.code {
				t.Fatalf("code %d, want %d: %s", code, test.code, body)
			}
			if code != 200 {
				var status struct{ Kind, Message string }
				if err := json.Unmarshal(body, &status); err != nil || status.Kind != "Status" || status.Message == "" {
					t.Errorf("no status with a message: %s, %v", body, err)
				}
				return
			}
			var l struct {
				Kind, APIVersion string
				Items            []object
			}
			if err := json.Unmarshal(body, &l); err != nil {
				t.Fatal(err)
			}
			if l.Items == nil {
				var one object
				if err := json.Unmarshal(body, &one); err != nil {
					t.Fatal(err)
				}
				if one.Metadata.Name != "" {
					l.Items = []object{one}
				}
			}
			if l.APIVersion != "metrics.k8s.io/v1beta1" {
				t.Errorf("apiVersion %q", l.APIVersion)
			}
			var got []string
			for _, o := range l.Items {
				usage := o.Usage
				if len(o.Containers) == 1 {
					usage = o.Containers[0].Usage
				}
				got = append(got, o.Metadata.Namespace+"/"+o.Metadata.Name+" "+usage["cpu"]+" "+usage["memory"])
				if o.Window.Duration != 2*time.Second || o.Timestamp.IsZero() {
					t.Errorf("%s: window %s at %s", o.Metadata.Name, o.Window.Duration, o.Timestamp)
				}
			}
			if diff := cmp.Diff(test.names, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoSource(t *testing.T) {
	var s Server
	if code, body := ask(t, &s, Proxy, "/nodes"); code != 503 {
		t.Errorf("%d: %s", code, body)
	}
	if code, body := ask(t, &s, Proxy, ""); code != 200 {
		t.Errorf("discovery: %d: %s", code, body)
	}
}

func ask(t *testing.T, s *Server, user, path string) (int, []byte) {
	t.Helper()
	r := httptest.NewRequest("GET", "/apis/metrics.k8s.io/v1beta1"+path, nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: user}}}}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w.Code, w.Body.Bytes()
}
