package admin

import (
	"fmt"
	"time"

	"platform/internal/errcode"
	"platform/internal/units"
	"platform/metadata"
)

// override is a handler's own value as it takes effect, nil if it has none.
func override(own *time.Duration, effective time.Duration) *units.Duration {
	if own == nil {
		return nil
	}
	return duration(&effective)
}

// deploymentNotices are those of all services.
func deploymentNotices(d *metadata.Deployment, defaults *metadata.Defaults) []notice {
	var list []notice
	for _, s := range d.Services {
		list = append(list, serviceNotices(d, s, defaults)...)
	}
	return list
}

// serviceNotices are those of the service and its handlers.
func serviceNotices(d *metadata.Deployment, s *metadata.Service, defaults *metadata.Defaults) []notice {
	var list []notice
	if d != nil && !streams(d) && announcesInactivity(s) {
		list = append(list, notice{errcode.RT0021, fmt.Sprintf(
			"service %s announces an inactivity timeout, which has no effect because deployment %s works in request-response mode", s.Name, d.ID)})
	}
	list = append(list, clampNotice("service "+s.Name, s.Options.JournalRetention, defaults)...)
	for _, h := range s.Handlers {
		list = append(list, handlerNotices(s, h, defaults)...)
	}
	return list
}

func handlerNotices(s *metadata.Service, h *metadata.Handler, defaults *metadata.Defaults) []notice {
	return clampNotice("handler "+s.Name+"/"+h.Name, h.Options.JournalRetention, defaults)
}

func announcesInactivity(s *metadata.Service) bool {
	if s.Options.InactivityTimeout != nil {
		return true
	}
	for _, h := range s.Handlers {
		if h.Options.InactivityTimeout != nil {
			return true
		}
	}
	return false
}

func clampNotice(whose string, announced *time.Duration, defaults *metadata.Defaults) []notice {
	limit := defaults.MaxJournalRetention
	if announced == nil || limit == nil || *announced <= *limit {
		return nil
	}
	return []notice{{errcode.RT0022, fmt.Sprintf(
		"the journal retention %s of %s exceeds the server's maximum and was set to %s",
		units.FormatDuration(*announced), whose, units.FormatDuration(*limit))}}
}
