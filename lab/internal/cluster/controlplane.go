package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"ome.io/ome/lab/internal/binaries"
	"ome.io/ome/lab/internal/pki"
	"ome.io/ome/lab/internal/process"
)

const serviceRange, serviceFirst = "10.96.0.0/12", "10.96.0.1"

// files makes every certificate, key, kubeconfig and config file that doesn't depend on a port.
func (s *supervisor) files() error {
	ca, err := pki.NewCA()
	if err != nil {
		return err
	}
	s.ca = ca
	dir := s.l.pki()
	save := func(name string, pair pki.Pair, err error) error {
		if err != nil {
			return err
		}
		return pair.Save(dir, name)
	}
	if err := ca.Save(dir, "ca"); err != nil {
		return err
	}
	sa, err := pki.NewSigningKey()
	if err := save("service-account", sa, err); err != nil {
		return err
	}
	local := []string{"localhost", "127.0.0.1", "::1"}
	servers := map[string][]string{
		"etcd":                    local,
		"kube-apiserver":          append([]string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", serviceFirst}, local...),
		"kube-controller-manager": local,
		"kube-scheduler":          local,
		"kubelet":                 local,
	}
	for name, hosts := range servers {
		pair, err := ca.Server(name, hosts...)
		if err := save(name, pair, err); err != nil {
			return err
		}
	}
	hook, err := ca.Server("ome-webhook-server", append([]string{"ome-webhook-server.ome.svc"}, local...)...)
	if err != nil {
		return err
	}
	// The names a Kubernetes TLS secret has when it is mounted.
	if err := writeFiles(filepath.Join(dir, "webhook"), map[string][]byte{"tls.crt": hook.Cert, "tls.key": hook.Key, "ca.crt": ca.Cert}); err != nil {
		return err
	}
	clients := []struct{ file, user, group string }{
		{"admin", "ome-lab-admin", "system:masters"},
		{"apiserver-kubelet-client", "kube-apiserver-kubelet-client", "system:masters"},
		{"apiserver-etcd-client", "kube-apiserver-etcd-client", ""},
		{"front-proxy-client", "front-proxy-client", ""},
		{"controller-manager-client", "system:kube-controller-manager", ""},
		{"scheduler-client", "system:kube-scheduler", ""},
	}
	for _, c := range clients {
		var groups []string
		if c.group != "" {
			groups = append(groups, c.group)
		}
		pair, err := ca.Client(c.user, groups...)
		if err := save(c.file, pair, err); err != nil {
			return err
		}
		if c.file == "admin" {
			s.admin = pair
		}
	}
	return writeFiles(s.l.conf(), map[string][]byte{"audit.yaml": []byte(auditPolicy), "scheduler.yaml": []byte(s.schedulerConfig())})
}

func writeFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write the lab's files: %w", err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return fmt.Errorf("write the lab's files: %w", err)
		}
	}
	return nil
}

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
# What is asked of a count is told in full.
- level: Request
  verbs: [create, patch, update]
  resources: [{group: ome.io, resources: [inferencereplicas, inferencereplicas/scale]}]
- level: Metadata
`

func (s *supervisor) schedulerConfig() string {
	return fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: %q
  qps: 5000
  burst: 10000
leaderElection:
  leaderElect: false
`, s.clientConf("scheduler"))
}

func (s *supervisor) clientConf(name string) string {
	return filepath.Join(s.l.conf(), name+".kubeconfig")
}

// kubeconfigs writes the files that carry the API server's address.
func (s *supervisor) kubeconfigs() error {
	for file, user := range map[string]string{"controller-manager": "system:kube-controller-manager", "scheduler": "system:kube-scheduler"} {
		pair, err := pki.LoadPair(s.l.pki(), file+"-client")
		if err != nil {
			return err
		}
		k := pki.Kubeconfig{Server: s.server, CA: s.ca.Cert, User: user, Pair: pair}
		if err := k.Save(s.clientConf(file)); err != nil {
			return err
		}
	}
	return s.adminKubeconfig().Save(s.l.Kubeconfig())
}

func (s *supervisor) adminKubeconfig() pki.Kubeconfig {
	return pki.Kubeconfig{Server: s.server, CA: s.ca.Cert, User: "ome-lab-admin", Pair: s.admin}
}

func localURL(scheme string, port int) string {
	return scheme + "://127.0.0.1:" + strconv.Itoa(port)
}

func (s *supervisor) spec(name string, args ...string) process.Spec {
	return process.Spec{Name: name, Path: s.o.Binaries[name], Args: args, Dir: s.l.Dir, LogFile: s.l.Log(name)}
}

func (s *supervisor) cert(name string) string { return pki.CertFile(s.l.pki(), name) }
func (s *supervisor) key(name string) string  { return pki.KeyFile(s.l.pki(), name) }

func (s *supervisor) etcdUnit() *unit {
	return &unit{
		name: binaries.Etcd, portNames: []string{"client", "peer"},
		spec: func(p map[string]int) (process.Spec, error) {
			client, peer := localURL("https", p["client"]), localURL("https", p["peer"])
			return s.spec(binaries.Etcd,
				"--name=lab", "--data-dir="+s.l.etcd(), "--unsafe-no-fsync", "--log-level=warn",
				"--quota-backend-bytes="+strconv.Itoa(8<<30),
				"--listen-client-urls="+client, "--advertise-client-urls="+client,
				"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=lab="+peer,
				"--client-cert-auth", "--trusted-ca-file="+s.cert("ca"), "--cert-file="+s.cert("etcd"), "--key-file="+s.key("etcd"),
				"--peer-client-cert-auth", "--peer-trusted-ca-file="+s.cert("ca"), "--peer-cert-file="+s.cert("etcd"), "--peer-key-file="+s.key("etcd"),
			), nil
		},
		health: func(p map[string]int) string { return localURL("https", p["client"]) + "/health" },
	}
}

