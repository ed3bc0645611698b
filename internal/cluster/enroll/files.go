package enroll

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"platform/internal/certs"
)

// Files in the data directory. The certificate and its key are one file, so that they are
// replaced in one step.
const (
	pairFile      = "node-tls.pem"
	authorityFile = "node-tls-ca.crt"
	packetKeyFile = "node-tls-gossip.key"
	pendingFile   = "node-tls-pending.key" // of a request for the first certificate
)

// Dir is a directory in which files are replaced durably, each in one step, and can be read by their
// owner only.
type Dir interface {
	In(name string) string
	ReplaceFile(name string, data []byte) error
}

// Files are the certificate of a node that the cluster has issued, and its key.
type Files struct {
	dir           Dir
	cluster, node string // names
}

// NewFiles returns the files in the data directory of a node.
func NewFiles(dir Dir, cluster, node string) *Files { return &Files{dir, cluster, node} }

// Certificate returns the paths of the certificate.
func (f *Files) Certificate() certs.Files {
	return certs.Files{Cert: f.dir.In(pairFile), Key: f.dir.In(pairFile), CA: f.dir.In(authorityFile), Renewed: true}
}

// Exist reports whether the node has got a certificate.
func (f *Files) Exist() bool {
	_, err := os.Stat(f.dir.In(pairFile))
	return err == nil
}

// PacketKeys returns the path of the keys of gossip packets, "" if the node has got none.
func (f *Files) PacketKeys() string {
	if _, err := os.Stat(f.dir.In(packetKeyFile)); err != nil {
		return ""
	}
	return f.dir.In(packetKeyFile)
}

// leaf returns the certificate; nil without one.
func (f *Files) leaf() (*x509.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(f.dir.In(pairFile), f.dir.In(pairFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none yet
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; delete it, and set security.node-tls.join-token-file", f.dir.In(pairFile), err)
	}
	return pair.Leaf, nil
}

// pendingKey returns the key of the request for the first certificate. It is the same until there
// is one: the cluster accepts the token of an interrupted request again with the same key only.
func (f *Files) pendingKey() (*ecdsa.PrivateKey, error) {
	path := f.dir.In(pendingFile)
	if text, err := os.ReadFile(path); err == nil {
		key, err := certs.ParseKey(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w; delete it", path, err)
		}
		return key, certs.CheckPermissions(path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, err := certs.NewKey()
	if err != nil {
		return nil, err
	}
	text, err := certs.KeyPEM(key)
	if err != nil {
		return nil, err
	}
	return key, f.dir.ReplaceFile(pendingFile, text)
}

// Issued is what a node gets from the cluster, each in PEM format but the keys of packets, which
// are as in their file.
type Issued struct{ Certificate, Authorities, PacketKeys []byte }

// install stores the first certificate. The certificate comes last: without it the node starts
// over.
func (f *Files) install(key *ecdsa.PrivateKey, issued *Issued) error {
	if err := certs.CheckIssued(issued.Certificate, issued.Authorities, key, f.cluster, f.node); err != nil {
		return err
	}
	if err := f.dir.ReplaceFile(authorityFile, issued.Authorities); err != nil {
		return err
	}
	if len(issued.PacketKeys) > 0 {
		if err := f.dir.ReplaceFile(packetKeyFile, issued.PacketKeys); err != nil {
			return err
		}
	}
	if err := f.replace(key, issued.Certificate); err != nil {
		return err
	}
	if err := os.Remove(f.dir.In(pendingFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// replace stores a certificate and its key.
func (f *Files) replace(key *ecdsa.PrivateKey, certificate []byte) error {
	text, err := certs.KeyPEM(key)
	if err != nil {
		return err
	}
	return f.dir.ReplaceFile(pairFile, bytes.Join([][]byte{text, certificate}, nil))
}

// renew stores the next certificate.
func (f *Files) renew(key *ecdsa.PrivateKey, certificate []byte) error {
	authorities, err := os.ReadFile(f.dir.In(authorityFile))
	if err != nil {
		return err
	}
	if err := certs.CheckIssued(certificate, authorities, key, f.cluster, f.node); err != nil {
		return err
	}
	return f.replace(key, certificate)
}
