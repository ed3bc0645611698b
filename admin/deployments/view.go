package deployments

import (
	"encoding/json"
	"strconv"
	"time"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/internal/units"
	"platform/metadata"
)

// The types below are the JSON forms of the registry's contents. The interface reference documents
// their fields.

type deploymentView struct {
	ID                ids.Deployment    `json:"id"`
	URI               string            `json:"uri,omitempty"`
	ProtocolType      string            `json:"protocol_type,omitempty"` // of endpoints only
	HTTPVersion       string            `json:"http_version,omitempty"`
	ARN               string            `json:"arn,omitempty"`
	AssumeRoleARN     string            `json:"assume_role_arn,omitempty"`
	Compression       string            `json:"compression,omitempty"`
	AdditionalHeaders map[string]string `json:"additional_headers,omitempty"`
	Metadata          map[string]string `json:"metadata,omitempty"`
	CreatedAt         rest.Timestamp    `json:"created_at"`
	MinProtocol       int32             `json:"min_protocol_version"`
	MaxProtocol       int32             `json:"max_protocol_version"`
	SDKVersion        string            `json:"sdk_version,omitempty"`
	Services          any               `json:"services"` // []serviceView or, in lists, []serviceRevision
	Info              []rest.Notice     `json:"info,omitempty"`
}

type registeredView struct {
	ID          ids.Deployment `json:"id"`
	Services    []serviceView  `json:"services"`
	MinProtocol int32          `json:"min_protocol_version"`
	MaxProtocol int32          `json:"max_protocol_version"`
	SDKVersion  string         `json:"sdk_version,omitempty"`
	Info        []rest.Notice  `json:"info,omitempty"`
}

type serviceRevision struct {
	Name     string `json:"name"`
	Revision uint32 `json:"revision"`
}

type serviceView struct {
	Name                        string            `json:"name"`
	Type                        string            `json:"ty"`
	Handlers                    []handlerView     `json:"handlers"`
	Deployment                  ids.Deployment    `json:"deployment_id"`
	Revision                    uint32            `json:"revision"`
	Public                      bool              `json:"public"`
	Documentation               string            `json:"documentation,omitempty"`
	Metadata                    map[string]string `json:"metadata,omitempty"`
	IdempotencyRetention        units.Duration    `json:"idempotency_retention"`
	WorkflowCompletionRetention *units.Duration   `json:"workflow_completion_retention,omitempty"` // workflows only
	JournalRetention            units.Duration    `json:"journal_retention,omitzero"`
	InactivityTimeout           units.Duration    `json:"inactivity_timeout"`
	AbortTimeout                units.Duration    `json:"abort_timeout"`
	EnableLazyState             bool              `json:"enable_lazy_state"`
	Retry                       retryView         `json:"retry_policy"`
	// IngressAuth is absent if ingress.auth applies.
	IngressAuth string `json:"ingress_auth,omitempty"`
	// ForwardHeaders is absent if ingress.forward-headers applies.
	ForwardHeaders *[]string `json:"forward_headers,omitempty"`
	// Overridden has what operators have changed of this revision, ServerDefaults the names of the
	// options that the configuration of the server determines.
	Overridden     *overriddenView `json:"overridden,omitempty"`
	ServerDefaults []string        `json:"server_defaults"`
	Info           []rest.Notice   `json:"info,omitempty"`
}

type retryView struct {
	InitialInterval units.Duration `json:"initial_interval"`
	Factor          json.Number    `json:"exponentiation_factor"`
	MaxAttempts     *int           `json:"max_attempts"` // null means unlimited
	MaxInterval     units.Duration `json:"max_interval"`
	OnMaxAttempts   string         `json:"on_max_attempts"`
}

