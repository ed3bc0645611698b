package deployments

import (
	"platform/admin/rest"
	"platform/internal/access"
)

// Routes returns the routes of deployments and services.
func (s *Server) Routes() []rest.Route {
	return []rest.Route{
		rest.Post("/deployments", access.Deploy, s.registerDeployment),
		rest.Get("/deployments", access.View, s.listDeployments),
		rest.Get("/deployments/:deployment", access.View, s.getDeployment),
		rest.Patch("/deployments/:deployment", access.Deploy, s.updateDeployment),
		rest.Put("/deployments/:deployment", access.Deploy, s.updateDeployment),
		rest.Delete("/deployments/:deployment", access.Deploy, s.deleteDeployment),
		rest.Get("/services", access.View, s.listServices),
		rest.Get("/services/:service", access.View, s.getService),
		rest.Patch("/services/:service", access.Deploy, s.modifyService),
		rest.Get("/services/:service/openapi", access.View, s.describeCalls),
		rest.Get("/services/:service/handlers", access.View, s.listHandlers),
		rest.Get("/services/:service/handlers/:handler", access.View, s.getHandler),
		rest.Post("/internal/services/:service/serdes/:operation/:serde", access.Payloads, s.convert),
	}
}
