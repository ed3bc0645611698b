package node

import (
	"context"
	"log/slog"
	"sync"

	"platform/internal/certs"
	"platform/internal/config"
	"platform/internal/errcode"
	"platform/internal/nodetls"
	signing "platform/invoker/identity" // this package has an identity of its own
)

// keys are the certificates and keys of the node, except those of its users.
type keys struct {
	nodes     *nodetls.Security // of the connections to other nodes, nil: none
	nodesOpen chan struct{}     // closed when nodes is set
	listeners listenerTLS
	secrets   *secretKeys
	signer    *signing.Signer // of requests to endpoints, nil: unsigned
}

// openKeys reads the certificates and keys that are configured. That of a node that gets it from the
// cluster is opened later.
func openKeys(cfg *config.Config, log *slog.Logger) (k keys, err error) {
	k.nodesOpen = make(chan struct{})
	if !cfg.Security.NodeTLS.Managed() {
		if k.nodes, err = openNodeTLS(cfg, log); err != nil {
			return k, err
		}
		close(k.nodesOpen)
	}
	if k.listeners, err = openListenerTLS(cfg, log); err != nil {
		return k, err
	}
	if k.secrets, err = openSecretKeys(cfg, log); err != nil {
		return k, err
	}
	k.signer, err = newSigner(cfg, log)
	return k, err
}

// run reads changed certificates again, from before the node has joined its cluster until the
// returned function is called.
func (k *keys) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		var running sync.WaitGroup
		running.Go(func() {
			select {
			case <-k.nodesOpen:
				_ = k.nodes.Run(ctx)
			case <-ctx.Done():
			}
		})
		k.listeners.run(ctx, k.ofNode)
		running.Wait()
	}()
	return func() { cancel(); <-done }
}

// ofNode returns the certificate of the node, nil if there is none or it is not open yet.
func (k *keys) ofNode() *certs.Store {
	select {
	case <-k.nodesOpen:
		return k.nodes.Store()
	default:
		return nil
	}
}

// openNodeTLS reads the certificate of the node, nil if nodes are not authenticated.
func openNodeTLS(cfg *config.Config, log *slog.Logger) (*nodetls.Security, error) {
	c := &cfg.Security.NodeTLS
	return openCertificate(cfg, certs.Files{Cert: c.CertFile, Key: c.KeyFile, CA: c.CAFile}, c.PacketKeyFile, log)
}

func openCertificate(cfg *config.Config, files certs.Files, packetKeys string, log *slog.Logger) (*nodetls.Security, error) {
	mode := map[config.TLSMode]nodetls.Mode{config.TLSOff: nodetls.Off, config.TLSAllow: nodetls.Allow, config.TLSRequire: nodetls.Require}[cfg.Security.NodeTLS.Mode]
	security, err := nodetls.Open(nodetls.Config{
		Mode: mode, Cluster: cfg.ClusterName, Node: cfg.NodeName, PacketKeyFile: packetKeys,
		Files: files, Log: log.With("component", "platform/node-tls"),
	})
	if err != nil {
		return nil, errcode.New(errcode.RT0002, "%w", err)
	}
	return security, nil
}