// handlerView contains the options that the handler sets; inherited ones are absent.
type handlerView struct {
	Name                        string             `json:"name"`
	Type                        string             `json:"ty,omitempty"`
	Documentation               string             `json:"documentation,omitempty"`
	Metadata                    map[string]string  `json:"metadata,omitempty"`
	Public                      bool               `json:"public"`
	InputDescription            string             `json:"input_description"`
	OutputDescription           string             `json:"output_description"`
	InputSchema                 json.RawMessage    `json:"input_json_schema,omitempty"`
	OutputSchema                json.RawMessage    `json:"output_json_schema,omitempty"`
	IdempotencyRetention        *units.Duration    `json:"idempotency_retention,omitempty"`
	WorkflowCompletionRetention *units.Duration    `json:"workflow_completion_retention,omitempty"`
	JournalRetention            *units.Duration    `json:"journal_retention,omitempty"`
	InactivityTimeout           *units.Duration    `json:"inactivity_timeout,omitempty"`
	AbortTimeout                *units.Duration    `json:"abort_timeout,omitempty"`
	EnableLazyState             *bool              `json:"enable_lazy_state,omitempty"`
	Retry                       *retryOverrideView `json:"retry_policy,omitempty"`
	Info                        []rest.Notice      `json:"info,omitempty"`
}

type retryOverrideView struct {
	InitialInterval *units.Duration `json:"initial_interval,omitempty"`
	Factor          json.Number     `json:"exponentiation_factor,omitempty"`
	MaxAttempts     *int            `json:"max_attempts,omitempty"`
	MaxInterval     *units.Duration `json:"max_interval,omitempty"`
	OnMaxAttempts   string          `json:"on_max_attempts,omitempty"`
}

// hiddenValue replaces the values of headers, which may be secrets.
const hiddenValue = "***"

// hidden returns headers with hidden values.
func hidden(headers map[string]string) map[string]string {
	if len(headers) == 0 {
		return nil
	}
	shown := make(map[string]string, len(headers))
	for name := range headers {
		shown[name] = hiddenValue
	}
	return shown
}

// viewDeployment converts a deployment; services is the form of its services.
func viewDeployment(d *metadata.Deployment, services any, defaults *metadata.Defaults) deploymentView {
	view := deploymentView{
		ID: d.ID, URI: d.URI, ARN: d.ARN, AssumeRoleARN: d.AssumeRoleARN, Compression: d.Compression,
		AdditionalHeaders: hidden(d.AdditionalHeaders), Metadata: d.Metadata, CreatedAt: rest.TimestampOf(d.CreatedAt),
		MinProtocol: d.MinProtocol, MaxProtocol: d.MaxProtocol, SDKVersion: d.SDKVersion,
		Services: services, Info: deploymentNotices(d, defaults),
	}
	if d.Function() {
		return view
	}
	view.ProtocolType, view.HTTPVersion = "RequestResponse", "HTTP/2.0"
	if streams(d) {
		view.ProtocolType = "BidiStream"
	}
	if d.HTTP11 {
		view.HTTPVersion = "HTTP/1.1"
	}
	return view
}

// streams reports whether attempts on a deployment use bidirectional streaming, which HTTP/1.1 and
// functions do not support.
func streams(d *metadata.Deployment) bool { return d.Bidirectional && !d.HTTP11 && !d.Function() }

func viewRevisions(d *metadata.Deployment) []serviceRevision {
	list := make([]serviceRevision, 0, len(d.Services))
	for _, s := range d.Services {
		list = append(list, serviceRevision{s.Name, s.Revision})
	}
	return list
}

func viewServices(d *metadata.Deployment, defaults *metadata.Defaults) []serviceView {
	list := make([]serviceView, 0, len(d.Services))
	for _, s := range d.Services {
		list = append(list, viewService(d, s, defaults))
	}
	return list
}

