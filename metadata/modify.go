package metadata

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// applyModifyService returns the *Service.
func applyModifyService(d *draft, index uint64, cmd *modifyService) (outcome, error) {
	deployment, service, err := d.schemas.planModify(cmd.name, &cmd.options)
	if err != nil {
		return outcome{refusal: err}, nil //nolint:nilerr // a refusal is a result that all replicas agree on
	}
	if err := d.putDeployment(index, deployment); err != nil || cmd.options.IngressAuth == nil {
		return outcome{value: service}, err
	}
	return outcome{value: service}, d.setIngressAuth(index, cmd.name, cmd.options.IngressAuth)
}

// setIngressAuth sets the authentication of callers in all revisions of a service, so that the
// deletion of the latest one does not open it.
func (d *draft) setIngressAuth(index uint64, name string, auth *IngressAuth) error {
	for _, id := range slices.Sorted(maps.Keys(d.schemas.Deployments)) {
		deployment := *d.schemas.Deployments[id]
		at := slices.IndexFunc(deployment.Services, func(s *Service) bool { return s.Name == name })
		if at < 0 || reflect.DeepEqual(deployment.Services[at].Options.IngressAuth, auth) {
			continue
		}
		service := *deployment.Services[at]
		service.Options.IngressAuth = auth
		deployment.Services = slices.Clone(deployment.Services)
		deployment.Services[at] = &service
		if err := d.putDeployment(index, &deployment); err != nil {
			return err
		}
	}
	return nil
}

// planModify returns the deployment and the service after options of the latest revision of
// a service are changed.
func (s *Schemas) planModify(name string, change *Options) (*Deployment, *Service, error) {
	latest := s.Services[name]
	if latest == nil {
		return nil, nil, &NotFoundError{Service: name}
	}
	if change.WorkflowRetention != nil && latest.Type != Workflow {
		return nil, nil, &InvalidError{fmt.Sprintf("modifying retention time for service type %s is unsupported", latest.Type)}
	}
	if change.ForwardHeaders != nil {
		names := *change.ForwardHeaders
		if len(names) > MaxForwardHeaders || slices.ContainsFunc(names, func(n string) bool { return n == "" || len(n) > MaxHeaderName }) {
			return nil, nil, &InvalidError{fmt.Sprintf("at most %d headers can be forwarded, with names of 1 to %d bytes", MaxForwardHeaders, MaxHeaderName)}
		}
	}
	service := *latest
	service.Options = latest.Options.With(change)
	if change.WorkflowRetention != nil {
		service.Handlers = withRunRetention(latest.Handlers, change)
	}
	deployment := *s.Deployments[latest.Deployment]
	deployment.Services = slices.Clone(deployment.Services)
	at := slices.Index(deployment.Services, latest)
	deployment.Services[at] = &service
	return &deployment, &service, nil
}

// With returns the options with the non-nil ones of a change applied.
func (o Options) With(change *Options) Options {
	set(&o.InactivityTimeout, change.InactivityTimeout)
	set(&o.AbortTimeout, change.AbortTimeout)
	set(&o.JournalRetention, change.JournalRetention)
	set(&o.IdempotencyRetention, change.IdempotencyRetention)
	set(&o.WorkflowRetention, change.WorkflowRetention)
	set(&o.EnableLazyState, change.EnableLazyState)
	set(&o.Public, change.Public)
	set(&o.IngressAuth, change.IngressAuth)
	set(&o.ForwardHeaders, change.ForwardHeaders)
	set(&o.Retry.InitialInterval, change.Retry.InitialInterval)
	set(&o.Retry.MaxInterval, change.Retry.MaxInterval)
	set(&o.Retry.MaxAttempts, change.Retry.MaxAttempts)
	set(&o.Retry.Factor, change.Retry.Factor)
	set(&o.Retry.OnMaxAttempts, change.Retry.OnMaxAttempts)
	return o
}

func set[T any](option **T, to *T) {
	if to != nil {
		*option = to
	}
}

// withRunRetention changes the retention that a run handler announced, which would
// otherwise take precedence over the service's.
func withRunRetention(handlers []*Handler, change *Options) []*Handler {
	handlers = slices.Clone(handlers)
	for i, h := range handlers {
		if h.Options.WorkflowRetention != nil {
			changed := *h
			changed.Options.WorkflowRetention = change.WorkflowRetention
			handlers[i] = &changed
		}
	}
	return handlers
}
