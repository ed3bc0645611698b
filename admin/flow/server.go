package flow

import (
	"context"
	"log/slog"

	"platform/admin/query"
	"platform/admin/rest"
	"platform/flowcontrol"
	"platform/internal/ids"
)

// Registry stores the rules of flow control.
type Registry interface {
	// Rules returns the rule book and a channel that is closed when it changes.
	Rules() (*flowcontrol.Book, <-chan struct{})
	PutRules(context.Context, []flowcontrol.Change) ([]flowcontrol.Rule, error)
	DeleteRules(context.Context, []flowcontrol.Removal) ([]flowcontrol.Pattern, error)
}

// Operator pauses and resumes vqueues and scopes. Its errors become responses like those of handlers.
type Operator interface {
	// PauseQueue stops a vqueue from admitting invocations until ResumeQueue. It returns
	// rest.ErrNotFound if the vqueue is empty and has no record.
	PauseQueue(ctx context.Context, id ids.VQueue, r rest.PauseRequest) error
	// ResumeQueue lets a vqueue admit invocations again. Its errors are those of PauseQueue.
	ResumeQueue(ctx context.Context, id ids.VQueue) error
	// PauseScope stops all vqueues of a scope, also future ones, from admitting invocations until
	// ResumeScope.
	PauseScope(ctx context.Context, scope string, r rest.PauseRequest) error
	// ResumeScope lets the vqueues of a scope admit invocations again, except those that are paused
	// themselves.
	ResumeScope(ctx context.Context, scope string) error
}

// Config is what the routes are built on. All fields are required unless they say what zero means.
type Config struct {
	Registry Registry
	Operator Operator
	// Query runs the queries of lists; nil: lists are not available.
	Query  *query.Engine
	Bodies rest.BodyReader
	// Enabled allows operations on vqueues and scopes. Rules can always be changed.
	Enabled bool
	// AwaitRules returns when the partitions led by this node have this version of the rule book or
	// a newer one, or when ctx ends; nil: responses do not wait.
	AwaitRules func(ctx context.Context, version uint32)
	Logger     *slog.Logger
}

// Server serves the routes. Its methods are safe for concurrent use.
type Server struct {
	cfg      Config
	registry Registry
	log      *slog.Logger
}

// New returns a server of the routes.
func New(cfg Config) *Server { return &Server{cfg: cfg, registry: cfg.Registry, log: cfg.Logger} }
