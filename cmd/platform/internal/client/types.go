package client

import (
	"encoding/json"
	"time"
)

// Notice is a message of the server about a deployment, service or handler.
type Notice struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Deployment is a registered service endpoint.
type Deployment struct {
	ID                 string            `json:"id"`
	URI                string            `json:"uri"`
	ARN                string            `json:"arn"`
	ProtocolType       string            `json:"protocol_type"`
	HTTPVersion        string            `json:"http_version"`
	AdditionalHeaders  map[string]string `json:"additional_headers"`
	Metadata           map[string]string `json:"metadata"`
	CreatedAt          time.Time         `json:"created_at"`
	MinProtocolVersion int               `json:"min_protocol_version"`
	MaxProtocolVersion int               `json:"max_protocol_version"`
	SDKVersion         string            `json:"sdk_version"`
	Services           []Service         `json:"services"` // in lists only name and revision
	Info               []Notice          `json:"info"`
}

// Address returns the URI or ARN.
func (d *Deployment) Address() string {
	if d.ARN != "" {
		return d.ARN
	}
	return d.URI
}

// Service is the latest revision of a service, or the one of a deployment.
type Service struct {
	Name                        string            `json:"name"`
	Type                        string            `json:"ty"`
	Handlers                    []Handler         `json:"handlers"`
	DeploymentID                string            `json:"deployment_id"`
	Revision                    int               `json:"revision"`
	Public                      bool              `json:"public"`
	IngressAuth                 string            `json:"ingress_auth"`
	ForwardHeaders              *[]string         `json:"forward_headers"`
	Documentation               string            `json:"documentation"`
	Metadata                    map[string]string `json:"metadata"`
	IdempotencyRetention        string            `json:"idempotency_retention"`
	WorkflowCompletionRetention string            `json:"workflow_completion_retention"`
	JournalRetention            string            `json:"journal_retention"`
	InactivityTimeout           string            `json:"inactivity_timeout"`
	AbortTimeout                string            `json:"abort_timeout"`
	EnableLazyState             bool              `json:"enable_lazy_state"`
	RetryPolicy                 *RetryPolicy      `json:"retry_policy"`
	Info                        []Notice          `json:"info"`

	// Fields are all fields except the handlers, as unparsed JSON.
	Fields map[string]json.RawMessage `json:"-"`
}

// UnmarshalJSON decodes the known fields, and keeps all of them in Fields.
func (s *Service) UnmarshalJSON(data []byte) error {
	type plain Service
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &s.Fields); err != nil {
		return err
	}
	delete(s.Fields, "handlers")
	return nil
}

// RetryPolicy determines how failed attempts are retried.
type RetryPolicy struct {
	InitialInterval      string      `json:"initial_interval"`
	ExponentiationFactor json.Number `json:"exponentiation_factor"`
	MaxAttempts          *int        `json:"max_attempts"` // nil is unlimited
	MaxInterval          string      `json:"max_interval"`
	OnMaxAttempts        string      `json:"on_max_attempts"`
}

// Handler is one handler of a service.
type Handler struct {
	Name              string `json:"name"`
	Type              string `json:"ty"`
	Public            bool   `json:"public"`
	InputDescription  string `json:"input_description"`
	OutputDescription string `json:"output_description"`
	Documentation     string `json:"documentation"`

	// Options in which the handler differs from its service; those of the retry policy as well.
	IdempotencyRetention        string       `json:"idempotency_retention"`
	WorkflowCompletionRetention string       `json:"workflow_completion_retention"`
	JournalRetention            string       `json:"journal_retention"`
	InactivityTimeout           string       `json:"inactivity_timeout"`
	AbortTimeout                string       `json:"abort_timeout"`
	EnableLazyState             *bool        `json:"enable_lazy_state"`
	RetryPolicy                 *RetryPolicy `json:"retry_policy"`

	// Fields are all fields as unparsed JSON.
	Fields map[string]json.RawMessage `json:"-"`
}

// UnmarshalJSON decodes the known fields, and keeps all of them in Fields.
func (h *Handler) UnmarshalJSON(data []byte) error {
	type plain Handler
	if err := json.Unmarshal(data, (*plain)(h)); err != nil {
		return err
	}
	return json.Unmarshal(data, &h.Fields)
}

