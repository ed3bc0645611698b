package node

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"platform/internal/access"
	"platform/internal/certs"
	"platform/internal/config"
	"platform/internal/errcode"
	"platform/internal/nodetls"
	"platform/metadata"
)

// openSecurity reads the certificate of the node, nil if nodes are not authenticated.
func openSecurity(cfg *config.Config, log *slog.Logger) (*nodetls.Security, error) {
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

// runSecurity reads changed certificates again, from before the node has joined its cluster
// until the returned function is called.
func (n *Node) runSecurity() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		var running sync.WaitGroup
		running.Go(func() { _ = n.security.Run(ctx) })
		n.clientTLS.run(ctx, n.security.Store())
		running.Wait()
	}()
	return func() { cancel(); <-done }
}

// authenticated serves clients other than nodes only GET /health, if nodes must authenticate.
func (n *Node) authenticated(handler http.Handler) http.Handler {
	if n.security.Mode() != nodetls.Require {
		return handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if node, _ := r.Context().Value(nodeKey{}).(string); !n.isMember(node) && (r.Method != http.MethodGet || r.URL.Path != "/health") {
			access.Refuse(w, http.StatusForbidden, "this port requires TLS with a certificate of a node of the cluster; metrics and profiles are at the admin port as well")
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// isMember reports whether an authenticated node belongs to the cluster: a removed one still has
// its certificate.
func (n *Node) isMember(name string) bool {
	if name == "" {
		return false
	}
	return slices.ContainsFunc(n.metadata.Nodes(), func(known metadata.Node) bool { return known.Name == name && !known.Removed })
}

// nodeKey is the key of the name of the authenticated node in the context of a connection.
type nodeKey struct{}
