package deployments

import (
	"maps"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/access"
	"platform/metadata"
)

// listServices responds with the latest revision of every service, sorted by name.
func (s *Server) listServices(c echo.Context) error {
	schemas, defaults := s.registry.Schemas(), s.cfg.Defaults()
	list := make([]serviceView, 0, len(schemas.Services))
	p := access.From(c.Request().Context())
	for _, name := range slices.Sorted(maps.Keys(schemas.Services)) {
		if len(p.Services) > 0 && !slices.Contains(p.Services, name) {
			continue
		}
		service := schemas.Services[name]
		list = append(list, viewService(schemas.Deployments[service.Deployment], service, defaults))
	}
	return rest.Respond(c, http.StatusOK, map[string]any{"services": list})
}

func (s *Server) getService(c echo.Context) error {
	schemas := s.registry.Schemas()
	service, err := findService(schemas, c)
	if err != nil {
		return err
	}
	return rest.Respond(c, http.StatusOK, viewService(schemas.Deployments[service.Deployment], service, s.cfg.Defaults()))
}

func (s *Server) listHandlers(c echo.Context) error {
	schemas := s.registry.Schemas()
	service, err := findService(schemas, c)
	if err != nil {
		return err
	}
	return rest.Respond(c, http.StatusOK, map[string]any{"handlers": viewHandlers(schemas.Deployments[service.Deployment], service, s.cfg.Defaults())})
}

func (s *Server) getHandler(c echo.Context) error {
	schemas := s.registry.Schemas()
	service, handler, err := schemas.Resolve(c.Param("service"), c.Param("handler"))
	if err != nil {
		return err
	}
	return rest.Respond(c, http.StatusOK, viewHandler(schemas.Deployments[service.Deployment], service, handler, s.cfg.Defaults()))
}

func findService(schemas *metadata.Schemas, c echo.Context) (*metadata.Service, error) {
	name := c.Param("service")
	service := schemas.Services[name]
	if service == nil {
		return nil, &metadata.NotFoundError{Service: name}
	}
	return service, nil
}
