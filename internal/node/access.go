package node

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"platform/admin/tokens"
	"platform/internal/access"
	"platform/internal/access/jwt"
	"platform/internal/access/oidc"
	"platform/internal/cluster/datadir"
	"platform/internal/config"
	"platform/internal/errcode"
	"platform/metadata"
)

// identityTimeout limits a connection to an identity provider.
const identityTimeout = 5 * time.Second

// accessControl determines who may use the ports of the node, and how they authenticate.
type accessControl struct {
	cfg       *config.Config
	listeners listeners
	log       *slog.Logger

	static   []access.Grant // of the configuration or the data directory
	required bool           // at the admin API
	jwt      *jwt.Verifier  // nil: no identity provider is configured
	oidc     *oidc.Provider // nil: users log in with tokens
	// certificates maps certificates of clients to roles; nil: none.
	certificates *access.Certificates

	uses     tokens.Uses
	failures *access.Failures
}

// Names of the ports in the log and in metrics.
const (
	portAdmin   = "admin"
	portIngress = "ingress"
	portNode    = "node"
)

// openAccess determines whether the admin API requires tokens, and the token of its administrator,
// which may be in the data directory.
func openAccess(cfg *config.Config, l listeners, dir *datadir.Dir, log *slog.Logger) (*accessControl, error) {
	a := &accessControl{cfg: cfg, listeners: l, log: log, failures: access.NewFailures(log.With("component", "platform/access"), portAdmin, portIngress, portNode)}
	if err := a.checkNodePort(); err != nil {
		return nil, err
	}
	a.required = cfg.Security.Mode == config.SecurityStrict || cfg.Security.Mode == config.SecurityDefault && !onLoopback(l.admin.Addr())
	for _, open := range []func() error{a.openJWT, a.openLogin, a.openCertificates} {
		if err := open(); err != nil {
			return nil, err
		}
	}
	administrator := tokens.LocalToken{File: cfg.Security.AdminTokenFile, Required: a.required, Dir: dir, URL: cfg.Admin.AdvertisedURL(l.admin.Addr()), Log: log}
	token, err := administrator.Read()
	if err != nil {
		return nil, err
	}
	if token != "" {
		hash := access.Hash(token)
		a.static = []access.Grant{{Principal: access.Principal{Name: access.Administrator, Token: tokens.LocalTokenFile, Roles: []access.Role{access.Admin}}, Hash: hash[:]}}
	}
	return a, nil
}

// openJWT sets the verifier of the tokens of an identity provider.
func (a *accessControl) openJWT() (err error) {
	c := &a.cfg.Security.JWT
	if c.Issuer == "" {
		return nil
	}
	a.jwt, err = jwt.New(jwt.Config{
		Issuer: c.Issuer, Audience: c.Audience, KeysURL: c.KeysURL, SubjectClaim: c.SubjectClaim, RolesClaim: c.RolesClaim, Roles: c.Roles,
		Transport: a.identityTransport(), Log: a.log.With("component", "platform/access"),
	})
	if err != nil {
		return errcode.New(errcode.RT0002, "security.jwt: %w", err)
	}
	return nil
}

// openCertificates sets the roles of certificates of clients.
func (a *accessControl) openCertificates() (err error) {
	rules := a.cfg.Security.Certificates
	if len(rules) == 0 {
		return nil
	}
	if a.cfg.Ingress.TLS.ClientCAFile == "" && a.cfg.Admin.TLS.ClientCAFile == "" {
		return errcode.New(errcode.RT0002, "security.certificates needs client-ca-file in [ingress.tls] or [admin.tls], which verifies the certificates")
	}
	if a.certificates, err = access.NewCertificates(rules); err != nil {
		return errcode.New(errcode.RT0002, "security.certificates: %w", err)
	}
	return nil
}

// identityTransport returns the transport for requests to identity providers.
func (a *accessControl) identityTransport() http.RoundTripper {
	return &http.Transport{DialContext: egressPolicy(a.cfg, a.listeners).Dialer(identityTimeout).DialContext, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute}
}

// openLogin sets the identity provider at which users log in.
func (a *accessControl) openLogin() (err error) {
	c := &a.cfg.Security.OIDC
	if c.Issuer == "" {
		return nil
	}
	a.oidc, err = oidc.New(oidc.Config{
		Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: c.ClientSecret, CLIClientID: c.CLIClientID, ExternalURL: c.ExternalURL, Scopes: c.Scopes,
		SubjectClaim: c.SubjectClaim, RolesClaim: c.RolesClaim, Roles: c.Roles,
		Transport: a.identityTransport(), Log: a.log.With("component", "platform/access"),
	})
	if err != nil {
		return errcode.New(errcode.RT0002, "security.oidc: %w", err)
	}
	return nil
}

