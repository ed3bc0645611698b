package metadata

import (
	"cmp"
	"encoding/json"
	"time"

	"platform/internal/ids"
	"platform/internal/target"
)

// ServiceType is the kind of a service.
type ServiceType uint8

// The kinds of services.
const (
	PlainService ServiceType = iota
	VirtualObject
	Workflow
)

// Deployment is one registered version of a service endpoint: an HTTP endpoint, which has a
// URI, or a function, which has an ARN. A value is immutable; an update in place replaces
// it.
type Deployment struct {
	ID                ids.Deployment
	URI               string // of an HTTP endpoint, with trailing slash
	ARN               string // of a function, with its version
	AssumeRoleARN     string // to assume before the function is invoked; may be empty
	Compression       string // of requests to the function: Zstd or empty for none
	HTTP11            bool   // uses HTTP/1.1
	Bidirectional     bool   // announced BIDI_STREAM
	MinProtocol       int32
	MaxProtocol       int32
	SDKVersion        string            // such as restate-sdk-go/1.2.0; empty if unknown
	AdditionalHeaders map[string]string // secrets
	Metadata          map[string]string
	CreatedAt         time.Time
	Services          []*Service // in this deployment's revisions, sorted by name

	// Unreadable is why AdditionalHeaders cannot be decrypted on this node; nil: they are
	// complete. It is not stored, and has code META0020.
	Unreadable error
}

// Zstd is the only compression that functions announce.
const Zstd = "Zstd"

// Function reports whether the deployment is a function of a FaaS platform.
func (d *Deployment) Function() bool { return d.ARN != "" }

// oldestProtocol is the oldest version of the service protocol in which new invocations may start.
const oldestProtocol = 5

// Deprecated reports whether the deployment supports no version of the service protocol in which new
// invocations may start.
func (d *Deployment) Deprecated() bool { return d.MaxProtocol < oldestProtocol }

// Address returns the URI or the ARN.
func (d *Deployment) Address() string {
	if d.Function() {
		return d.ARN
	}
	return d.URI
}

// Options are the settings that a service or handler may announce. nil means "not
// announced": a handler then uses its service's, and a service the server's default.
type Options struct {
	InactivityTimeout    *time.Duration
	AbortTimeout         *time.Duration
	JournalRetention     *time.Duration
	IdempotencyRetention *time.Duration
	WorkflowRetention    *time.Duration // of the run handler's result
	EnableLazyState      *bool
	Public               *bool
	// IngressAuth is what callers must present. Only operators set it, and later revisions
	// keep it.
	IngressAuth *IngressAuth
	// ForwardHeaders are the canonical names of headers with credentials of callers that
	// handlers get. Only operators set them, and later revisions keep them.
	ForwardHeaders *[]string
	Retry          RetryOptions
}

// IngressAuth is what callers of a service must present to the ingress.
type IngressAuth uint8

// The kinds. They are stored: numbers are only added.
const (
	IngressNone  IngressAuth = iota + 1 // nothing
	IngressToken                        // a token or anything below
	IngressJWT                          // a token of the identity provider
	IngressMTLS                         // a certificate of a client
)

var ingressAuthNames = map[IngressAuth]string{IngressNone: "none", IngressToken: "token", IngressJWT: "jwt", IngressMTLS: "mtls"}

// String returns the name of the kind. One of a newer server is rejected like a missing token.
func (a IngressAuth) String() string { return cmp.Or(ingressAuthNames[a], "unknown") }

// ParseIngressAuth returns the kind with a name; false if there is none.
func ParseIngressAuth(name string) (IngressAuth, bool) {
	for kind, known := range ingressAuthNames {
		if known == name {
			return kind, true
		}
	}
	return 0, false
}

// Bounds of Options.ForwardHeaders.
const (
	MaxForwardHeaders = 20
	MaxHeaderName     = 100
)

// RetryOptions are the announced parts of a retry policy.
type RetryOptions struct {
	InitialInterval *time.Duration
	MaxInterval     *time.Duration
	MaxAttempts     *int // includes the first attempt; may be UnlimitedAttempts
	Factor          *float64
	OnMaxAttempts   *OnMaxAttempts
}

// UnlimitedAttempts as MaxAttempts means no limit. Endpoints cannot announce it, only
// operators can set it.
const UnlimitedAttempts = -1

// OnMaxAttempts is the action after the last attempt of a retry policy.
type OnMaxAttempts uint8

// The possible actions.
const (
	Pause OnMaxAttempts = iota
	Kill
)

// Service is one revision of a service.
type Service struct {
	Name          string
	Type          ServiceType
	Revision      uint32
	Deployment    ids.Deployment
	Documentation string
	Metadata      map[string]string
	Options       Options
	// Declared are the options that the code has announced, if an operator has changed them since;
	// the retention of a workflow is that of its run handler. It is nil if they are the same, or were
	// changed before the cluster was at level 4.
	Declared *Options
	Handlers []*Handler // sorted by name
}

// Handler is one handler of a service revision.
type Handler struct {
	Name          string
	Type          target.Type
	Documentation string
	Metadata      map[string]string
	Options       Options
	Input         InputRules
	Output        OutputRules
}

// InputRules define which request bodies a handler accepts (service protocol, input and
// output rules).
type InputRules struct {
	Required    bool
	ContentType string // empty: body must be empty, unless Any
	Any         bool   // nothing announced: any body with any content type, or none
	JSONSchema  json.RawMessage
}

// OutputRules define the content type of the ingress response.
type OutputRules struct {
	ContentType           string // empty: none is sent
	SetContentTypeIfEmpty bool
	JSONSchema            json.RawMessage
}

// Handler returns the handler with that name, nil if there is none.
func (s *Service) Handler(name string) *Handler {
	for _, h := range s.Handlers {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// Schemas is an immutable view of the registry, safe for concurrent use.
type Schemas struct {
	Version     uint64 // metadata log index at which it was created
	Deployments map[ids.Deployment]*Deployment
	Services    map[string]*Service // latest revision by name
	// Kept are the options that operators have set for the callers of services that have no deployment
	// any longer.
	Kept map[string]*Options
}
