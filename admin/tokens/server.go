package tokens

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/access"
	"platform/internal/access/oidc"
	"platform/metadata"
)

// Registry stores access tokens, and what issues the certificates of nodes.
type Registry interface {
	Tokens() []metadata.Token
	// ConfirmedTokens returns the tokens of the cluster, also those that this node does not know yet.
	ConfirmedTokens(context.Context) ([]metadata.Token, error)
	Token(id string) (metadata.Token, bool)
	CreateToken(context.Context, metadata.Token) (metadata.Token, error)
	RevokeToken(ctx context.Context, id string) (metadata.Token, error)

	// Authority returns the authority that issues certificates of nodes; false if there is none.
	Authority() (metadata.Authority, bool)
	PutAuthority(ctx context.Context, certificate []byte, key string) error
	JoinTokens() []metadata.JoinToken
	CreateJoinToken(ctx context.Context, token metadata.JoinToken, validity time.Duration) (metadata.JoinToken, error)
	RevokeJoinToken(ctx context.Context, id string) (metadata.JoinToken, error)

	// Cluster returns the settings of the cluster; false before it is provisioned.
	Cluster() (metadata.Cluster, bool)
}

// NodeTLS is how this node authenticates others.
type NodeTLS struct {
	// Mode is security.node-tls.mode.
	Mode string
	// Managed reports that the node gets its certificate from the cluster, and then also trusts an
	// authority that is stored.
	Managed bool
	// Trusts reports whether the node trusts certificates that an authority issues. It is not
	// called in mode off.
	Trusts func(authority *x509.Certificate) bool
}

// Config is what the routes are built on. All fields are required unless they say what zero means.
type Config struct {
	Registry      Registry
	Bodies        rest.BodyReader
	Authenticator *access.Authenticator
	// Login is the identity provider at which users log in; nil: none.
	Login *oidc.Provider
	// SessionLifetime is how long a login is valid.
	SessionLifetime time.Duration
	// SecurityMode is security.mode, which GET /whoami returns.
	SecurityMode string
	NodeTLS      NodeTLS
	// Node is the name of this node, for the audit log.
	Node string
	// Explain converts an error to a response, for the page that reports it to the user of a browser.
	Explain func(*http.Request, error) *rest.Error
	// RecordRejected adds an audit record of a client without a valid token that changed nothing, at
	// a bounded rate.
	RecordRejected func(echo.Context, metadata.Action)
	Now            func() time.Time
	Logger         *slog.Logger
}

// Server serves the routes. Its methods are safe for concurrent use.
type Server struct {
	cfg      Config
	registry Registry
	logins   *access.Quotas
	log      *slog.Logger
}

// New returns a server of the routes.
func New(cfg Config) *Server {
	return &Server{cfg: cfg, registry: cfg.Registry, logins: access.NewQuotas(loginRate, 0), log: cfg.Logger}
}
