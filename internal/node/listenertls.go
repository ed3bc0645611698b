package node

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"platform/internal/certs"
	"platform/internal/config"
	"platform/internal/errcode"
)

// listenerTLS are the certificates of the listeners for clients; nil without TLS.
type listenerTLS struct{ ingress, admin *certs.Store }

func openListenerTLS(cfg *config.Config, log *slog.Logger) (l listenerTLS, err error) {
	open := func(section string, c *config.ListenerTLS) (*certs.Store, error) {
		if !c.Enabled() {
			return nil, nil //nolint:nilnil // no TLS
		}
		return certs.Open(section, certs.Files{Cert: c.CertFile, Key: c.KeyFile, CA: c.ClientCAFile, CAKey: "client-ca-file"}, nil, log)
	}
	var err1, err2 error
	l.ingress, err1 = open("ingress.tls", &cfg.Ingress.TLS)
	l.admin, err2 = open("admin.tls", &cfg.Admin.TLS)
	if err := errors.Join(err1, err2); err != nil {
		return l, errcode.New(errcode.RT0002, "%w", err)
	}
	return l, nil
}

// serverTLS returns the TLS configuration of a listener, which uses the current certificates of
// its store for each connection; nil without a store.
func serverTLS(store *certs.Store, c *config.ListenerTLS) *tls.Config {
	if store == nil {
		return nil
	}
	auth := tls.NoClientCert
	if c.ClientCAFile != "" {
		auth = tls.VerifyClientCertIfGiven
	}
	if c.RequireClientCert {
		auth = tls.RequireAndVerifyClientCert
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			pair := store.Current()
			return &tls.Config{
				MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
				Certificates: []tls.Certificate{pair.Certificate}, ClientCAs: pair.CAs, ClientAuth: auth,
			}, nil
		},
	}
}

// run reloads changed certificates, and all of them on SIGHUP, until ctx ends. ofNode returns the
// certificate of the node, nil if there is none.
func (l *listenerTLS) run(ctx context.Context, ofNode func() *certs.Store) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	var stores []*certs.Store
	var running sync.WaitGroup
	defer running.Wait()
	for _, store := range []*certs.Store{l.ingress, l.admin} {
		if store != nil {
			stores = append(stores, store)
			running.Go(func() { _ = store.Run(ctx) })
		}
	}
	for {
		select {
		case <-hangup:
			for _, store := range append(slices.Clone(stores), ofNode()) {
				if store != nil {
					_ = store.Reload() // it is logged
				}
			}
		case <-ctx.Done():
			return
		}
	}
}
