package deployments

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/metadata"
)

// Registry stores deployments, and the options of their services.
type Registry interface {
	Schemas() *metadata.Schemas
	// Nodes returns the members of the cluster, whose addresses are no endpoints.
	Nodes() []metadata.Node
	RegisterDeployment(context.Context, metadata.Registration) (metadata.Registered, error)
	// PlanDeployment validates a registration and returns its result without storing it.
	PlanDeployment(metadata.Registration) (metadata.Registered, error)
	UpdateDeployment(context.Context, metadata.Update) (*metadata.Deployment, error)
	// PlanUpdate validates an update and returns its result without storing it.
	PlanUpdate(metadata.Update) (*metadata.Deployment, error)
	DeleteDeployment(context.Context, ids.Deployment) error
	ModifyService(ctx context.Context, name string, options metadata.Options) (*metadata.Service, error)
}

// listDeployments responds with all deployments, the oldest first.
func (s *Server) listDeployments(c echo.Context) error {
	schemas, defaults := s.registry.Schemas(), s.cfg.Defaults()
	deployments := slices.SortedFunc(maps.Values(schemas.Deployments), func(a, b *metadata.Deployment) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	list := make([]deploymentView, 0, len(deployments))
	for _, d := range deployments {
		list = append(list, viewDeployment(d, viewRevisions(d), defaults))
	}
	return rest.Respond(c, http.StatusOK, map[string]any{"deployments": list})
}

func (s *Server) getDeployment(c echo.Context) error {
	d, err := findDeployment(s.registry.Schemas(), c)
	if err != nil {
		return err
	}
	defaults := s.cfg.Defaults()
	return rest.Respond(c, http.StatusOK, viewDeployment(d, viewServices(d, defaults), defaults))
}

// deleteDeployment removes a deployment: immediately with force, otherwise only if it is not in
// use.
func (s *Server) deleteDeployment(c echo.Context) error {
	force, err := rest.QueryBool(c, "force")
	if err != nil {
		return err
	}
	schemas := s.registry.Schemas()
	d, err := findDeployment(schemas, c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if !force {
		if err := s.drained(c, schemas, d); err != nil {
			return err
		}
	}
	if err := s.registry.DeleteDeployment(ctx, d.ID); err != nil {
		return err
	}
	s.log.Info("deployment deleted", "deployment_id", d.ID, "address", d.Address(), "force", force)
	return c.NoContent(http.StatusAccepted)
}

// drained returns an error if a deployment receives new invocations or unfinished ones run on it.
func (s *Server) drained(c echo.Context, schemas *metadata.Schemas, d *metadata.Deployment) error {
	var latest []string
	for _, service := range d.Services {
		if schemas.Services[service.Name].Deployment == d.ID {
			latest = append(latest, service.Name)
		}
	}
	unfinished, err := s.cfg.InUse(c.Request().Context(), d.ID)
	if err != nil {
		return fmt.Errorf("count invocations of deployment %s: %w", d.ID, err)
	}
	var reasons []string
	switch {
	case unfinished == 1:
		reasons = append(reasons, "1 unfinished invocation needs it")
	case unfinished > 1:
		reasons = append(reasons, fmt.Sprintf("%d unfinished invocations need it", unfinished))
	}
	if len(latest) > 0 {
		reasons = append(reasons, "new invocations of "+strings.Join(latest, ", ")+" go to it")
	}
	if reasons == nil {
		return nil
	}
	return &rest.Error{Status: http.StatusConflict, Message: fmt.Sprintf(
		"The deployment '%s' is in use: %s. Wait until it is drained. With force=true it is deleted nevertheless: new invocations then go to the previous revision of the service, or fail if no other deployment has it, "+
			"and its unfinished invocations fail with RT0011 until they are resumed on another deployment or killed", d.ID, strings.Join(reasons, "; "))}
}

func findDeployment(schemas *metadata.Schemas, c echo.Context) (*metadata.Deployment, error) {
	id, err := ids.ParseDeployment(c.Param("deployment"))
	if err != nil {
		return nil, rest.InvalidField("deployment", err)
	}
	d := schemas.Deployments[id]
	if d == nil {
		return nil, &metadata.NotFoundError{Deployment: id}
	}
	return d, nil
}
