package pki

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

func newServer(t *testing.T, ca *CA) *httptest.Server {
	t.Helper()
	pair, err := ca.Server("test", "127.0.0.1", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		io.WriteString(w, subject.CommonName)
		for _, g := range subject.Organization {
			io.WriteString(w, " "+g)
		}
	}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

func TestClientAndServerTrustEachOther(t *testing.T) {
	ca, err := NewCA()
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewCA()
	if err != nil {
		t.Fatal(err)
	}
	srv := newServer(t, ca)
	tests := []struct {
		name   string
		issuer *CA
		roots  *CA
		want   string
		fail   bool
	}{
		{name: "same authority", issuer: ca, roots: ca, want: "alice devs oncall"},
		{name: "client of another lab", issuer: other, roots: ca, fail: true},
		{name: "server of another lab", issuer: ca, roots: other, fail: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pair, err := tt.issuer.Client("alice", "devs", "oncall")
			if err != nil {
				t.Fatal(err)
			}
			cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
			if err != nil {
				t.Fatal(err)
			}
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
				RootCAs: tt.roots.Pool(), Certificates: []tls.Certificate{cert}}}}
			res, err := client.Get(srv.URL)
			if tt.fail {
				if err == nil {
					t.Fatal("the two trusted each other")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			got, _ := io.ReadAll(res.Body)
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("subject (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSaveAndLoad(t *testing.T) {
	dir := t.TempDir()
	ca, err := NewCA()
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.Save(dir, "ca"); err != nil {
		t.Fatal(err)
	}
	loaded, err := LoadCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := loaded.Client("bob")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	opts := x509.VerifyOptions{Roots: ca.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := leaf.Verify(opts); err != nil {
		t.Errorf("a certificate of the loaded authority: %v", err)
	}
	info, err := os.Stat(KeyFile(dir, "ca"))
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("key mode %o, want 600", got)
	}
	if _, err := LoadCA(t.TempDir()); err == nil {
		t.Error("loading from an empty directory succeeds")
	}
}

func TestKubeconfigIsReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	k := Kubeconfig{Server: "https://127.0.0.1:6443", CA: []byte("ca"), User: "alice", Pair: Pair{Cert: []byte("c"), Key: []byte("k")}}
	if err := k.Save(path); err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{k.Server, "ca", "c", "k"},
		[]string{cfg.Host, string(cfg.CAData), string(cfg.CertData), string(cfg.KeyData)}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
