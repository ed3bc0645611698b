package deployments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/errcode"
	"platform/invoker/discovery"
	"platform/metadata"
)

// registration is the body of POST /deployments.
type registration struct {
	URI               *string           `json:"uri"`
	ARN               *string           `json:"arn"`
	AdditionalHeaders map[string]string `json:"additional_headers"`
	Metadata          map[string]string `json:"metadata"`
	UseHTTP11         *bool             `json:"use_http_11"`
	Force             *bool             `json:"force"`
	Breaking          bool              `json:"breaking"`
	DryRun            bool              `json:"dry_run"`
	AssumeRoleARN     *string           `json:"assume_role_arn"`
	Auth              json.RawMessage   `json:"auth"`
}

// registerDeployment discovers an endpoint and registers its services.
func (s *Server) registerDeployment(c echo.Context) error {
	var body registration
	if err := s.cfg.Bodies.ReadJSON(c, &body); err != nil {
		return err
	}
	if body.DryRun {
		rest.OnlyDryRun(c)
	}
	endpoint, err := body.endpoint()
	if err != nil {
		return err
	}
	rest.Concerns(c, addressOf(endpoint))
	// In version 2 of the API, force is true by default.
	force := rest.VersionOf(c) == 2
	if body.Force != nil {
		force = *body.Force
	}
	ctx := c.Request().Context()
	if !force {
		schemas := s.registry.Schemas()
		known := schemas.Find(addressOf(endpoint), endpoint.AdditionalHeaders, s.cfg.RoutingHeaders)
		if len(known) > 0 {
			unchanged := metadata.Registered{Deployment: known[0], Change: metadata.Unchanged}
			if rest.VersionOf(c) == 2 {
				return s.respondRegistered(c, unchanged, nil)
			}
			notices := append(ignoredFields(&body, endpoint, known[0]), s.compareEndpoint(ctx, endpoint, known[0])...)
			notices = append(notices, superseded(schemas, known[0])...)
			return s.respondRegistered(c, unchanged, notices)
		}
	}
	discovered, err := s.discover(ctx, endpoint)
	if err != nil {
		return err
	}
	registered, err := s.store(ctx, body.DryRun, metadata.Registration{
		Deployment: body.deployment(endpoint, discovered),
		Force:      force, Breaking: body.Breaking, RoutingHeaders: s.cfg.RoutingHeaders, Limit: s.cfg.MaxDeployments,
	})
	if err != nil {
		return err
	}
	if body.DryRun {
		rest.ChangedNothing(c)
	} else {
		s.log.Info("deployment registered", "deployment_id", registered.Deployment.ID, "address", addressOf(endpoint), "force", force)
	}
	return s.respondRegistered(c, registered, nil)
}

// checkServices rejects a deployment with too many services.
func (s *Server) checkServices(d *metadata.Deployment) error {
	n, most := len(d.Services), s.cfg.MaxServices
	if most == 0 || n <= most {
		return nil
	}
	return errcode.New(errcode.META0021, "the endpoint announces %d services, and admin.services-per-deployment-limit is %d; split it, or raise the limit", n, most).
		WithStatus(http.StatusRequestEntityTooLarge)
}

// store registers a deployment, or only validates the registration if dryRun. If a concurrent
// request has registered the endpoint, the result is Unchanged.
func (s *Server) store(ctx context.Context, dryRun bool, r metadata.Registration) (metadata.Registered, error) {
	if dryRun {
		return s.registry.PlanDeployment(r)
	}
	return s.registry.RegisterDeployment(ctx, r)
}

// deployment combines the result of the discovery with the fields of the request.
func (b *registration) deployment(e discovery.Request, discovered *metadata.Deployment) *metadata.Deployment {
	d := located(discovered, e)
	d.Metadata = b.Metadata
	return d
}

// located returns a discovered deployment with the address that was used for the discovery.
func located(discovered *metadata.Deployment, e discovery.Request) *metadata.Deployment {
	d := *discovered
	d.URI, d.HTTP11 = e.URI, d.HTTP11 || e.UseHTTP11
	d.ARN, d.AssumeRoleARN = e.ARN, e.AssumeRoleARN
	d.AdditionalHeaders = e.AdditionalHeaders
	return &d
}

// discover requests the services of an endpoint, if the headers for it and that many services can be stored.
// Errors without a code are mapped to status 502, since the endpoint caused them.
func (s *Server) discover(ctx context.Context, e discovery.Request) (*metadata.Deployment, error) {
	if len(e.AdditionalHeaders) > 0 {
		if err := s.cfg.RequireSharedKey(ctx, "headers of the deployment"); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.DiscoveryTimeout)
	defer cancel()
	d, err := s.discoverer.Discover(ctx, e)
	if err == nil {
		return d, s.checkServices(d)
	}
	if what := s.memberAt(e.URI); what != "" {
		return nil, &errcode.Error{Code: errcode.META0022, Message: e.URI + " is " + what + ", where no service listens", Err: err}
	}
	if _, coded := errcode.Of(err); coded {
		return nil, err
	}
	if _, ok := errors.AsType[*discovery.InvalidError](err); ok {
		return nil, err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, errcode.New(errcode.META0003, "discovery of %s took more than %s: %w", addressOf(e), s.cfg.DiscoveryTimeout, err)
	}
	return nil, &rest.Error{Status: http.StatusBadGateway, Message: fmt.Sprintf("discovery of %s: %v", addressOf(e), err)}
}

// respondRegistered responds with the result of a registration and additional notices.
func (s *Server) respondRegistered(c echo.Context, r metadata.Registered, more []rest.Notice) error {
	if r.Change == metadata.Unchanged {
		rest.ChangedNothing(c)
	}
	d, status := r.Deployment, http.StatusOK
	switch {
	case r.Change == metadata.Unchanged && rest.VersionOf(c) == 2:
		return errcode.New(errcode.META0004, "deployment %s has the address %s already", d.ID, d.Address())
	case r.Change == metadata.Created, rest.VersionOf(c) == 2:
		status = http.StatusCreated
	}
	defaults := s.cfg.Defaults()
	c.Response().Header().Set("Location", "deployments/"+string(d.ID))
	return rest.Respond(c, status, registeredView{
		ID: d.ID, Services: viewServices(d, defaults), MinProtocol: d.MinProtocol, MaxProtocol: d.MaxProtocol, SDKVersion: d.SDKVersion,
		Info: append(deploymentNotices(d, defaults), more...),
	})
}
