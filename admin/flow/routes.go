package flow

import (
	"platform/admin/rest"
	"platform/internal/access"
)

// Routes returns the routes of rules, counters, scopes and vqueues.
func (s *Server) Routes() []rest.Route {
	return []rest.Route{
		rest.Get("/limits/rules", access.View, s.listRules),
		rest.Put("/limits/rules", access.Operate, s.putRules),
		rest.Post("/limits/rules/bulk-delete", access.Operate, s.deleteRules),
		rest.Get("/limits/counters", access.View, s.listCounters),
		rest.Post("/limits/scopes/:scope/pause", access.Operate, s.onScope("pause", s.pauseScope)),
		rest.Post("/limits/scopes/:scope/resume", access.Operate, s.onScope("resume", s.resumeScope)),
		rest.Get("/limits/rules/:pattern", access.View, s.getRule),
		rest.Put("/limits/rules/:pattern", access.Operate, s.putRule),
		rest.Delete("/limits/rules/:pattern", access.Operate, s.deleteRule),
		rest.Get("/vqueues", access.View, s.listQueues),
		rest.Get("/vqueues/:vqueue_id", access.View, s.getQueue),
		rest.Post("/vqueues/:vqueue_id/pause", access.Operate, s.onQueue("pause", s.pauseQueue)),
		rest.Post("/vqueues/:vqueue_id/resume", access.Operate, s.onQueue("resume", s.resumeQueue)),
	}
}
