package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// Certificates issues certificates of a listener at 127.0.0.1 and of its clients.
type Certificates struct {
	key    *ecdsa.PrivateKey
	parent *x509.Certificate
	serial int64
}

// NewCertificates makes an authority.
func NewCertificates() (*Certificates, error) {
	c := &Certificates{}
	var err error
	if c.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	template := c.template()
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &c.key.PublicKey, c.key)
	if err != nil {
		return nil, err
	}
	c.parent, err = x509.ParseCertificate(der)
	return c, err
}

// Pool verifies the certificates.
func (c *Certificates) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.parent)
	return pool
}

// Authority returns the certificate that verifies the others, in PEM.
func (c *Certificates) Authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.parent.Raw})
}

// Issue returns a certificate and its key, in PEM.
func (c *Certificates) Issue() (cert, key []byte, err error) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, c.template(), c.parent, &own.PublicKey, c.key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), nil
}

func (c *Certificates) template() *x509.Certificate {
	c.serial++
	return &x509.Certificate{
		SerialNumber: big.NewInt(c.serial), Subject: pkix.Name{CommonName: "listener"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}
