package subscriptions

import (
	"context"
	"sync"
	"time"

	"platform/admin/rest"
	"platform/internal/subscription"
)

// Config is what the routes are built on. All fields are required unless they say what zero means.
type Config struct {
	Registry Registry
	Streams  Streams
	Bodies   rest.BodyReader
	// KafkaClusters are the Kafka clusters of the configuration of the server (none).
	KafkaClusters []subscription.Cluster
	// MaxSubscriptions and MaxKafkaClusters limit the numbers of subscriptions and of the Kafka clusters
	// that are added to those of the configuration (what the metadata can store).
	MaxSubscriptions, MaxKafkaClusters int
	// FlowControl allows subscriptions to set a scope.
	FlowControl bool
	// RequireSharedKey returns an error if secrets, which what names, would be encrypted with a key that
	// other nodes do not have.
	RequireSharedKey func(ctx context.Context, what string) error
	// Now returns the current time.
	Now func() time.Time
}

// Server serves the routes. Its methods are safe for concurrent use.
type Server struct {
	cfg      Config
	registry Registry
	creating sync.Mutex // held while a subscription or Kafka cluster is counted and stored
}

// New returns a server of the routes.
func New(cfg Config) *Server { return &Server{cfg: cfg, registry: cfg.Registry} }
