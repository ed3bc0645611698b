package metadata

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"platform/internal/feature"
)

// applyModifyService returns the *Service.
func applyModifyService(d *draft, index uint64, cmd *modifyService) (outcome, error) {
	deployment, service, err := d.schemas.planModify(cmd.name, &cmd.options, d.cluster.Level() >= feature.Level4)
	if err != nil {
		return outcome{rejection: err}, nil //nolint:nilerr // a rejection is a result that all replicas agree on
	}
	if err := d.putDeployment(index, deployment); err != nil {
		return outcome{}, err
	}
	if change, set := cmd.options.ofOperator(); set {
		return outcome{value: service}, d.setForCallers(index, cmd.name, change)
	}
	return outcome{value: service}, nil
}

// setForCallers sets what concerns the callers of a service in all its revisions, so that the
// deletion of the latest one neither opens it nor discloses their credentials.
func (d *draft) setForCallers(index uint64, name string, change *Options) error {
	for _, id := range slices.Sorted(maps.Keys(d.schemas.Deployments)) {
		deployment := *d.schemas.Deployments[id]
		at := slices.IndexFunc(deployment.Services, func(s *Service) bool { return s.Name == name })
		if at < 0 {
			continue
		}
		service := *deployment.Services[at]
		if service.Options = service.Options.With(change); reflect.DeepEqual(service.Options, deployment.Services[at].Options) {
			continue
		}
		deployment.Services = slices.Clone(deployment.Services)
		deployment.Services[at] = &service
		if err := d.putDeployment(index, &deployment); err != nil {
			return err
		}
	}
	return nil
}

// planModify returns the deployment and the service after options of the latest revision of
// a service are changed. With keep it also stores the options that the code has announced.
func (s *Schemas) planModify(name string, change *Options, keep bool) (*Deployment, *Service, error) {
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
	if keep {
		service.Declared = declared(latest, &service.Options)
	}
	if change.WorkflowRetention != nil {
		service.Handlers = withRunRetention(latest.Handlers, change)
	}
	deployment := *s.Deployments[latest.Deployment]
	deployment.Services = slices.Clone(deployment.Services)
	at := slices.Index(deployment.Services, latest)
	deployment.Services[at] = &service
	return &deployment, &service, nil
}

// declared returns the options that the code of a service has announced; nil if they are the changed
// ones. Options that only operators set do not count.
func declared(latest *Service, changed *Options) *Options {
	announced := latest.Declared
	if announced == nil {
		own := latest.Options
		own.IngressAuth, own.ForwardHeaders = nil, nil
		for _, h := range latest.Handlers {
			if h.Options.WorkflowRetention != nil {
				own.WorkflowRetention = h.Options.WorkflowRetention
			}
		}
		announced = &own
	}
	now := *changed
	now.IngressAuth, now.ForwardHeaders = nil, nil
	if now.WorkflowRetention == nil {
		now.WorkflowRetention = announced.WorkflowRetention
	}
	if reflect.DeepEqual(&now, announced) {
		return nil
	}
	return announced
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
