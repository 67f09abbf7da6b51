package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	create   = `{"stage":"ResponseComplete","verb":"create","user":{"username":"system:serviceaccount:ome:ome-controller-manager"},"objectRef":{"resource":"pods","namespace":"a"},"responseStatus":{"code":201}}`
	clash    = `{"stage":"ResponseComplete","verb":"patch","user":{"username":"ome-lab-kubelets"},"objectRef":{"resource":"pods","subresource":"status","namespace":"a"},"responseStatus":{"code":409}}`
	patched  = `{"stage":"ResponseComplete","verb":"patch","user":{"username":"ome-lab-kubelets"},"objectRef":{"resource":"pods","subresource":"status","namespace":"a"},"responseStatus":{"code":200}}`
	get      = `{"stage":"ResponseComplete","verb":"get","user":{"username":"system:serviceaccount:kube-system:replicaset-controller"},"objectRef":{"resource":"replicasets","namespace":"a"},"responseStatus":{"code":200}}`
	foreign  = `{"stage":"ResponseComplete","verb":"create","user":{"username":"system:kube-scheduler"},"objectRef":{"resource":"pods","namespace":"b"},"responseStatus":{"code":201}}`
	watch    = `{"stage":"ResponseComplete","verb":"watch","user":{"username":"system:kube-scheduler"},"objectRef":{"resource":"pods","namespace":"a"},"responseStatus":{"code":200}}`
	started  = `{"stage":"ResponseStarted","verb":"list","user":{"username":"system:kube-scheduler"},"objectRef":{"resource":"pods","namespace":"a"},"responseStatus":{"code":200}}`
	unscoped = `{"stage":"ResponseComplete","verb":"get","user":{"username":"ome-lab-admin"},"responseStatus":{"code":200}}`
)

func TestRequestsAreCountedByClientVerbAndResource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write := func(text string) {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write(create + "\n") // before the roll: not counted
	r, err := openAudit(path)
	if err != nil {
		t.Fatal(err)
	}
	count := newTally("a")
	wrote := false
	read := func() {
		t.Helper()
		wrote = false
		if err := r.read(func(e *auditEvent) { wrote = count.add(e) || wrote }); err != nil {
			t.Fatal(err)
		}
	}
	write(create + "\n" + create + "\n" + clash + "\n" + patched[:40])
	read()
	if !wrote {
		t.Error("writes were read and none was reported")
	}
	write(patched[40:] + "\n" + foreign + "\n" + watch + "\n" + started + "\n" + unscoped + "\n")
	read()
	if !wrote {
		t.Error("the end of a line that was cut in two got lost")
	}
	write(get + "\n")
	read()
	if wrote {
		t.Error("a read counts as a write")
	}
	want := []Requests{
		{Client: "kubelets", Verb: "patch", Resource: "pods/status", Accepted: 1, Rejected: 1},
		{Client: "ome-manager", Verb: "create", Resource: "pods", Accepted: 2},
		{Client: "replicaset-controller", Verb: "get", Resource: "replicasets", Accepted: 1},
	}
	if diff := cmp.Diff(want, count.list()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestAnAuditLogThatIsMissingOrBroken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if _, err := openAudit(path); err == nil {
		t.Error("no error for a log that is not there")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := openAudit(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("no event\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.read(func(*auditEvent) {}); err == nil {
		t.Error("no error for a line that is no event: it would go uncounted")
	}
}