// Invocation is one invocation; absent fields are zero.
type Invocation struct {
	ID                    string    `json:"id"`
	Target                string    `json:"target"`
	TargetServiceName     string    `json:"target_service_name"`
	TargetServiceKey      string    `json:"target_service_key"`
	TargetHandlerName     string    `json:"target_handler_name"`
	TargetServiceType     string    `json:"target_service_ty"`
	Scope                 string    `json:"scope"`
	LimitKey              string    `json:"limit_key"`
	Status                string    `json:"status"`
	CreatedAt             time.Time `json:"created_at"`
	ModifiedAt            time.Time `json:"modified_at"`
	ScheduledStartAt      time.Time `json:"scheduled_start_at"`
	RunningAt             time.Time `json:"running_at"`
	CompletedAt           time.Time `json:"completed_at"`
	IdempotencyKey        string    `json:"idempotency_key"`
	InvokedBy             string    `json:"invoked_by"`
	InvokedByID           string    `json:"invoked_by_id"`
	InvokedByTarget       string    `json:"invoked_by_target"`
	PinnedDeploymentID    string    `json:"pinned_deployment_id"`
	PinnedProtocolVersion int       `json:"pinned_service_protocol_version"`
	JournalSize           int       `json:"journal_size"`
	RetryCount            int       `json:"retry_count"`
	LastStartAt           time.Time `json:"last_start_at"`
	NextRetryAt           time.Time `json:"next_retry_at"`
	NoResponseSince       time.Time `json:"no_response_since"`
	AbortAt               time.Time `json:"abort_at"`
	PauseRequested        bool      `json:"pause_requested"`
	CancelRequestedAt     time.Time `json:"cancel_requested_at"`
	LastPause             *Pause    `json:"last_pause"`
	LastFailure           string    `json:"last_failure"`
	LastFailureErrorCode  string    `json:"last_failure_error_code"`
	LastAttemptDeployment string    `json:"last_attempt_deployment_id"`
	LastAttemptServer     string    `json:"last_attempt_server"`
	CompletionResult      string    `json:"completion_result"`
	CompletionFailure     string    `json:"completion_failure"`
	Journal               []Entry   `json:"journal"`
}

// Pause records who paused an invocation, when and why.
type Pause struct {
	Cause     string    `json:"cause"` // operator, attempts-used-up, unretryable-failure, deployment-change
	By        string    `json:"by"`
	Reason    string    `json:"reason"`
	Attempts  int       `json:"attempts"`
	At        time.Time `json:"at"`
	ResumedAt time.Time `json:"resumed_at"`
}

// Entry is one journal entry of an invocation.
type Entry struct {
	Index         int       `json:"index"`
	Type          string    `json:"entry_type"` // "Command: X" or "Notification: X"
	Name          string    `json:"name"`
	Completed     bool      `json:"completed"`
	InvokedID     string    `json:"invoked_id"`
	InvokedTarget string    `json:"invoked_target"`
	WakeupAt      time.Time `json:"sleep_wakeup_at"`
	AppendedAt    time.Time `json:"appended_at"`
	RawLength     int       `json:"raw_length"`
}

// Event is an event of an invocation between its journal entries.
type Event struct {
	AfterEntry int       `json:"after_journal_entry_index"`
	At         time.Time `json:"appended_at"`
	Type       string    `json:"event_type"`
	Sequence   *int      `json:"sequence"` // number in the history; nil: not stored
	Content    struct {
		Failure
		Attempts    int      `json:"attempts"` // that have failed
		Cause       string   `json:"cause"`    // of a pause
		By          string   `json:"by"`
		Reason      string   `json:"reason"`
		LastFailure *Failure `json:"last_failure"`
	} `json:"content"`
}

// Failure is the failure of an attempt in an Event.
type Failure struct {
	Code         int    `json:"error_code"`
	Message      string `json:"error_message"`
	RelatedIndex *int   `json:"related_command_index"`
	RelatedName  string `json:"related_command_name"`
	RelatedType  string `json:"related_command_type"`
}

// Version is the version of the server.
type Version struct {
	Version         string          `json:"version"`
	Commit          string          `json:"commit"`
	MinAPIVersion   int             `json:"min_admin_api_version"`
	MaxAPIVersion   int             `json:"max_admin_api_version"`
	IngressEndpoint string          `json:"ingress_endpoint"`
	Features        map[string]bool `json:"features"`
}
