package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"
)

// maxRequest is the size of a signing request.
const maxRequest = 4 << 10

// names are names of nodes and clusters that can be part of a certificate.
var names = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// ValidName reports whether the name of a node or a cluster can be part of a certificate.
func ValidName(name string) bool { return names.MatchString(name) }

// SigningRequest is a verified request of a node for a certificate.
type SigningRequest struct {
	node string
	key  *ecdsa.PublicKey
	// KeyHash is the SHA-256 of the public key.
	KeyHash [sha256.Size]byte
}

// NewSigningRequest returns a request for the certificate of a node, signed with its key.
func NewSigningRequest(key *ecdsa.PrivateKey, cluster, node string) ([]byte, error) {
	return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{NodeURI(cluster, node)}}, key)
}

// ParseSigningRequest verifies that a request is one for the certificate of a node, and that the
// sender has the key.
func ParseSigningRequest(der []byte, cluster, node string) (*SigningRequest, error) {
	if len(der) > maxRequest {
		return nil, fmt.Errorf("the signing request has %d bytes", len(der))
	}
	if !ValidName(node) {
		return nil, errors.New("the name of the node cannot be part of a certificate")
	}
	r, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, fmt.Errorf("parse the signing request: %w", err)
	}
	key, ok := r.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("the key of the signing request is not one for ECDSA P-256")
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("the signing request: %w", err)
	}
	want := NodeURI(cluster, node).String()
	if len(r.URIs) != 1 || r.URIs[0].String() != want || len(r.DNSNames)+len(r.IPAddresses)+len(r.EmailAddresses) > 0 {
		return nil, fmt.Errorf("the signing request is not one for %s only", want)
	}
	return &SigningRequest{node, key, sha256.Sum256(r.RawSubjectPublicKeyInfo)}, nil
}

// Sign returns the certificate that a node has requested.
func (a *Authority) Sign(r *SigningRequest, validity time.Duration) ([]byte, error) {
	return a.issue(r.node, r.key, validity)
}

// CheckIssued checks a certificate in PEM format that a node has received for its key: it must be
// that of the node, and issued by one of the authorities, which are in PEM format.
func CheckIssued(certificate, authorities []byte, key *ecdsa.PrivateKey, cluster, node string) error {
	list := parseCertificates(certificate)
	if len(list) == 0 {
		return errors.New("there is no certificate")
	}
	leaf := list[0]
	if !key.PublicKey.Equal(leaf.PublicKey) {
		return errors.New("the certificate is for another key")
	}
	if len(leaf.URIs) != 1 || leaf.URIs[0].String() != NodeURI(cluster, node).String() {
		return errors.New("the certificate is for another node")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}

// RenewAt returns when a certificate of the cluster's authority is to be renewed: when a third of
// its validity is left.
func RenewAt(leaf *x509.Certificate) time.Time {
	return leaf.NotAfter.Add(-leaf.NotAfter.Sub(leaf.NotBefore.Add(backdating)) / 3)
}

// ParseKey returns a key of a node in PEM format.
func ParseKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it contains no key in PEM format")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("it contains no key for ECDSA")
	}
	return key, nil
}

// AuthorityOf returns the authority with a certificate in DER and a key in PEM format.
func AuthorityOf(certificate, key []byte) (*Authority, error) {
	return ParseAuthority(encodePEM("CERTIFICATE", certificate), key)
}