func (s *supervisor) apiserverUnit() *unit {
	return &unit{
		name: binaries.APIServer, portNames: []string{"secure"},
		spec: func(p map[string]int) (process.Spec, error) {
			args := []string{
				"--etcd-servers=" + localURL("https", s.units[binaries.Etcd].port("client")),
				"--etcd-cafile=" + s.cert("ca"), "--etcd-certfile=" + s.cert("apiserver-etcd-client"), "--etcd-keyfile=" + s.key("apiserver-etcd-client"),
				"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(p["secure"]),
				// The address would go into an EndpointSlice, where loopback is refused; nothing in a lab uses that Service.
				"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
				"--tls-cert-file=" + s.cert("kube-apiserver"), "--tls-private-key-file=" + s.key("kube-apiserver"),
				"--client-ca-file=" + s.cert("ca"),
				"--authorization-mode=Node,RBAC",
				"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
				"--default-not-ready-toleration-seconds=5", "--default-unreachable-toleration-seconds=5",
				"--service-cluster-ip-range=" + serviceRange,
				"--service-account-issuer=https://kubernetes.default.svc",
				"--service-account-key-file=" + s.cert("service-account"), "--service-account-signing-key-file=" + s.key("service-account"),
				"--kubelet-certificate-authority=" + s.cert("ca"), "--kubelet-preferred-address-types=InternalIP",
				"--kubelet-client-certificate=" + s.cert("apiserver-kubelet-client"), "--kubelet-client-key=" + s.key("apiserver-kubelet-client"),
				"--requestheader-client-ca-file=" + s.cert("ca"), "--requestheader-allowed-names=front-proxy-client",
				"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
				"--proxy-client-cert-file=" + s.cert("front-proxy-client"), "--proxy-client-key-file=" + s.key("front-proxy-client"),
				"--max-requests-inflight=1600", "--max-mutating-requests-inflight=800",
				"--allow-privileged=true",
			}
			if s.o.Audit {
				// Never rotated: a test counts every line. The size is in megabytes.
				args = append(args, "--audit-policy-file="+filepath.Join(s.l.conf(), "audit.yaml"), "--audit-log-path="+s.l.Log("audit"), "--audit-log-maxsize=100000")
			}
			return s.spec(binaries.APIServer, args...), nil
		},
		health: func(p map[string]int) string { return localURL("https", p["secure"]) + "/readyz" },
	}
}

func (s *supervisor) controllerManagerUnit() *unit {
	return &unit{
		name: binaries.ControllerManager, portNames: []string{"secure"},
		spec: func(p map[string]int) (process.Spec, error) {
			conf := s.clientConf("controller-manager")
			return s.spec(binaries.ControllerManager,
				"--kubeconfig="+conf, "--authentication-kubeconfig="+conf, "--authorization-kubeconfig="+conf,
				"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(p["secure"]),
				"--tls-cert-file="+s.cert(binaries.ControllerManager), "--tls-private-key-file="+s.key(binaries.ControllerManager),
				"--client-ca-file="+s.cert("ca"), "--requestheader-client-ca-file="+s.cert("ca"),
				"--root-ca-file="+s.cert("ca"), "--service-account-private-key-file="+s.key("service-account"),
				"--cluster-signing-cert-file="+s.cert("ca"), "--cluster-signing-key-file="+s.key("ca"),
				"--use-service-account-credentials", "--leader-elect=false", "--controllers="+controllers(s.o.ControllersOff),
				"--kube-api-qps=5000", "--kube-api-burst=10000",
				"--concurrent-deployment-syncs=20", "--concurrent-replicaset-syncs=20", "--concurrent-service-endpoint-syncs=20",
				"--node-monitor-period=1s", "--node-monitor-grace-period="+s.o.NodeGrace.String(), "--node-startup-grace-period=10s",
				// One node in ten seconds is the stock rate, and then a dead node takes its turn to be emptied.
				"--node-eviction-rate=100", "--secondary-node-eviction-rate=100",
				"--horizontal-pod-autoscaler-sync-period=2s", "--horizontal-pod-autoscaler-downscale-stabilization=5s",
				// Stock values are minutes, in which a new pod's usage counts for nothing.
				"--horizontal-pod-autoscaler-cpu-initialization-period=10s", "--horizontal-pod-autoscaler-initial-readiness-delay=2s",
			), nil
		},
		health: func(p map[string]int) string { return localURL("https", p["secure"]) + "/healthz" },
	}
}

// controllers are all but those that are off.
func controllers(off []string) string {
	all := "*"
	for _, name := range off {
		all += ",-" + name
	}
	return all
}

func (s *supervisor) schedulerUnit() *unit {
	return &unit{
		name: binaries.Scheduler, portNames: []string{"secure"},
		spec: func(p map[string]int) (process.Spec, error) {
			conf := s.clientConf("scheduler")
			return s.spec(binaries.Scheduler,
				"--config="+filepath.Join(s.l.conf(), "scheduler.yaml"),
				"--authentication-kubeconfig="+conf, "--authorization-kubeconfig="+conf,
				"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(p["secure"]),
				"--tls-cert-file="+s.cert(binaries.Scheduler), "--tls-private-key-file="+s.key(binaries.Scheduler),
				"--client-ca-file="+s.cert("ca"), "--requestheader-client-ca-file="+s.cert("ca"),
			), nil
		},
		health: func(p map[string]int) string { return localURL("https", p["secure"]) + "/readyz" },
	}
}