// checkProvider logs why users cannot log in. The server starts nevertheless: the provider may only be
// unavailable for a while, and tokens are valid without it.
func (a *accessControl) checkProvider(ctx context.Context) error {
	if a.oidc == nil {
		return nil
	}
	if err := a.oidc.Check(ctx); err != nil && ctx.Err() == nil {
		a.log.Warn("users cannot log in with the identity provider; check security.oidc.issuer unless it is only unavailable now", "issuer", a.oidc.Issuer(), "err", err)
	}
	return nil
}

// sessions returns what identifies the sessions of browsers; nil if browsers cannot log in.
func (a *accessControl) sessions() *access.Sessions {
	if a.oidc == nil || a.oidc.Origin() == "" {
		return nil
	}
	return &access.Sessions{Origin: a.oidc.Origin(), Secure: a.oidc.Secure()}
}

// accept reports whether a stored token can be valid. A session ends with the configuration of the
// provider that authenticated the user: another one can assign the same name to another user.
func (a *accessControl) accept(stored *metadata.Token) bool {
	return !stored.Session || a.oidc != nil && a.oidc.Issuer() == stored.CreatedBy
}

// authenticator returns the authenticator for the clients of a port. While the node starts, store is
// nil, and only the token of the administrator is accepted.
func (a *accessControl) authenticator(port string, required bool, store *metadata.Store) *access.Authenticator {
	auth := &access.Authenticator{Required: required, Static: a.static, Failures: a.failures, Port: port, Foreign: port == portIngress}
	if a.jwt != nil {
		auth.Verify = a.jwt.Principal
	}
	if a.certificates != nil {
		auth.Certificate = a.certificates.Principal
	}
	if store != nil {
		auth.Used = a.uses.Add
		auth.Issued = func() bool { return a.oidc != nil || len(store.Tokens()) > 0 }
		auth.Grant = func(id string) (access.Grant, bool) {
			t, known := store.Token(id)
			return tokens.GrantOf(&t), known && a.accept(&t)
		}
	}
	return auth
}

// nodePortRequiresToken reports whether clients of the profiles at the node port, which may be
// reachable when the admin port is not, must present a token.
func (a *accessControl) nodePortRequiresToken() bool {
	return a.required || a.cfg.Security.Mode == config.SecurityDefault && !onLoopback(a.listeners.node.Addr())
}

// ingressRequiresToken reports whether callers of handlers must present a token.
func (a *accessControl) ingressRequiresToken() bool {
	return a.cfg.Ingress.Auth == config.IngressToken || a.cfg.Security.Mode == config.SecurityStrict
}

// nodePortExposed reports whether clients on other machines can impersonate nodes.
func (a *accessControl) nodePortExposed() bool {
	return a.cfg.Security.NodeTLS.Mode != config.TLSRequire && !onLoopback(a.listeners.node.Addr())
}

// checkNodePort rejects the strict mode without authenticated nodes.
func (a *accessControl) checkNodePort() error {
	if a.cfg.Security.Mode == config.SecurityStrict && a.nodePortExposed() {
		return errcode.New(errcode.RT0002, "security.mode = \"strict\" needs security.node-tls.mode = \"require\": the node port %s can be reached from other machines, and a client that connects to it without a certificate controls the cluster", a.listeners.node.Addr())
	}
	return nil
}

// report logs which ports do not authenticate clients.
func (a *accessControl) report() {
	adminAddress, ingressAddress := a.listeners.admin.Addr(), a.listeners.ingress.Addr()
	mode := a.cfg.Security.Mode
	switch {
	case mode == config.SecurityOpen:
		a.log.Warn("security.mode is open: every client that can connect to the ports may do everything", "admin", adminAddress.String())
	case a.required:
		a.log.Info("the admin API requires a token", "admin", adminAddress.String())
	case a.cfg.BindIP == config.Loopback:
		a.log.Info("the ports can be reached from this machine only; set bind-ip to :: or to an address to change that", "bind_ip", a.cfg.BindIP)
	}
	if mode != config.SecurityOpen && a.nodePortExposed() {
		a.log.Warn("nodes are not authenticated: every client that can connect to the node port controls the cluster; set security.node-tls, or let only nodes reach the port", "node_port", a.listeners.node.Addr().String())
	}
	if mode != config.SecurityOpen && !a.ingressRequiresToken() && !onLoopback(ingressAddress) {
		a.log.Warn("the ingress accepts calls of every client that can connect; set ingress.auth to token to require one", "ingress", ingressAddress.String())
	}
}
