package webhook

import (
	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// CertOptions say where the certificate lives and which name it is for.
type CertOptions struct {
	// Namespace of the manager.
	Namespace string
	// Dir is where the Secret is mounted: the webhook server's certificate directory.
	Dir string
	// ExtraDNSNames are further names that clients use.
	ExtraDNSNames []string
}

// Names of the shipped manifests.
const (
	CertSecretName = "ome-webhook-server-cert"
	ServiceName    = "ome-webhook-server-service"
)

// rotateCerts keeps a certificate in the Secret and its authority in the webhook configurations. The
// channel closes when the files are in Dir and the authority is in place. Every replica runs it:
// each needs to know when its own files have come.
func rotateCerts(mgr ctrl.Manager, opts CertOptions, configurations []string) (<-chan struct{}, error) {
	ready := make(chan struct{})
	var hooks []rotator.WebhookInfo
	for _, name := range configurations {
		hooks = append(hooks, rotator.WebhookInfo{Name: name, Type: rotator.Validating})
	}
	err := rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey:             types.NamespacedName{Namespace: opts.Namespace, Name: CertSecretName},
		CertDir:               opts.Dir,
		CAName:                "ome-webhook-ca",
		CAOrganization:        "ome",
		DNSName:               ServiceName + "." + opts.Namespace + ".svc",
		ExtraDNSNames:         opts.ExtraDNSNames,
		IsReady:               ready,
		RequireLeaderElection: false,
		Webhooks:              hooks,
	})
	if err != nil {
		return nil, err
	}
	return ready, nil
}
