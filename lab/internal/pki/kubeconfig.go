package pki

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig describes one way to reach the API server.
type Kubeconfig struct {
	Server string
	CA     []byte
	User   string
	// Pair authenticates by certificate; TokenFile, when set, by a token that is read again as it is renewed.
	Pair      Pair
	TokenFile string
}

func (k Kubeconfig) config() *clientcmdapi.Config {
	auth := &clientcmdapi.AuthInfo{TokenFile: k.TokenFile}
	if k.TokenFile == "" {
		auth.ClientCertificateData, auth.ClientKeyData = k.Pair.Cert, k.Pair.Key
	}
	name := "ome-lab"
	return &clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: k.Server, CertificateAuthorityData: k.CA}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{k.User: auth},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: k.User}},
		CurrentContext: name,
	}
}

// Bytes returns the kubeconfig as YAML.
func (k Kubeconfig) Bytes() ([]byte, error) {
	raw, err := clientcmd.Write(*k.config())
	if err != nil {
		return nil, fmt.Errorf("write a kubeconfig for %s: %w", k.User, err)
	}
	return raw, nil
}

// Save writes the kubeconfig to path, readable by its owner only.
func (k Kubeconfig) Save(path string) error {
	raw, err := k.Bytes()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("save kubeconfig %s: %w", path, err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return fmt.Errorf("save kubeconfig %s: %w", path, err)
	}
	return nil
}

// REST returns a client configuration without a client-side rate limit.
func (k Kubeconfig) REST() *rest.Config {
	cfg := &rest.Config{
		Host:            k.Server,
		TLSClientConfig: rest.TLSClientConfig{CAData: k.CA},
		QPS:             -1,
	}
	if k.TokenFile != "" {
		cfg.BearerTokenFile = k.TokenFile
	} else {
		cfg.CertData, cfg.KeyData = k.Pair.Cert, k.Pair.Key
	}
	return cfg
}
