package install

import (
	"context"
	"fmt"
	"strconv"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// The manager's identity, the same as in a real installation.
const (
	Namespace      = "ome"
	ServiceAccount = "ome-controller-manager"
)

// tokenSeconds outlives any lab; each start of the manager asks for a new token all the same.
const tokenSeconds = int64(30 * 24 * 3600)

// Identity returns the namespace and the ServiceAccount, for manifests that leave them to the cluster's owner.
func Identity() []*unstructured.Unstructured {
	obj := func(kind, ns, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("v1")
		u.SetKind(kind)
		u.SetNamespace(ns)
		u.SetName(name)
		return u
	}
	return []*unstructured.Unstructured{
		obj("Namespace", "", Namespace),
		obj("ServiceAccount", Namespace, ServiceAccount),
	}
}

// Token asks the API server for a token of the manager's ServiceAccount.
func Token(ctx context.Context, client kubernetes.Interface) (string, error) {
	seconds := tokenSeconds
	res, err := client.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, ServiceAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("request a token for ServiceAccount %s/%s: %w", Namespace, ServiceAccount, err)
	}
	return res.Status.Token, nil
}

// ManagerConfig is what differs between two runs of the manager.
type ManagerConfig struct {
	Kubeconfig                       string
	WebhookCertDir                   string
	WebhookPort, Metrics, HealthPort int
	// Extra flags come last, so that they win.
	Extra []string
}

// ManagerArgs are the flags that the lab gives ome-manager. The lease is short because a lab kills its manager often
// and waits for the next one each time.
func ManagerArgs(c ManagerConfig) []string {
	local := func(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
	args := []string{
		"--kubeconfig=" + c.Kubeconfig,
		"--metrics-bind-address=" + local(c.Metrics),
		"--health-probe-bind-address=" + local(c.HealthPort),
		"--webhook-bind-host=127.0.0.1",
		"--webhook-port=" + strconv.Itoa(c.WebhookPort),
		"--webhook-cert-dir=" + c.WebhookCertDir,
		"--webhook-cert-rotation=false",
		"--leader-elect=true",
		"--leader-elect-namespace=" + Namespace,
		"--leader-elect-lease-duration=4s",
		"--leader-elect-renew-deadline=3s",
		"--leader-elect-retry-period=500ms",
	}
	return append(args, c.Extra...)
}

// ManagerEnv is what a Deployment would set through the downward API.
func ManagerEnv() []string {
	return []string{"POD_NAMESPACE=" + Namespace, "POD_NAME=" + ServiceAccount + "-lab"}
}
