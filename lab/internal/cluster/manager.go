package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"ome.io/ome/lab/internal/install"
	"ome.io/ome/lab/internal/pki"
	"ome.io/ome/lab/internal/process"
)

// ManagerName is the component that runs ome-manager.
const ManagerName = "ome-manager"

// installProduct applies the CRDs and roles as shipped, with those of the components that were asked for. Webhooks wait
// for the manager's port.
func (s *supervisor) installProduct(ctx context.Context) error {
	client, err := install.NewClient(s.adminKubeconfig().REST())
	if err != nil {
		return err
	}
	objs := install.Identity()
	for _, sub := range []string{"crd", "rbac"} {
		found, err := install.Load(filepath.Join(s.o.Config, sub))
		if err != nil {
			return err
		}
		objs = append(objs, found...)
	}
	components, err := install.Components(s.o.Config)
	if err != nil {
		return err
	}
	for _, c := range components {
		if slices.Contains(s.o.Components, c.Name) {
			objs = append(objs, c.Objects...)
		}
	}
	return client.Apply(ctx, objs)
}

func (s *supervisor) managerUnit() *unit {
	u := &unit{name: ManagerName, portNames: []string{"webhook", "metrics", "health"}}
	u.health = func(p map[string]int) string { return localURL("http", p["health"]) + "/readyz" }
	var hooks []string
	u.prepare = func(ctx context.Context, p map[string]int) error {
		if err := s.managerToken(ctx); err != nil {
			return err
		}
		urls, err := s.pointWebhooks(ctx, p["webhook"])
		hooks = urls
		return err
	}
	u.spec = func(p map[string]int) (process.Spec, error) {
		return process.Spec{
			Name: ManagerName, Path: s.o.Manager, Dir: s.l.Dir, LogFile: s.l.Log(ManagerName), Env: install.ManagerEnv(),
			Args: install.ManagerArgs(install.ManagerConfig{
				Kubeconfig: s.managerKubeconfig(), WebhookCertDir: filepath.Join(s.l.pki(), "webhook"),
				WebhookPort: p["webhook"], Metrics: p["metrics"], HealthPort: p["health"], Extra: s.o.ManagerFlags,
			}),
		}, nil
	}
	u.ready = func(ctx context.Context, _ map[string]int) error { return s.webhooksAnswer(ctx, hooks) }
	return u
}

func (s *supervisor) managerKubeconfig() string { return filepath.Join(s.l.manager(), "kubeconfig") }

func (s *supervisor) managerToken(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.adminKubeconfig().REST())
	if err != nil {
		return fmt.Errorf("make the token client: %w", err)
	}
	token, err := install.Token(ctx, client)
	if err != nil {
		return err
	}
	file := filepath.Join(s.l.manager(), "token")
	if err := os.MkdirAll(s.l.manager(), 0o700); err != nil {
		return fmt.Errorf("write the manager's token: %w", err)
	}
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		return fmt.Errorf("write the manager's token: %w", err)
	}
	k := pki.Kubeconfig{Server: s.server, CA: s.ca.Cert, User: install.ServiceAccount, TokenFile: file}
	return k.Save(s.managerKubeconfig())
}

func (s *supervisor) pointWebhooks(ctx context.Context, port int) ([]string, error) {
	objs, err := install.Load(filepath.Join(s.o.Config, "webhook"))
	if err != nil {
		return nil, err
	}
	base := "https://" + net.JoinHostPort("localhost", strconv.Itoa(port))
	urls, err := install.PointWebhooks(objs, base, s.ca.Cert)
	if err != nil {
		return nil, err
	}
	client, err := install.NewClient(s.adminKubeconfig().REST())
	if err != nil {
		return nil, err
	}
	if err := client.Apply(ctx, objs); err != nil {
		return nil, err
	}
	more, err := s.pointComponents(ctx, client, base)
	return append(urls, more...), err
}

// pointComponents does the same for the components that were asked for, and for those that somebody has applied since.
func (s *supervisor) pointComponents(ctx context.Context, client *install.Client, base string) ([]string, error) {
	components, err := install.Components(s.o.Config)
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, c := range components {
		for _, hooks := range c.Webhooks {
			called, err := install.PointWebhooks([]*unstructured.Unstructured{hooks}, base, s.ca.Cert)
			if err != nil {
				return nil, err
			}
			stored, err := client.SetWebhooks(ctx, hooks, slices.Contains(s.o.Components, c.Name))
			if err != nil {
				return nil, err
			}
			if stored {
				urls = append(urls, called...)
			}
		}
	}
	return urls, nil
}

// webhooksAnswer checks the way the API server goes: the name, the lab's CA, the path. Any answer to an empty request
// will do, save one that says the path is not there.
func (s *supervisor) webhooksAnswer(ctx context.Context, urls []string) error {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.ca.Pool()}, DisableKeepAlives: true}}
	for _, url := range urls {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return fmt.Errorf("webhook does not answer: %w", err)
		}
		res.Body.Close()
		if res.StatusCode == http.StatusNotFound {
			return fmt.Errorf("webhook %s answers %s", url, res.Status)
		}
	}
	return nil
}
