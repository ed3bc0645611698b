package deployments

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/access"
	"platform/invoker/discovery"
	"platform/metadata"
)

// deploymentUpdate is the body of PATCH and PUT /deployments/{id}. Fields that are not given stay
// unchanged; given headers replace all existing ones.
type deploymentUpdate struct {
	URI               *string           `json:"uri"`
	UseHTTP11         *bool             `json:"use_http_11"`
	ARN               *string           `json:"arn"`
	AssumeRoleARN     *string           `json:"assume_role_arn"`
	AdditionalHeaders map[string]string `json:"additional_headers"`
	Overwrite         bool              `json:"overwrite"`
	DryRun            bool              `json:"dry_run"`
}

// updateDeployment changes the address of a deployment or the options to reach it. It first
// verifies that the new endpoint can continue invocations of the deployment. With overwrite it also
// registers what the endpoint announces.
func (s *Server) updateDeployment(c echo.Context) error {
	known, err := findDeployment(s.registry.Schemas(), c)
	if err != nil {
		return err
	}
	var body deploymentUpdate
	if err := s.cfg.Bodies.ReadJSON(c, &body); err != nil {
		return err
	}
	if body.DryRun {
		rest.OnlyDryRun(c)
	}
	where := location{body.URI, body.UseHTTP11, body.ARN, body.AssumeRoleARN, body.AdditionalHeaders}
	if err := where.checkKind(known.Function()); err != nil {
		return err
	}
	if !where.given() && !body.Overwrite {
		rest.ChangedNothing(c)
		return s.respondUpdated(c, known, nil)
	}
	endpoint := requestOf(known)
	if known.Unreadable != nil && body.AdditionalHeaders == nil { // they would be lost
		return known.Unreadable
	}
	ctx, before := c.Request().Context(), destination(&endpoint)
	if err := where.apply(&endpoint); err != nil {
		return err
	}
	if body.AdditionalHeaders == nil {
		if err := s.mayKeepHeaders(ctx, before, &endpoint); err != nil {
			return err
		}
	}
	discovered, err := s.discover(ctx, endpoint)
	if err != nil {
		return err
	}
	now := located(discovered, endpoint)
	now.ID = known.ID
	if !body.DryRun {
		s.updating.Lock()
		defer s.updating.Unlock()
	}
	updated, err := s.storeUpdate(ctx, body.DryRun, metadata.Update{
		Deployment: now, Overwrite: body.Overwrite,
		Verify: func(current *metadata.Deployment) error { return requireUnchanged(current, &where, &endpoint) },
	})
	if err != nil {
		return err
	}
	if body.DryRun {
		rest.ChangedNothing(c)
	} else {
		s.log.Info("deployment updated", "deployment_id", updated.ID, "address", updated.Address(), "overwrite", body.Overwrite)
	}
	return s.respondUpdated(c, updated, unregisteredParts(updated, now))
}

// mayKeepHeaders rejects updates that send the headers of a deployment to another destination than before,
// unless an administrator requests that.
func (s *Server) mayKeepHeaders(ctx context.Context, before string, endpoint *discovery.Request) error {
	after := destination(endpoint)
	if after == before || !s.hasSecretHeaders(endpoint) || access.From(ctx).Allows(access.Administer) {
		return nil
	}
	return &rest.Error{
		Status: http.StatusUnprocessableEntity, Field: "additional_headers",
		Message: fmt.Sprintf("The request field 'additional_headers' is missing: the headers of the deployment are only for %s; send those for %s, or {} for none. With the role admin they can be kept", before, after),
	}
}

// destination is who gets the headers of a deployment: the host of its endpoint, or its function in
// any version. Headers are write-only, so a change of it must not disclose them to another one.
func destination(r *discovery.Request) string {
	if r.ARN != "" {
		const parts = 7 // arn:partition:lambda:region:account:function:name
		return strings.Join(strings.SplitN(r.ARN, ":", parts+1)[:min(parts, strings.Count(r.ARN, ":")+1)], ":")
	}
	u, err := url.Parse(r.URI)
	if err != nil {
		return r.URI
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// hasSecretHeaders reports whether an endpoint gets headers other than those that distinguish
// deployments, which are no secrets.
func (s *Server) hasSecretHeaders(r *discovery.Request) bool {
	for name := range r.AdditionalHeaders {
		if !slices.ContainsFunc(s.cfg.RoutingHeaders, func(routing string) bool { return strings.EqualFold(routing, name) }) {
			return true
		}
	}
	return false
}

// requireUnchanged rejects an update that would undo a concurrent one: endpoint contains what where does not
// change as it was before the discovery, which takes up to seconds.
func requireUnchanged(current *metadata.Deployment, where *location, endpoint *discovery.Request) error {
	updated := requestOf(current)
	if err := where.apply(&updated); err != nil {
		return err
	}
	if reflect.DeepEqual(updated, *endpoint) {
		return nil
	}
	return &rest.Error{Status: http.StatusConflict, Message: fmt.Sprintf("another request has changed the address or the headers of deployment %s meanwhile; nothing was changed, repeat the request", current.ID)}
}

// storeUpdate stores an update, or only validates it if dryRun.
func (s *Server) storeUpdate(ctx context.Context, dryRun bool, u metadata.Update) (*metadata.Deployment, error) {
	if dryRun {
		return s.registry.PlanUpdate(u)
	}
	return s.registry.UpdateDeployment(ctx, u)
}

// unregisteredParts returns a notice about the parts announced by the endpoint that were not
// registered.
func unregisteredParts(updated, offered *metadata.Deployment) []rest.Notice {
	more := differences(updated, offered)
	if more == "" {
		return nil
	}
	return []rest.Notice{{Message: "the endpoint offers other services or handlers than the deployment has (" + more + "), and the deployment keeps its own; update with overwrite to replace them"}}
}

func (s *Server) respondUpdated(c echo.Context, d *metadata.Deployment, more []rest.Notice) error {
	defaults := s.cfg.Defaults()
	view := viewDeployment(d, viewServices(d, defaults), defaults)
	view.Info = append(view.Info, more...)
	return rest.Respond(c, http.StatusOK, view)
}
