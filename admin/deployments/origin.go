package deployments

import (
	"platform/internal/target"
	"platform/internal/units"
	"platform/metadata"
)

// overriddenView has the values that options would have if no operator had changed them; options that
// were not changed are absent.
type overriddenView struct {
	Public                      *bool           `json:"public,omitempty"`
	IdempotencyRetention        *units.Duration `json:"idempotency_retention,omitempty"`
	WorkflowCompletionRetention *units.Duration `json:"workflow_completion_retention,omitempty"`
	JournalRetention            *units.Duration `json:"journal_retention,omitempty"`
	InactivityTimeout           *units.Duration `json:"inactivity_timeout,omitempty"`
	AbortTimeout                *units.Duration `json:"abort_timeout,omitempty"`
	EnableLazyState             *bool           `json:"enable_lazy_state,omitempty"`
	Retry                       *retryView      `json:"retry_policy,omitempty"`
}

// overridden returns what operators have changed; nil if nothing.
func overridden(s *metadata.Service, defaults *metadata.Defaults) *overriddenView {
	if s.Declared == nil {
		return nil
	}
	code := *s
	code.Options = *s.Declared
	now, was := metadata.Effective(nil, s, defaults), metadata.Effective(nil, &code, defaults)
	view := overriddenView{
		Public:               changed(now.Public, was.Public),
		IdempotencyRetention: changed(units.Duration(now.IdempotencyRetention), units.Duration(was.IdempotencyRetention)),
		JournalRetention:     changed(units.Duration(now.JournalRetention), units.Duration(was.JournalRetention)),
		InactivityTimeout:    changed(units.Duration(now.InactivityTimeout), units.Duration(was.InactivityTimeout)),
		AbortTimeout:         changed(units.Duration(now.AbortTimeout), units.Duration(was.AbortTimeout)),
		EnableLazyState:      changed(now.EnableLazyState, was.EnableLazyState),
	}
	if s.Type == metadata.Workflow {
		view.WorkflowCompletionRetention = changed(runRetention(s, defaults), units.Duration(was.WorkflowRetention))
	}
	if now.Retry != was.Retry {
		retry := viewRetry(was.Retry)
		view.Retry = &retry
	}
	if view == (overriddenView{}) {
		return nil
	}
	return &view
}

// changed returns the former value if it differs.
func changed[T comparable](now, was T) *T {
	if now == was {
		return nil
	}
	return &was
}

// runRetention returns how long the result of a workflow is kept.
func runRetention(s *metadata.Service, defaults *metadata.Defaults) (d units.Duration) {
	for _, h := range s.Handlers {
		if h.Type == target.WorkflowRun {
			options := metadata.Effective(h, s, defaults)
			return units.Duration(options.WorkflowRetention)
		}
	}
	options := metadata.Effective(nil, s, defaults)
	return units.Duration(options.WorkflowRetention)
}

// serverDefaults returns the names of the options that neither the code of a service nor an operator
// has set: the configuration of the server determines them.
func serverDefaults(s *metadata.Service) []string {
	o := &s.Options
	workflow := o.WorkflowRetention != nil || s.Type != metadata.Workflow
	for _, h := range s.Handlers {
		workflow = workflow || h.Options.WorkflowRetention != nil
	}
	names := []string{}
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"public", o.Public != nil},
		{"idempotency_retention", o.IdempotencyRetention != nil},
		{"workflow_completion_retention", workflow},
		{"journal_retention", o.JournalRetention != nil},
		{"inactivity_timeout", o.InactivityTimeout != nil},
		{"abort_timeout", o.AbortTimeout != nil},
		{"enable_lazy_state", o.EnableLazyState != nil},
		{"retry_policy", o.Retry != metadata.RetryOptions{}},
	} {
		if !option.set {
			names = append(names, option.name)
		}
	}
	return names
}
