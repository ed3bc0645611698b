package deployments

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/net/http/httpguts"

	"platform/admin/rest"
	"platform/internal/units"
	"platform/metadata"
)

// serviceChange is the body of PATCH /services/{service}. Fields that are not given stay unchanged.
type serviceChange struct {
	Public                      *bool        `json:"public"`
	IdempotencyRetention        *string      `json:"idempotency_retention"`
	WorkflowCompletionRetention *string      `json:"workflow_completion_retention"`
	JournalRetention            *string      `json:"journal_retention"`
	InactivityTimeout           *string      `json:"inactivity_timeout"`
	AbortTimeout                *string      `json:"abort_timeout"`
	EnableLazyState             *bool        `json:"enable_lazy_state"`
	RetryPolicy                 *retryChange `json:"retry_policy"`
	IngressAuth                 *string      `json:"ingress_auth"`
	ForwardHeaders              *[]string    `json:"forward_headers"`
}

type retryChange struct {
	InitialInterval *string         `json:"initial_interval"`
	Factor          *float64        `json:"exponentiation_factor"`
	MaxAttempts     json.RawMessage `json:"max_attempts"` // null means unlimited
	MaxInterval     *string         `json:"max_interval"`
	OnMaxAttempts   *string         `json:"on_max_attempts"`
}

// modifyService changes options of a service until its next revision.
func (s *Server) modifyService(c echo.Context) error {
	service, err := findService(s.registry.Schemas(), c)
	if err != nil {
		return err
	}
	var body serviceChange
	if err := s.cfg.Bodies.ReadJSON(c, &body); err != nil {
		return err
	}
	options, err := body.options()
	if err != nil {
		return err
	}
	if err := s.checkIntervals(service, options); err != nil {
		return err
	}
	if options.IngressAuth != nil && *options.IngressAuth == metadata.IngressNone && s.cfg.SecurityMode == "strict" {
		return rest.Unprocessable("The request field 'ingress_auth' is invalid. Reason: with security.mode = \"strict\" callers of every service need credentials")
	}
	if options != (metadata.Options{}) {
		if service, err = s.registry.ModifyService(c.Request().Context(), service.Name, options); err != nil {
			return err
		}
		s.log.Info("service modified", "service", service.Name, "deployment_id", service.Deployment)
	}
	return rest.Respond(c, http.StatusOK, viewService(s.registry.Schemas().Deployments[service.Deployment], service, s.cfg.Defaults()))
}

// options returns the given options.
func (b *serviceChange) options() (o metadata.Options, err error) {
	o.Public, o.EnableLazyState = b.Public, b.EnableLazyState
	if b.IngressAuth != nil {
		kind, known := metadata.ParseIngressAuth(*b.IngressAuth)
		if !known {
			return o, rest.Unprocessable("The request field 'ingress_auth' is invalid. Reason: %q is none of none, token, jwt and mtls", *b.IngressAuth)
		}
		o.IngressAuth = &kind
	}
	if b.ForwardHeaders != nil {
		names := make([]string, len(*b.ForwardHeaders))
		for i, name := range *b.ForwardHeaders {
			if !httpguts.ValidHeaderFieldName(name) {
				return o, rest.Unprocessable("The request field 'forward_headers' is invalid. Reason: %q is not the name of a header", name)
			}
			names[i] = http.CanonicalHeaderKey(name)
		}
		o.ForwardHeaders = &names
	}
	read := func(name string, text *string, into **time.Duration) {
		if text == nil || err != nil {
			return
		}
		d, parseErr := units.ParseDuration(*text)
		if parseErr != nil {
			err = rest.Unprocessable("The request field '%s' is invalid. Reason: %v", name, parseErr)
			return
		}
		*into = &d
	}
	read("idempotency_retention", b.IdempotencyRetention, &o.IdempotencyRetention)
	read("workflow_completion_retention", b.WorkflowCompletionRetention, &o.WorkflowRetention)
	read("journal_retention", b.JournalRetention, &o.JournalRetention)
	read("inactivity_timeout", b.InactivityTimeout, &o.InactivityTimeout)
	read("abort_timeout", b.AbortTimeout, &o.AbortTimeout)
	if b.RetryPolicy != nil && err == nil {
		read("retry_policy.initial_interval", b.RetryPolicy.InitialInterval, &o.Retry.InitialInterval)
		read("retry_policy.max_interval", b.RetryPolicy.MaxInterval, &o.Retry.MaxInterval)
		if err == nil {
			err = b.RetryPolicy.parseOthers(&o.Retry)
		}
	}
	return o, err
}

// parseOthers parses the fields other than durations.
func (r *retryChange) parseOthers(into *metadata.RetryOptions) error {
	if f := r.Factor; f != nil {
		if *f < 1 || math.IsInf(*f, 0) {
			return rest.Unprocessable("The request field 'retry_policy.exponentiation_factor' is invalid. Reason: it must be 1 or more")
		}
		into.Factor = f
	}
	if text := r.OnMaxAttempts; text != nil {
		then, known := map[string]metadata.OnMaxAttempts{"Pause": metadata.Pause, "pause": metadata.Pause, "Kill": metadata.Kill, "kill": metadata.Kill}[*text]
		if !known {
			return rest.Unprocessable("The request field 'retry_policy.on_max_attempts' is invalid. Reason: %q is neither Pause nor Kill", *text)
		}
		into.OnMaxAttempts = &then
	}
	attempts, err := parseAttempts(r.MaxAttempts)
	if err != nil {
		return rest.Unprocessable("The request field 'retry_policy.max_attempts' is invalid. Reason: %v", err)
	}
	into.MaxAttempts = attempts
	return nil
}

// parseAttempts parses a number of attempts; nil if none is given.
func parseAttempts(raw json.RawMessage) (*int, error) {
	n := metadata.UnlimitedAttempts
	switch {
	case raw == nil:
		return nil, nil
	case bytes.Equal(raw, []byte("null")), bytes.Equal(raw, []byte(`"unlimited"`)):
		return &n, nil
	}
	if json.Unmarshal(raw, &n) != nil || n < 1 || n > math.MaxInt32 {
		return nil, errors.New("it must be an integer of 1 or more, or null for no limit")
	}
	return &n, nil
}

// checkIntervals returns an error if the initial interval of a retry policy exceeds the maximum
// interval.
func (s *Server) checkIntervals(service *metadata.Service, change metadata.Options) error {
	if change.Retry.InitialInterval == nil && change.Retry.MaxInterval == nil {
		return nil
	}
	changed := *service
	changed.Options = service.Options.With(&change)
	if p := metadata.Effective(nil, &changed, s.cfg.Defaults()).Retry; p.InitialInterval > p.MaxInterval {
		return rest.Unprocessable("The request field 'retry_policy' is invalid. Reason: initial_interval %s is longer than max_interval %s",
			units.FormatDuration(p.InitialInterval), units.FormatDuration(p.MaxInterval))
	}
	return nil
}