// viewService converts a service of a deployment; the deployment may be nil.
func viewService(d *metadata.Deployment, s *metadata.Service, defaults *metadata.Defaults) serviceView {
	options := metadata.Effective(nil, s, defaults)
	view := serviceView{
		Name: s.Name, Type: s.Type.String(), Handlers: viewHandlers(d, s, defaults), Deployment: s.Deployment, Revision: s.Revision,
		Public: options.Public, Documentation: s.Documentation, Metadata: s.Metadata,
		IdempotencyRetention: units.Duration(options.IdempotencyRetention),
		JournalRetention:     units.Duration(options.JournalRetention),
		InactivityTimeout:    units.Duration(options.InactivityTimeout),
		AbortTimeout:         units.Duration(options.AbortTimeout),
		EnableLazyState:      options.EnableLazyState,
		Retry:                viewRetry(options.Retry),
		Overridden:           overridden(s, defaults),
		ServerDefaults:       serverDefaults(s),
		Info:                 serviceNotices(d, s, defaults),
	}
	if s.Options.IngressAuth != nil {
		view.IngressAuth = s.Options.IngressAuth.String()
	}
	view.ForwardHeaders = s.Options.ForwardHeaders
	if s.Type == metadata.Workflow {
		retention := runRetention(s, defaults)
		view.WorkflowCompletionRetention = &retention
	}
	return view
}

func viewRetry(p metadata.RetryPolicy) retryView {
	view := retryView{
		InitialInterval: units.Duration(p.InitialInterval), Factor: factor(p.Factor),
		MaxInterval: units.Duration(p.MaxInterval), OnMaxAttempts: p.OnMaxAttempts.String(),
	}
	if p.MaxAttempts > 0 {
		view.MaxAttempts = &p.MaxAttempts
	}
	return view
}

// viewHandlers converts the handlers of a service of a deployment; the deployment may be nil.
func viewHandlers(d *metadata.Deployment, s *metadata.Service, defaults *metadata.Defaults) []handlerView {
	list := make([]handlerView, 0, len(s.Handlers))
	for _, h := range s.Handlers {
		list = append(list, viewHandler(d, s, h, defaults))
	}
	return list
}

func viewHandler(d *metadata.Deployment, s *metadata.Service, h *metadata.Handler, defaults *metadata.Defaults) handlerView {
	options, own := metadata.Effective(h, s, defaults), h.Options
	return handlerView{
		Name: h.Name, Type: handlerType(h.Type), Documentation: h.Documentation, Metadata: h.Metadata, Public: options.Public,
		InputDescription: h.Input.Description(), OutputDescription: h.Output.Description(),
		InputSchema: h.Input.JSONSchema, OutputSchema: h.Output.JSONSchema,
		IdempotencyRetention:        override(own.IdempotencyRetention, options.IdempotencyRetention),
		WorkflowCompletionRetention: override(own.WorkflowRetention, options.WorkflowRetention),
		JournalRetention:            override(own.JournalRetention, options.JournalRetention),
		InactivityTimeout:           override(own.InactivityTimeout, options.InactivityTimeout),
		AbortTimeout:                override(own.AbortTimeout, options.AbortTimeout),
		EnableLazyState:             own.EnableLazyState,
		Retry:                       viewRetryOverride(own.Retry),
		Info:                        handlerNotices(d, s, h, defaults),
	}
}

func viewRetryOverride(o metadata.RetryOptions) *retryOverrideView {
	if o == (metadata.RetryOptions{}) {
		return nil
	}
	view := &retryOverrideView{
		InitialInterval: duration(o.InitialInterval), MaxInterval: duration(o.MaxInterval), MaxAttempts: o.MaxAttempts,
	}
	if o.Factor != nil {
		view.Factor = factor(*o.Factor)
	}
	if o.OnMaxAttempts != nil {
		view.OnMaxAttempts = o.OnMaxAttempts.String()
	}
	return view
}

// handlerType returns the name of a kind of handler; empty for handlers of plain services.
func handlerType(t target.Type) string {
	switch t {
	case target.ObjectExclusive:
		return "Exclusive"
	case target.ObjectShared, target.WorkflowShared:
		return "Shared"
	case target.WorkflowRun:
		return "Workflow"
	}
	return ""
}

// duration converts a duration to its text form, nil to nil.
func duration(d *time.Duration) *units.Duration {
	if d == nil {
		return nil
	}
	text := units.Duration(*d)
	return &text
}

// factor formats a number with at least one decimal, such as 2.0.
func factor(f float64) json.Number {
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if f == float64(int64(f)) {
		text += ".0"
	}
	return json.Number(text)
}
