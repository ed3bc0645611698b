package deployments

import (
	"fmt"
	"time"

	"platform/admin/rest"
	"platform/internal/errcode"
	"platform/internal/units"
	"platform/metadata"
)

// override returns the effective value of an option that a handler sets, nil if it does not set it.
func override(own *time.Duration, effective time.Duration) *units.Duration {
	if own == nil {
		return nil
	}
	return duration(&effective)
}

// deploymentNotices returns the notices of all services of a deployment.
func deploymentNotices(d *metadata.Deployment, defaults *metadata.Defaults) []rest.Notice {
	var list []rest.Notice
	if d.Unreadable != nil {
		list = append(list, rest.Notice{Code: errcode.META0020, Message: "the deployment is not used by this node: " + errcode.Detail(d.Unreadable)})
	}
	for _, s := range d.Services {
		list = append(list, serviceNotices(d, s, defaults)...)
	}
	return list
}

// serviceNotices returns the notices of a service and its handlers.
func serviceNotices(d *metadata.Deployment, s *metadata.Service, defaults *metadata.Defaults) []rest.Notice {
	var list []rest.Notice
	list = append(list, optionNotices(d, "service "+s.Name, &s.Options, defaults)...)
	for _, h := range s.Handlers {
		list = append(list, handlerNotices(d, s, h, defaults)...)
	}
	return list
}

func handlerNotices(d *metadata.Deployment, s *metadata.Service, h *metadata.Handler, defaults *metadata.Defaults) []rest.Notice {
	return optionNotices(d, "handler "+s.Name+"/"+h.Name, &h.Options, defaults)
}

// optionNotices returns a notice for each option of a service or handler that has no effect or that the
// server's limits change. The deployment may be nil.
func optionNotices(d *metadata.Deployment, whose string, o *metadata.Options, defaults *metadata.Defaults) []rest.Notice {
	var list []rest.Notice
	if d != nil && !streams(d) && o.InactivityTimeout != nil {
		list = append(list, rest.Notice{Code: errcode.RT0021, Message: fmt.Sprintf(
			"%s sets an inactivity timeout, which has no effect because deployment %s works in request-response mode", whose, d.ID)})
	}
	return append(list, clampNotices(whose, o, defaults)...)
}

// clampNotices returns a notice for each option that the server's limits change.
func clampNotices(whose string, o *metadata.Options, defaults *metadata.Defaults) []rest.Notice {
	var list []rest.Notice
	clamped := func(code errcode.Code, what string, requested, limit *time.Duration) {
		if requested != nil && limit != nil && *requested > *limit {
			list = append(list, rest.Notice{Code: code, Message: fmt.Sprintf("the %s %s of %s exceeds the server's maximum and was set to %s",
				what, units.FormatDuration(*requested), whose, units.FormatDuration(*limit))})
		}
	}
	clamped(errcode.RT0022, "journal retention", o.JournalRetention, defaults.MaxJournalRetention)
	clamped("", "idempotency retention", o.IdempotencyRetention, defaults.MaxIdempotencyRetention)
	clamped("", "workflow completion retention", o.WorkflowRetention, defaults.MaxWorkflowRetention)
	requested, limit := o.Retry.MaxAttempts, defaults.MaxRetryAttempts
	switch {
	case requested == nil || limit == 0:
	case *requested == metadata.UnlimitedAttempts:
		list = append(list, rest.Notice{Message: fmt.Sprintf("unlimited attempts of %s exceed the server's maximum and were set to %d", whose, limit)})
	case *requested > limit:
		list = append(list, rest.Notice{Message: fmt.Sprintf("the %d attempts of %s exceed the server's maximum and were set to %d", *requested, whose, limit)})
	}
	return list
}
