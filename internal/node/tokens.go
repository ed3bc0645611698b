package node

import (
	"net/http"
	"time"

	"platform/admin"
	"platform/internal/access"
	"platform/internal/access/jwt"
	"platform/internal/access/oidc"
	"platform/internal/config"
	"platform/internal/errcode"
	"platform/internal/nodetls"
	"platform/metadata"
)

// identityTimeout limits a connection to an identity provider.
const identityTimeout = 5 * time.Second

// tokens are the credentials that the node accepts.
type tokens struct {
	static   []access.Grant // of the configuration or the data directory
	required bool           // at the admin API
	jwt      *jwt.Verifier  // nil: no identity provider is configured
	oidc     *oidc.Provider // nil: users log in with tokens
	// certificates maps certificates of clients to roles; nil: none.
	certificates *access.Certificates

	uses admin.TokenUses
}

// openTokens determines whether the admin API requires tokens, and the token of its administrator.
func (n *Node) openTokens() error {
	mode := n.cfg.Security.Mode
	if err := n.checkNodePort(); err != nil {
		return err
	}
	n.tokens.required = mode == config.SecurityStrict || mode == config.SecurityDefault && !onLoopback(n.listeners.admin.Addr())
	if c := &n.cfg.Security.JWT; c.Issuer != "" {
		var err error
		n.tokens.jwt, err = jwt.New(jwt.Config{
			Issuer: c.Issuer, Audience: c.Audience, KeysURL: c.KeysURL, SubjectClaim: c.SubjectClaim, RolesClaim: c.RolesClaim, Roles: c.Roles,
			Transport: n.identityTransport(),
			Log:       n.log.With("component", "platform/access"),
		})
		if err != nil {
			return errcode.New(errcode.RT0002, "security.jwt: %w", err)
		}
	}
	if err := n.openLogin(); err != nil {
		return err
	}
	if rules := n.cfg.Security.Certificates; len(rules) > 0 {
		if n.cfg.Ingress.TLS.ClientCAFile == "" && n.cfg.Admin.TLS.ClientCAFile == "" {
			return errcode.New(errcode.RT0002, "security.certificates needs client-ca-file in [ingress.tls] or [admin.tls], which verifies the certificates")
		}
		var err error
		if n.tokens.certificates, err = access.NewCertificates(rules); err != nil {
			return errcode.New(errcode.RT0002, "security.certificates: %w", err)
		}
	}
	administrator := admin.LocalToken{File: n.cfg.Security.AdminTokenFile, Required: n.tokens.required, Dir: n.files.dir, Log: n.log}
	token, err := administrator.Read()
	if err != nil {
		return err
	}
	if token != "" {
		hash := access.Hash(token)
		n.tokens.static = []access.Grant{{Principal: access.Principal{Name: "admin", Token: admin.LocalTokenFile, Roles: []access.Role{access.Admin}}, Hash: hash[:]}}
	}
	return nil
}

// identityTransport returns the transport for requests to identity providers.
func (n *Node) identityTransport() http.RoundTripper {
	return &http.Transport{DialContext: n.egress().Dialer(identityTimeout).DialContext, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute}
}

// openLogin sets the identity provider at which users log in.
func (n *Node) openLogin() (err error) {
	c := &n.cfg.Security.OIDC
	if c.Issuer == "" {
		return nil
	}
	n.tokens.oidc, err = oidc.New(oidc.Config{
		Issuer: c.Issuer, ClientID: c.ClientID, ClientSecret: c.ClientSecret, CLIClientID: c.CLIClientID, ExternalURL: c.ExternalURL, Scopes: c.Scopes,
		SubjectClaim: c.SubjectClaim, RolesClaim: c.RolesClaim, Roles: c.Roles,
		Transport: n.identityTransport(), Log: n.log.With("component", "platform/access"),
	})
	if err != nil {
		return errcode.New(errcode.RT0002, "security.oidc: %w", err)
	}
	return nil
}

