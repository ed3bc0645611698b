package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"time"
)

// Authority issues the certificates of the nodes of one cluster.
type Authority struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// backdating tolerates clocks that differ.
const backdating = 5 * time.Minute

// clusterURI is the identity of a cluster in the certificate of its authority.
func clusterURI(cluster string) *url.URL { return &url.URL{Scheme: "spiffe", Host: cluster} }

// NodeURI is the identity of a node in its certificate.
func NodeURI(cluster, node string) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: cluster, Path: "/node/" + node}
}

// NewAuthority returns an authority with a new key.
func NewAuthority(cluster string, validity time.Duration) (*Authority, error) {
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate("platform cluster "+cluster, validity)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	template.URIs = []*url.URL{clusterURI(cluster)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("create the certificate of cluster %q: %w", cluster, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("the name of cluster %q cannot be part of a certificate: %w", cluster, err)
	}
	return &Authority{cert, key}, nil
}

// ParseAuthority returns the authority of the first certificate in certs and its key, both in
// PEM format.
func ParseAuthority(certs, key []byte) (*Authority, error) {
	block, _ := pem.Decode(certs)
	if block == nil {
		return nil, errors.New("the file of the authority contains no certificate in PEM format")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, err := ParseKey(key)
	if err != nil {
		return nil, fmt.Errorf("the key file of the authority: %w", err)
	}
	if !signer.PublicKey.Equal(cert.PublicKey) {
		return nil, errors.New("the key does not belong to the certificate of the authority")
	}
	return &Authority{cert, signer}, nil
}

// Cluster returns the name of the cluster.
func (a *Authority) Cluster() (string, error) {
	i := slices.IndexFunc(a.Cert.URIs, func(u *url.URL) bool { return u.Scheme == "spiffe" && u.Path == "" })
	if i < 0 {
		return "", errors.New("the certificate is not that of an authority of a cluster")
	}
	return a.Cert.URIs[i].Host, nil
}

// CertPEM returns the certificate of the authority.
func (a *Authority) CertPEM() []byte { return encodePEM("CERTIFICATE", a.Cert.Raw) }

// KeyPEM returns the key of the authority.
func (a *Authority) KeyPEM() ([]byte, error) { return KeyPEM(a.key) }

// PacketKey returns the key of gossip packets that follows from the key of the authority, as
// the content of a file.
func (a *Authority) PacketKey() ([]byte, error) {
	secret, err := a.key.Bytes()
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "platform gossip packets", 32)
	if err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(key) + "\n"), nil
}

// IssueNode returns a certificate for a node, with a new key.
func (a *Authority) IssueNode(node string, validity time.Duration) (cert, key []byte, err error) {
	private, err := NewKey()
	if err != nil {
		return nil, nil, err
	}
	if cert, err = a.issue(node, private.Public(), validity); err != nil {
		return nil, nil, err
	}
	if key, err = KeyPEM(private); err != nil {
		return nil, nil, err
	}
	return cert, key, nil
}

// issue returns a certificate of a node for a public key. Nothing else in it comes from the node.
func (a *Authority) issue(node string, key crypto.PublicKey, validity time.Duration) ([]byte, error) {
	cluster, err := a.Cluster()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(node, min(validity, time.Until(a.Cert.NotAfter)))
	if err != nil {
		return nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.URIs = []*url.URL{NodeURI(cluster, node)}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Cert, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("create the certificate of node %q: %w", node, err)
	}
	return encodePEM("CERTIFICATE", der), nil
}

func newTemplate(name string, validity time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-backdating), NotAfter: now.Add(validity),
	}, nil
}

// NewKey returns a new key of a node.
func NewKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// KeyPEM returns a key in PEM format.
func KeyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return encodePEM("PRIVATE KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
