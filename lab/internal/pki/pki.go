package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const lifetime = 365 * 24 * time.Hour

// Pair is a certificate and its key, both PEM.
type Pair struct {
	Cert, Key []byte
}

// CA signs the certificates of one lab.
type CA struct {
	Pair
	cert *x509.Certificate
	key  crypto.Signer
}

// NewCA makes a new authority.
func NewCA() (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the lab's CA key: %w", err)
	}
	tmpl := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "ome-lab"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	pair, err := sign(tmpl, tmpl, key, key)
	if err != nil {
		return nil, fmt.Errorf("make the lab's CA certificate: %w", err)
	}
	return parseCA(pair)
}

// LoadCA reads the authority that Save wrote.
func LoadCA(dir string) (*CA, error) {
	pair, err := LoadPair(dir, "ca")
	if err != nil {
		return nil, err
	}
	return parseCA(pair)
}

func parseCA(pair Pair) (*CA, error) {
	block, _ := pem.Decode(pair.Cert)
	keyBlock, _ := pem.Decode(pair.Key)
	if block == nil || keyBlock == nil {
		return nil, errors.New("the lab's CA files are not PEM; run `ome-lab down --purge` and `ome-lab up` again")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse the lab's CA certificate: %w", err)
	}
	key, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse the lab's CA key: %w", err)
	}
	return &CA{Pair: pair, cert: cert, key: key.(crypto.Signer)}, nil
}

// Pool holds the authority's certificate only.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// Client issues a certificate that authenticates as user, in the given groups.
func (ca *CA) Client(user string, groups ...string) (Pair, error) {
	if user == "" {
		return Pair{}, errors.New("a client certificate needs a user name")
	}
	return ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Server issues a serving certificate for host names and IP addresses. It also serves as a client certificate, which
// etcd asks of its peers.
func (ca *CA) Server(name string, hosts ...string) (Pair, error) {
	tmpl := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, h)
		}
	}
	return ca.issue(tmpl)
}

func (ca *CA) issue(tmpl *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make a key for %s: %w", tmpl.Subject.CommonName, err)
	}
	tmpl.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	pair, err := sign(tmpl, ca.cert, key, ca.key)
	if err != nil {
		return Pair{}, fmt.Errorf("issue a certificate for %s: %w", tmpl.Subject.CommonName, err)
	}
	return pair, nil
}

func sign(tmpl, parent *x509.Certificate, key, signer crypto.Signer) (Pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, err
	}
	tmpl.SerialNumber = serial
	// Clocks of two processes on one machine agree, but a machine that resumes from sleep may step its own back.
	tmpl.NotBefore = time.Now().Add(-time.Hour)
	tmpl.NotAfter = time.Now().Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, err
	}
	keyPEM, err := marshalKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: keyPEM}, nil
}

func marshalKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// NewSigningKey makes the key that signs service account tokens: private half in Key, public half in Cert.
func NewSigningKey() (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make the service account key: %w", err)
	}
	keyPEM, err := marshalKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("make the service account key: %w", err)
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, fmt.Errorf("make the service account key: %w", err)
	}
	return Pair{Key: keyPEM, Cert: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub})}, nil
}

// CertFile and KeyFile name the two files of a pair.
func CertFile(dir, name string) string { return filepath.Join(dir, name+".crt") }

// KeyFile names the key file of a pair.
func KeyFile(dir, name string) string { return filepath.Join(dir, name+".key") }

// Save writes the pair as DIR/NAME.crt and DIR/NAME.key, the key readable by its owner only.
func (p Pair) Save(dir, name string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("save certificate %s: %w", name, err)
	}
	if err := os.WriteFile(CertFile(dir, name), p.Cert, 0o644); err != nil {
		return fmt.Errorf("save certificate %s: %w", name, err)
	}
	if err := os.WriteFile(KeyFile(dir, name), p.Key, 0o600); err != nil {
		return fmt.Errorf("save key %s: %w", name, err)
	}
	return nil
}

// LoadPair reads what Save wrote.
func LoadPair(dir, name string) (Pair, error) {
	cert, err := os.ReadFile(CertFile(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return Pair{}, fmt.Errorf("no certificate %s in %s: is a lab up there?", name, dir)
	} else if err != nil {
		return Pair{}, fmt.Errorf("load certificate %s: %w", name, err)
	}
	key, err := os.ReadFile(KeyFile(dir, name))
	if err != nil {
		return Pair{}, fmt.Errorf("load key %s: %w", name, err)
	}
	return Pair{Cert: cert, Key: key}, nil
}
