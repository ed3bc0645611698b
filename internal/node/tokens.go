package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
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

// adminTokenFile is the file in the data directory with the token that the node created.
const adminTokenFile = "admin.token"

// adminTokenVariable is the environment variable with the token of the administrator.
const adminTokenVariable = "PLATFORM_ADMIN_TOKEN"

// minAdminToken is the minimum size of a token of the administrator.
const minAdminToken = 32

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

	mu   sync.Mutex // guards used
	used map[string]time.Time
}

// openTokens determines whether the admin API requires tokens, and the token of its administrator.
func (n *Node) openTokens() error {
	mode := n.cfg.Security.Mode
	n.tokens.used = map[string]time.Time{}
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
	token, err := n.adminToken()
	if err != nil {
		return err
	}
	if token != "" {
		hash := access.Hash(token)
		n.tokens.static = []access.Grant{{Principal: access.Principal{Name: "admin", Token: adminTokenFile, Roles: []access.Role{access.Admin}}, Hash: hash[:]}}
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

// adminToken returns the token of the administrator; "" if there is none and none is required.
func (n *Node) adminToken() (string, error) {
	if path := n.cfg.Security.AdminTokenFile; path != "" {
		text, err := readToken(path, "security.admin-token-file")
		if errors.Is(err, fs.ErrNotExist) {
			err = errcode.New(errcode.RT0002, "security.admin-token-file: the file %s does not exist", path)
		}
		return text, err
	}
	if text := strings.TrimSpace(os.Getenv(adminTokenVariable)); text != "" {
		if len(text) < minAdminToken {
			return "", errcode.New(errcode.RT0002, "environment variable %s: expected a token of %d bytes or more, such as the output of `openssl rand -hex 32`", adminTokenVariable, minAdminToken)
		}
		return text, nil
	}
	if !n.tokens.required {
		return "", nil
	}
	path := n.files.dir.In(adminTokenFile)
	text, err := readToken(path, "token of the administrator")
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	secret := access.NewSecret()
	if err := n.files.dir.WriteSecret(adminTokenFile, []byte(secret.Text+"\n")); err != nil {
		return "", fmt.Errorf("write the token of the administrator: %w", err)
	}
	n.log.Info("token of the administrator created; log in with platform login --token-file", "file", path)
	return secret.Text, nil
}

// readToken reads a file that must be readable only for its owner.
func readToken(path, what string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", errcode.New(errcode.RT0002, "%s: other users can read the file %s; restrict it with chmod 600", what, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	text := strings.TrimSpace(string(data))
	if len(text) < minAdminToken {
		return "", errcode.New(errcode.RT0002, "%s: the file %s has %d bytes; expected a token of %d or more", what, path, len(text), minAdminToken)
	}
	return text, nil
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
		a.Used = n.tokens.use
		a.Issued = func() bool { return n.tokens.oidc != nil || len(n.metadata.Tokens()) > 0 }
		a.Grant = func(id string) (access.Grant, bool) {
			t, known := n.metadata.Token(id)
			// Without the provider, nobody could have logged in.
			return admin.GrantOf(&t), known && (!t.Session || n.tokens.oidc != nil)
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

// use records the use of a token in memory.
func (t *tokens) use(id string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.used) < metadata.MaxTokens {
		t.used[id] = at
	}
}

const (
	// usePeriod is the interval at which a node records the uses of tokens, useGranularity the
	// minimum time between two recorded uses of a token.
	usePeriod      = time.Minute
	useGranularity = 10 * time.Minute
)

// record records the uses of tokens until ctx ends.
func (t *tokens) record(ctx context.Context, store *metadata.Store, log *slog.Logger) error {
	tick := time.NewTicker(usePeriod)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		uses := t.taken(store.Token)
		if len(uses) == 0 {
			continue
		}
		if err := store.UseTokens(ctx, uses); err != nil && ctx.Err() == nil {
			log.Warn("uses of tokens not recorded", "err", err)
		}
	}
}

// taken returns the uses to be recorded, and resets them.
func (t *tokens) taken(find func(string) (metadata.Token, bool)) (uses []metadata.TokenUse) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, at := range t.used {
		if token, known := find(id); known && at.Sub(token.LastUsed) >= useGranularity {
			uses = append(uses, metadata.TokenUse{ID: id, At: at})
		}
	}
	clear(t.used)
	return uses
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

// restricted serves requests whose sender has a permission; h is not part of the admin API.
func restricted(h http.Handler, a *access.Authenticator, permission access.Permission) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := a.Authenticate(r)
		switch {
		case err != nil:
			w.Header().Set("WWW-Authenticate", `Bearer realm="platform"`)
			refuseStarting(w, http.StatusUnauthorized, err.Error())
		case !p.Allows(permission):
			refuseStarting(w, http.StatusForbidden, "this requires the role "+access.RolesWith(permission))
		default:
			h.ServeHTTP(w, r)
		}
	})
}
