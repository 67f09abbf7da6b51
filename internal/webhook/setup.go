package webhook

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Paths that the ValidatingWebhookConfiguration names.
const (
	ServicePath = "/validate-ome-io-v1beta1-inferenceservice"
	ReplicaPath = "/validate-ome-io-v1beta1-inferencereplica"
	RuntimePath = "/validate-ome-io-v1beta1-servingruntime"
	// ClusterRuntimePath is the path for ClusterServingRuntimes.
	ClusterRuntimePath = "/validate-ome-io-v1beta1-clusterservingruntime"
	PolicyPath         = "/validate-ome-io-v1beta1-rolloutpolicy"
)

// Names of the webhooks. A client prints the name before each denial.
const (
	ServiceWebhookName = "inferenceservice.ome-webhook-server.validator"
	ReplicaWebhookName = "inferencereplica.ome-webhook-server.validator"
	RuntimeWebhookName = "servingruntime.ome-webhook-server.validator"
	// ClusterRuntimeWebhookName is the webhook of ClusterServingRuntimes.
	ClusterRuntimeWebhookName = "clusterservingruntime.ome-webhook-server.validator"
	PolicyWebhookName         = "rolloutpolicy.ome-webhook-server.validator"
)

// ConfigurationName is the ValidatingWebhookConfiguration that holds all of a default install.
const ConfigurationName = "ome-validating-webhooks"

// PolicyConfigurationName is the one that comes with RolloutPolicies.
const PolicyConfigurationName = "rolloutpolicy.ome.io"

// ManagerUser is the user name of a manager that runs in a namespace under the shipped account.
func ManagerUser(namespace string) string {
	return "system:serviceaccount:" + namespace + ":ome-controller-manager"
}

// Options configure the webhooks of one manager.
type Options struct {
	// ManagerUser is the user name that the manager's own requests come under.
	ManagerUser string
	// KEDAServed tells whether the cluster has ScaledObjects; nil means that it has none.
	KEDAServed func() bool
	// PoliciesServed is true when the cluster had RolloutPolicies as the manager started.
	PoliciesServed bool
	// MaxPlanBytes caps the JSON of one progression, as it was set when the manager started; 0: no cap.
	MaxPlanBytes int32
	// Certs asks the manager to make and renew the certificate that it serves. Nil means that the
	// webhook server's directory already holds one.
	Certs *CertOptions
}

// SetupWithManager serves the webhooks on the manager's webhook server. With Certs, serving
// begins once there is a certificate; the manager may be started before.
func SetupWithManager(mgr ctrl.Manager, opts Options) error {
	if opts.Certs == nil {
		register(mgr, opts)
		return nil
	}
	configurations := []string{ConfigurationName}
	if opts.PoliciesServed {
		configurations = append(configurations, PolicyConfigurationName)
	}
	ready, err := rotateCerts(mgr, *opts.Certs, configurations)
	if err != nil {
		return err
	}
	return mgr.Add(onEveryReplica{func(ctx context.Context) error {
		select {
		case <-ready:
			// Asking for the server is what starts it, and it needs the files then.
			register(mgr, opts)
		case <-ctx.Done():
		}
		return nil
	}})
}

func register(mgr ctrl.Manager, opts Options) {
	server := mgr.GetWebhookServer()
	if opts.PoliciesServed {
		server.Register(PolicyPath, &webhook.Admission{Handler: NewPolicyHandler(opts, mgr.GetAPIReader())})
	}
	for path, handler := range map[string]webhook.AdmissionHandler{
		ServicePath:        NewServiceHandler(opts),
		ReplicaPath:        NewReplicaHandler(opts),
		RuntimePath:        NewRuntimeHandler(opts),
		ClusterRuntimePath: NewClusterRuntimeHandler(opts),
	} {
		server.Register(path, &webhook.Admission{Handler: handler})
	}
}

// onEveryReplica runs whether or not this replica leads.
type onEveryReplica struct{ manager.RunnableFunc }

func (onEveryReplica) NeedLeaderElection() bool { return false }