// sessions returns what identifies the sessions of browsers; nil if browsers cannot log in.
func (t *tokens) sessions() *access.Sessions {
	if t.oidc == nil || t.oidc.Origin() == "" {
		return nil
	}
	return &access.Sessions{Origin: t.oidc.Origin(), Secure: t.oidc.Secure()}
}

// accept reports whether a stored token can be valid. A session ends with the configuration of the
// provider that vouched for the user: another one can assign the same name to another user.
func (t *tokens) accept(stored *metadata.Token) bool {
	return !stored.Session || t.oidc != nil && t.oidc.Issuer() == stored.CreatedBy
}

// authenticator returns the authenticator for the clients of a port. While the node starts, it
// accepts only the token of the administrator.
func (n *Node) authenticator(required bool) *access.Authenticator {
	a := &access.Authenticator{Required: required, Static: n.tokens.static}
	if n.tokens.jwt != nil {
		a.Verify = n.tokens.jwt.Principal
	}
	if n.tokens.certificates != nil {
		a.Certificate = n.tokens.certificates.Principal
	}
	if n.metadata != nil {
		a.Used = n.tokens.uses.Add
		a.Issued = func() bool { return n.tokens.oidc != nil || len(n.metadata.Tokens()) > 0 }
		a.Grant = func(id string) (access.Grant, bool) {
			t, known := n.metadata.Token(id)
			return admin.GrantOf(&t), known && n.tokens.accept(&t)
		}
	}
	return a
}

// nodePortRequiresToken reports whether clients of the profiles at the node port, which may be
// reachable when the admin port is not, must present a token.
func (n *Node) nodePortRequiresToken() bool {
	return n.tokens.required || n.cfg.Security.Mode == config.SecurityDefault && !onLoopback(n.listeners.node.Addr())
}

// ingressRequiresToken reports whether callers of handlers must present a token.
func (n *Node) ingressRequiresToken() bool {
	return n.cfg.Ingress.Auth == config.IngressToken || n.cfg.Security.Mode == config.SecurityStrict
}

// nodePortExposed reports whether clients on other machines can impersonate nodes.
func (n *Node) nodePortExposed() bool {
	return n.security.Mode() != nodetls.Require && !onLoopback(n.listeners.node.Addr())
}

// checkNodePort rejects the strict mode without authenticated nodes.
func (n *Node) checkNodePort() error {
	if n.cfg.Security.Mode == config.SecurityStrict && n.nodePortExposed() {
		return errcode.New(errcode.RT0002, "security.mode = \"strict\" needs security.node-tls.mode = \"require\": the node port %s can be reached from other machines, and a client that connects to it without a certificate controls the cluster", n.listeners.node.Addr())
	}
	return nil
}

// reportSecurity logs which ports do not authenticate clients.
func (n *Node) reportSecurity() {
	adminAddress, ingressAddress := n.listeners.admin.Addr(), n.listeners.ingress.Addr()
	mode := n.cfg.Security.Mode
	switch {
	case mode == config.SecurityOpen:
		n.log.Warn("security.mode is open: every client that can connect to the ports may do everything", "admin", adminAddress.String())
	case n.tokens.required:
		n.log.Info("the admin API requires a token", "admin", adminAddress.String())
	case n.cfg.BindIP == config.Loopback:
		n.log.Info("the ports can be reached from this machine only; set bind-ip to :: or to an address to change that", "bind_ip", n.cfg.BindIP)
	}
	if mode != config.SecurityOpen && n.nodePortExposed() {
		n.log.Warn("nodes are not authenticated: every client that can connect to the node port controls the cluster; set security.node-tls, or let only nodes reach the port", "node_port", n.listeners.node.Addr().String())
	}
	if mode != config.SecurityOpen && !n.ingressRequiresToken() && !onLoopback(ingressAddress) {
		n.log.Warn("the ingress accepts calls of every client that can connect; set ingress.auth to token to require one", "ingress", ingressAddress.String())
	}
}
