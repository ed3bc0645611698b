package enroll

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"platform/internal/certs"
	"platform/internal/keyring"
	"platform/metadata"
)

// ErrNoCertificate means that a node has no certificate and no way to get one.
var ErrNoCertificate = errors.New("this node has no certificate")

// Obtainer provides the certificate of a node when it starts.
type Obtainer struct {
	Files       *Files
	Keys        *keyring.Keyring // of secrets; nil: none
	MetadataDir string           // of this node; it may not exist
	Validity    time.Duration    // of a certificate that the node issues to itself
	Client      *Client          // nil: there is no join token
	// Founder reports that this node, if it is fresh, creates a cluster without other nodes.
	Founder bool
	Log     *slog.Logger
}

// Run returns when there is a valid certificate: the present one, one that the authority in the
// metadata of this node issues if the node has the key, one that a join token gives, or the first
// one of a new cluster.
func (o *Obtainer) Run(ctx context.Context) error {
	for _, name := range []string{o.Files.cluster, o.Files.node} {
		if !certs.ValidName(name) {
			return fmt.Errorf("the name %q cannot be part of a certificate", name)
		}
	}
	leaf, err := o.Files.leaf()
	if err != nil {
		return err
	}
	if leaf != nil && time.Now().Before(leaf.NotAfter) {
		return nil
	}
	certificate, key, err := o.authority()
	switch {
	case err == nil:
		return o.issueTo(certificate, key)
	case o.Client != nil && len(o.Client.Addresses) == 0:
		return fmt.Errorf("%w: a join token needs the addresses of members in metadata-client.addresses", ErrNoCertificate)
	case o.Client != nil:
		return o.Client.Run(ctx)
	case leaf != nil:
		return fmt.Errorf("%w: it has expired on %s, and %w; set security.node-tls.join-token-file to a file with the output of platform cluster join-token create --node %s", ErrNoCertificate, leaf.NotAfter.Format(time.DateOnly), err, o.Files.node)
	case !errors.Is(err, metadata.ErrNoAuthority):
		return fmt.Errorf("%w: %w", ErrNoCertificate, err)
	case !o.Founder:
		return fmt.Errorf("%w: set security.node-tls.join-token-file to a file with the output of platform cluster join-token create (the members issue the certificate), or cert-file, key-file, ca-file and packet-key-file. The first node of a new cluster starts without metadata-client.addresses and bootstrap-expect", ErrNoCertificate)
	case o.Keys == nil:
		return fmt.Errorf("%w: it creates the authority of a new cluster, whose key is stored only encrypted; set security.secrets.key-file to a file with the output of openssl rand -base64 32, the same on all nodes, or cert-file, key-file, ca-file and packet-key-file", ErrNoCertificate)
	}
	authority, err := o.Files.found(o.Keys)
	if err != nil {
		return err
	}
	o.Log.Info("authority of a new cluster created")
	return o.issue(authority)
}

// authority returns the authority of the cluster and its key, which this node has itself.
func (o *Obtainer) authority() (certificate []byte, key string, err error) {
	if certificate, key, err = o.Files.founded(o.Keys); certificate != nil || err != nil {
		return certificate, key, err
	}
	return metadata.ReadAuthority(o.MetadataDir, o.Keys)
}

func (o *Obtainer) issueTo(certificate []byte, key string) error {
	authority, err := certs.AuthorityOf(certificate, []byte(key))
	if err != nil {
		return err
	}
	return o.issue(authority)
}

// issue gives this node a certificate.
func (o *Obtainer) issue(authority *certs.Authority) error {
	key, err := o.Files.pendingKey()
	if err != nil {
		return err
	}
	der, err := certs.NewSigningRequest(key, o.Files.cluster, o.Files.node)
	if err != nil {
		return err
	}
	request, err := certs.ParseSigningRequest(der, o.Files.cluster, o.Files.node)
	if err != nil {
		return err
	}
	certificate, err := authority.Sign(request, o.Validity)
	if err != nil {
		return err
	}
	packets, err := authority.PacketKey()
	if err != nil {
		return err
	}
	if err := o.Files.install(key, &Issued{certificate, authority.CertPEM(), packets}); err != nil {
		return err
	}
	o.Log.Info("this node issued its certificate with the authority of the cluster")
	return nil
}
