package enroll

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/certs"
	"platform/test/harness"
)

// files are certificates of nodes and of their ingress, as an operator places and replaces them.
type files struct {
	*testing.T
	dir   string
	nodes *certs.Authority

	ingress *harness.Certificates
}

func newFiles(t *testing.T) *files {
	f := &files{T: t, dir: t.TempDir()}
	var err error
	f.nodes, err = certs.NewAuthority(clusterName, 24*time.Hour)
	require.NoError(t, err)
	f.ingress, err = harness.NewCertificates()
	require.NoError(t, err)
	packets, err := f.nodes.PacketKey()
	require.NoError(t, err)
	require.NoError(t, errors.Join(f.replace("ca.crt", f.nodes.CertPEM()), f.replace("gossip.key", packets)))
	return f
}

func (f *files) in(name string) string { return filepath.Join(f.dir, name) }

// issue replaces both certificates of a node and their keys: the key first, as the documentation says.
func (f *files) issue(node string) error {
	cert, key, err := f.nodes.IssueNode(node, time.Hour)
	if err != nil {
		return err
	}
	public, private, err := f.ingress.Issue()
	return errors.Join(err, f.replace(node+".key", key), f.replace(node+".crt", cert),
		f.replace(node+"-ingress.key", private), f.replace(node+"-ingress.crt", public))
}

func (f *files) replace(name string, content []byte) error {
	path := f.in(name)
	return errors.Join(os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path))
}

// env is the configuration of a node with a mode of node TLS.
func (f *files) env(node, mode string) map[string]string {
	return map[string]string{
		"SECURITY__NODE_TLS__MODE":      mode,
		"SECURITY__NODE_TLS__CERT_FILE": f.in(node + ".crt"), "SECURITY__NODE_TLS__KEY_FILE": f.in(node + ".key"),
		"SECURITY__NODE_TLS__CA_FILE": f.in("ca.crt"), "SECURITY__NODE_TLS__PACKET_KEY_FILE": f.in("gossip.key"),
		"INGRESS__TLS__CERT_FILE": f.in(node + "-ingress.crt"), "INGRESS__TLS__KEY_FILE": f.in(node + "-ingress.key"),
		"SECURITY__NODE_TLS__JOIN_TOKEN_FILE": "", "SECURITY__NODE_TLS__CERTIFICATE_VALIDITY": "", "SECURITY__SECRETS__KEY_FILE": "",
	}
}

// The certificates of three nodes and of their ingress are replaced every few seconds, while the nodes
// are switched one by one to another mode of node TLS, and no call fails. With ENROLL_ROTATION=5m that
// goes on for that time, with new certificates every ten seconds.
func TestModesAndCertificatesChangeUnderLoad(t *testing.T) {
	period, lasts := 2*time.Second, time.Duration(0)
	if text := os.Getenv("ENROLL_ROTATION"); text != "" {
		var err error
		lasts, err = time.ParseDuration(text)
		require.NoError(t, err)
		period = 10 * time.Second
	}
	f := newFiles(t)
	c := &cluster{T: t, dir: t.TempDir(), ingressCA: f.ingress.Pool()}
	for _, name := range []string{"n1", "n2", "n3"} {
		require.NoError(t, f.issue(name))
		n := c.add(name, f.env(name, "off"))
		if c.seed == "" {
			c.seed = n.NodeAddress()
		}
		require.NoError(t, n.Restart(t.Context()))
	}
	c.counter()
	c.replicated(3)
	l := c.startLoad(3)
	began := time.Now()

	var rotations atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	rotated := make(chan error, 1)
	go func() {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for ctx.Err() == nil {
			for _, n := range c.nodes {
				if err := f.issue(n.Name()); err != nil {
					rotated <- err
					return
				}
				n.Client.Close() // new connections get the new certificate
			}
			rotations.Add(1)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		rotated <- nil
	}()

	restarts, mode := 0, "off"
	for _, next := range []string{"allow", "require"} {
		mode = c.switchTo(l, next)
		restarts += len(c.nodes)
	}
	for time.Since(began) < lasts { // back and forth
		for _, next := range []string{"allow", "off", "allow", "require"} {
			mode = c.switchTo(l, next)
			restarts += len(c.nodes)
		}
	}
	require.Equal(t, "require", mode)
	cancel()
	require.NoError(t, <-rotated)
	for i, n := range c.nodes {
		text, err := os.ReadFile(f.in(n.Name() + ".crt"))
		require.NoError(t, err)
		block, _ := pem.Decode(text)
		c.await("the last certificate is not in use", func() bool {
			leaf := c.served(i)
			return leaf != nil && bytes.Equal(leaf.Raw, block.Bytes)
		})
		require.False(t, c.logged(i, "panic"))
	}
	l.proceeds()
	l.stop()
	t.Logf("%v: %d rotations of the certificates of three nodes, %d restarts with another mode, 0 of %d calls failed",
		time.Since(began).Round(time.Second), rotations.Load(), restarts, l.calls.Load())
}

// switchTo restarts the nodes one by one with another mode of node TLS.
func (c *cluster) switchTo(l *load, mode string) string {
	for i, n := range c.nodes {
		n.Use("", map[string]string{"SECURITY__NODE_TLS__MODE": mode})
		l.restart(i)
	}
	c.Log(fmt.Sprint("all nodes: ", mode))
	return mode
}
