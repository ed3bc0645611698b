package certs

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"platform/internal/durable"
)

// Files in the directory of an authority, and in those of its nodes.
const (
	authorityCert = "ca.crt" // the authority's certificate, then those of former ones
	authorityKey  = "ca.key"
	nextKey       = "ca.key.next" // of the first certificate in authorityCert, until it replaces authorityKey
	packetKeyFile = "gossip.key"
	nodeCert      = "node.crt"
	nodeKey       = "node.key"
	nodesDir      = "nodes"
)

// Directory contains the authority of a cluster and the certificates of its nodes.
type Directory struct{ path string }

// NewDirectory returns the directory with that path.
func NewDirectory(path string) Directory { return Directory{path} }

// Init creates the authority of a cluster.
func (d Directory) Init(cluster string, validity time.Duration) error {
	if _, err := os.Lstat(d.in(authorityKey)); err == nil {
		return fmt.Errorf("%s exists; choose another directory, or replace the authority with rotate", d.in(authorityKey))
	}
	a, err := NewAuthority(cluster, validity)
	if err != nil {
		return err
	}
	packets, err := a.PacketKey()
	if err != nil {
		return err
	}
	return d.save(a, a.CertPEM(), packets)
}

// Node issues a certificate for a node, and returns the directory with its files.
func (d Directory) Node(name string, validity time.Duration) (string, error) {
	a, err := d.authority()
	if err != nil {
		return "", err
	}
	cert, key, err := a.IssueNode(name, validity)
	if err != nil {
		return "", err
	}
	dir := d.in(nodesDir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	// The key comes first: a server that reads both in between keeps the previous pair.
	if err := errors.Join(durable.ReplaceFile(filepath.Join(dir, nodeKey), key), durable.ReplaceFile(filepath.Join(dir, nodeCert), cert)); err != nil {
		return "", err
	}
	return dir, d.share(dir)
}

// Authority returns the certificate of the authority and its key, in PEM format.
func (d Directory) Authority() (certificate, key []byte, err error) {
	a, err := d.authority()
	if err != nil {
		return nil, nil, err
	}
	key, err = a.KeyPEM()
	return a.CertPEM(), key, err
}

// Rotate creates a new authority, while nodes continue to trust the present one.
func (d Directory) Rotate(validity time.Duration) error {
	old, err := d.authority()
	if err != nil {
		return err
	}
	cluster, err := old.Cluster()
	if err != nil {
		return err
	}
	present, err := os.ReadFile(d.in(authorityCert))
	if err != nil {
		return err
	}
	if certificates(present) > 1 {
		unfinished := errors.New("the last rotation is not finished: reissue all certificates, then run rotate --finish")
		return errors.Join(d.shareAll(), unfinished) // it may have been interrupted
	}
	a, err := NewAuthority(cluster, validity)
	if err != nil {
		return err
	}
	oldPackets, err := os.ReadFile(d.in(packetKeyFile))
	if err != nil {
		return err
	}
	packets, err := a.PacketKey()
	if err != nil {
		return err
	}
	if err := d.save(a, append(a.CertPEM(), present...), append(oldPackets, packets...)); err != nil {
		return err
	}
	return d.shareAll()
}

// Finish makes nodes trust only the authority created last. It fails if a node has no
// certificate of it.
func (d Directory) Finish() error {
	a, err := d.authority()
	if err != nil {
		return err
	}
	dirs, err := d.nodes()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, nodeCert))
		if err != nil {
			return err
		}
		block, _ := pem.Decode(text)
		if block == nil {
			return fmt.Errorf("%s contains no certificate", filepath.Join(dir, nodeCert))
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		if cert.CheckSignatureFrom(a.Cert) != nil {
			return fmt.Errorf("node %s has no certificate of the new authority yet", filepath.Base(dir))
		}
	}
	packets, err := a.PacketKey()
	if err != nil {
		return err
	}
	if err := d.save(a, a.CertPEM(), packets); err != nil {
		return err
	}
	return d.shareAll()
}

func (d Directory) in(names ...string) string {
	return filepath.Join(append([]string{d.path}, names...)...)
}

func (d Directory) authority() (*Authority, error) {
	if err := CheckPermissions(d.in(authorityKey)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	cert, err := os.ReadFile(d.in(authorityCert))
	if err != nil {
		return nil, err
	}
	var a *Authority
	key, err := os.ReadFile(d.in(authorityKey))
	if err == nil {
		a, err = ParseAuthority(cert, key)
	}
	if err == nil {
		return a, nil
	}
	// A replacement was interrupted between the certificate and its key.
	if next, readErr := os.ReadFile(d.in(nextKey)); readErr == nil && CheckPermissions(d.in(nextKey)) == nil {
		if a, nextErr := ParseAuthority(cert, next); nextErr == nil {
			return a, durable.Rename(d.in(nextKey), d.in(authorityKey))
		}
	}
	return nil, err
}

// save stores an authority and what nodes trust. If it is interrupted anywhere, the directory contains
// either the previous authority or the new one, each with its key.
func (d Directory) save(a *Authority, trusted, packets []byte) error {
	key, err := a.KeyPEM()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{packetKeyFile, packets}, {nextKey, key}, {authorityCert, trusted}} {
		if err := durable.ReplaceFile(d.in(file.name), file.content); err != nil {
			return err
		}
	}
	return durable.Rename(d.in(nextKey), d.in(authorityKey))
}

// share copies what all nodes have to the directory of a node.
func (d Directory) share(dir string) error {
	for _, name := range []string{authorityCert, packetKeyFile} {
		content, err := os.ReadFile(d.in(name))
		if err != nil {
			return err
		}
		if err := durable.ReplaceFile(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	return nil
}

func (d Directory) shareAll() error {
	dirs, err := d.nodes()
	for _, dir := range dirs {
		err = errors.Join(err, d.share(dir))
	}
	return err
}

// nodes returns the directories of the nodes.
func (d Directory) nodes() (dirs []string, err error) {
	entries, err := os.ReadDir(d.in(nodesDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, d.in(nodesDir, e.Name()))
		}
	}
	return dirs, err
}

func certificates(text []byte) int { return bytes.Count(text, []byte("-----BEGIN CERTIFICATE-----")) }
