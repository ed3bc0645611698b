package deployments

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/invoker/discovery"
	"platform/metadata"
)

// Discoverer sends discovery requests to endpoints. *discovery.Discoverer implements it.
type Discoverer interface {
	// Discover returns the deployment as announced by the endpoint, without ID, creation time,
	// labels and revisions. An invalid endpoint is an error with a code or a
	// *discovery.InvalidError; other errors are mapped to status 502.
	Discover(context.Context, discovery.Request) (*metadata.Deployment, error)
	// Convert converts a value at a deployment. Its errors are those of Discover.
	Convert(context.Context, discovery.Conversion) (discovery.Converted, error)
}

// Config is what the routes are built on. All fields are required unless they say what zero means.
type Config struct {
	Registry   Registry
	Discoverer Discoverer
	// InUse returns the number of unfinished invocations that need a deployment.
	InUse  func(context.Context, ids.Deployment) (int, error)
	Bodies rest.BodyReader
	// MaxDeployments limits the number of deployments, MaxServices that of the services of one
	// (unlimited).
	MaxDeployments, MaxServices int
	// RoutingHeaders are additional headers, in lower case, whose values distinguish deployments at the
	// same address (none).
	RoutingHeaders []string
	// Defaults returns the server's values for options that services do not set.
	Defaults func() *metadata.Defaults
	// SecurityMode is security.mode.
	SecurityMode string
	// RequireSharedKey returns an error if secrets, which what names, would be encrypted with a key that
	// other nodes do not have.
	RequireSharedKey func(ctx context.Context, what string) error
	// DiscoveryTimeout limits a discovery request.
	DiscoveryTimeout time.Duration
	// IngressEndpoint returns the address of the ingress for the client of a request.
	IngressEndpoint func(*http.Request) string
	Logger          *slog.Logger
}

// Server serves the routes. Its methods are safe for concurrent use.
type Server struct {
	cfg        Config
	registry   Registry
	discoverer Discoverer
	log        *slog.Logger

	updating sync.Mutex // held while an update of a deployment is compared with the stored one and stored
}

// New returns a server of the routes.
func New(cfg Config) *Server {
	return &Server{cfg: cfg, registry: cfg.Registry, discoverer: cfg.Discoverer, log: cfg.Logger}
}
