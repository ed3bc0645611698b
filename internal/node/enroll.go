package node

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"platform/internal/cluster/datadir"
	"platform/internal/cluster/enroll"
	"platform/internal/config"
	"platform/internal/errcode"
)

// obtainCertificate opens the certificate that the cluster issues to this node, and gets one first
// if there is none. It does nothing if the configuration names the files of a certificate.
func (n *Node) obtainCertificate(ctx context.Context) (err error) {
	c := &n.cfg.Security.NodeTLS
	if !c.Managed() {
		if c.Mode == config.TLSOff && n.certificateFiles().Exist() {
			n.log.Warn("the data directory has a certificate of the cluster, which is not used, because security.node-tls.mode is off: nodes that require certificates refuse this one")
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.InitializationTimeout.Std())
	defer cancel()
	files := n.certificateFiles()
	seeds := n.port.seeds(n.cfg)
	obtainer := &enroll.Obtainer{
		Files: files, Keys: n.keys.secrets.keys, MetadataDir: n.files.dir.In(datadir.MetadataDir), Validity: c.CertificateValidity.Std(),
		Founder: len(seeds) == 0 && n.cfg.BootstrapExpect <= 1, Log: n.log,
	}
	if c.HasJoinToken() {
		obtainer.Client = &enroll.Client{Files: files, Token: func() (enroll.Token, error) { return joinToken(c) }, Addresses: seeds, Report: n.startup.Report, Log: n.log}
	}
	switch err := obtainer.Run(ctx); {
	case errors.Is(err, enroll.ErrNoCertificate):
		return errcode.New(errcode.RT0002, "security.node-tls: %w", err)
	case err != nil:
		return err
	}
	if n.keys.nodes, err = openCertificate(n.cfg, files.Certificate(), files.PacketKeys(), n.log); err != nil {
		return err
	}
	if c.Mode == config.TLSRequire && !n.keys.nodes.SealsPackets() && n.cfg.Networking.GossipKeyFile == "" {
		return errcode.New(errcode.RT0002, "the members have no keys of gossip packets, which security.node-tls.mode = \"require\" needs; set networking.gossip-key-file to the same file as theirs")
	}
	close(n.keys.nodesOpen)
	return nil
}

func joinToken(c *config.NodeTLS) (enroll.Token, error) {
	if c.JoinTokenFile != "" {
		return enroll.ReadToken(c.JoinTokenFile)
	}
	return enroll.ParseToken(c.JoinToken)
}

func (n *Node) certificateFiles() *enroll.Files {
	return enroll.NewFiles(n.files.dir, n.files.self.Cluster, n.files.self.Node)
}

// newIssuer returns what issues certificates to other nodes.
func (n *Node) newIssuer() *enroll.Issuer {
	return enroll.NewIssuer(enroll.IssuerConfig{
		Cluster: n.files.self.Cluster, Node: n.files.self.Node, Validity: n.cfg.Security.NodeTLS.CertificateValidity.Std(),
		Registry: func() enroll.Registry {
			if store := n.port.server.Metadata(); store != nil {
				return store
			}
			return nil
		},
	})
}

// serveCertificates gives nodes without a certificate one for a join token, and renews that of this
// node, until ctx ends.
func (n *Node) serveCertificates(ctx context.Context) error {
	if n.keys.nodes == nil {
		return nil
	}
	log := n.log.With("component", "platform/enroll")
	g, ctx := errgroup.WithContext(ctx)
	server := enroll.NewServer(n.port.issuer, n.keys.nodes, log)
	g.Go(func() error { return server.Serve(ctx, n.port.ports.Enroll) })
	if n.cfg.Security.NodeTLS.Managed() {
		files := n.certificateFiles()
		depositor := &enroll.Depositor{Files: files, Keys: n.keys.secrets.keys, Put: n.metadata.KeepAuthority, Log: log}
		renewer := &enroll.Renewer{Files: files, Current: n.keys.nodes.Store(), Request: n.port.nodes.Certify, Registry: n.metadata, Log: log}
		g.Go(func() error { return depositor.Run(ctx) })
		g.Go(func() error { return renewer.Run(ctx) })
	}
	return g.Wait()
}
