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
	listeners listenerTLS
	secrets   *secretKeys
	signer    *signing.Signer // of requests to endpoints, nil: unsigned
}

// openKeys reads the certificates and keys that are configured.
func openKeys(cfg *config.Config, log *slog.Logger) (k keys, err error) {
	if k.nodes, err = openNodeTLS(cfg, log); err != nil {
		return k, err
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
		running.Go(func() { _ = k.nodes.Run(ctx) })
		k.listeners.run(ctx, k.nodes.Store())
		running.Wait()
	}()
	return func() { cancel(); <-done }
}

// openNodeTLS reads the certificate of the node, nil if nodes are not authenticated.
func openNodeTLS(cfg *config.Config, log *slog.Logger) (*nodetls.Security, error) {
	c := &cfg.Security.NodeTLS
	mode := map[config.TLSMode]nodetls.Mode{config.TLSOff: nodetls.Off, config.TLSAllow: nodetls.Allow, config.TLSRequire: nodetls.Require}[c.Mode]
	security, err := nodetls.Open(nodetls.Config{
		Mode: mode, Cluster: cfg.ClusterName, Node: cfg.NodeName, PacketKeyFile: c.PacketKeyFile,
		Files: certs.Files{Cert: c.CertFile, Key: c.KeyFile, CA: c.CAFile}, Log: log.With("component", "platform/node-tls"),
	})
	if err != nil {
		return nil, errcode.New(errcode.RT0002, "%w", err)
	}
	return security, nil
}
