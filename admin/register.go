package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

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
	UseHTTP11         bool              `json:"use_http_11"`
	Force             *bool             `json:"force"`
	Breaking          bool              `json:"breaking"`
	DryRun            bool              `json:"dry_run"`
	AssumeRoleARN     *string           `json:"assume_role_arn"`
	Auth              json.RawMessage   `json:"auth"`
}

// registerDeployment discovers an endpoint and adds what it finds to the registry.
func (s *Server) registerDeployment(c echo.Context) error {
	var body registration
	if err := s.readJSON(c, &body); err != nil {
		return err
	}
	endpoint, err := body.endpoint()
	if err != nil {
		return err
	}
	// Version 2 replaces what it finds unless told otherwise.
	force := versionOf(c) == 2
	if body.Force != nil {
		force = *body.Force
	}
	ctx := c.Request().Context()
	if !force {
		known := s.registry.Schemas().Find(endpoint.URI, endpoint.AdditionalHeaders, s.cfg.RoutingHeaders)
		if len(known) > 0 {
			unchanged := metadata.Registered{Deployment: known[0], Change: metadata.Unchanged}
			if versionOf(c) == 2 {
				return s.answerRegistered(c, unchanged, nil)
			}
			return s.answerRegistered(c, unchanged, s.recheck(ctx, endpoint, known[0]))
		}
	}
	discovered, err := s.discover(ctx, endpoint)
	if err != nil {
		return err
	}
	registered, err := s.store(ctx, body.DryRun, metadata.Registration{
		Deployment: body.deployment(endpoint, discovered),
		Force:      force, Breaking: body.Breaking, RoutingHeaders: s.cfg.RoutingHeaders,
	})
	if err != nil {
		return err
	}
	if !body.DryRun {
		s.log.Info("deployment registered", "deployment_id", registered.Deployment.ID, "uri", endpoint.URI, "force", force)
	}
	return s.answerRegistered(c, registered, nil)
}

// store registers, or only plans to. Should the endpoint have been registered by
// somebody else since we looked, the result is unchanged.
func (s *Server) store(ctx context.Context, dryRun bool, r metadata.Registration) (metadata.Registered, error) {
	if dryRun {
		return s.registry.PlanDeployment(r)
	}
	return s.registry.RegisterDeployment(ctx, r)
}

// deployment joins what was discovered with what was asked for.
func (b *registration) deployment(e discovery.Request, discovered *metadata.Deployment) *metadata.Deployment {
	d := *discovered
	d.URI, d.HTTP11 = e.URI, d.HTTP11 || e.UseHTTP11
	d.AdditionalHeaders, d.Metadata = e.AdditionalHeaders, b.Metadata
	return &d
}

// discover asks the endpoint. A fault is the endpoint's, not ours: what has no
// code of its own is a bad gateway.
func (s *Server) discover(ctx context.Context, e discovery.Request) (*metadata.Deployment, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.DiscoveryTimeout)
	defer cancel()
	d, err := s.discoverer.Discover(ctx, e)
	if _, coded := errcode.Of(err); err == nil || coded {
		return d, err
	}
	if _, ok := errors.AsType[*discovery.InvalidError](err); ok {
		return nil, err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, errcode.New(errcode.META0003, "discovery of %s took more than %s: %w", e.URI, s.cfg.DiscoveryTimeout, err)
	}
	return nil, &failure{status: http.StatusBadGateway, message: fmt.Sprintf("discovery of %s: %v", e.URI, err)}
}

// recheck compares a known deployment with what its endpoint offers now, so that
// whoever registers it again is not left to wonder why nothing changed. It takes
// the time of one request, and never makes the registration fail.
func (s *Server) recheck(ctx context.Context, e discovery.Request, known *metadata.Deployment) []notice {
	ctx, cancel := context.WithTimeout(ctx, recheckTimeout)
	defer cancel()
	now, err := s.discoverer.Discover(ctx, e)
	if err != nil {
		remark := notice{Message: "the address is registered already and nothing was changed; whether its endpoint still offers the same could not be seen: "}
		if coded, ok := errors.AsType[*errcode.Error](err); ok {
			remark.Code, remark.Message = coded.Code, remark.Message+coded.Message
		} else {
			remark.Message += err.Error()
		}
		return []notice{remark}
	}
	differences := differences(known, now)
	if len(differences) == 0 {
		return nil
	}
	return []notice{{"", "the address is registered already and nothing was changed, but the endpoint now offers something else (" +
		differences + "); register with force to replace the deployment"}}
}

// answerRegistered tells the result, with further notices.
func (s *Server) answerRegistered(c echo.Context, r metadata.Registered, more []notice) error {
	d, status := r.Deployment, http.StatusOK
	switch {
	case r.Change == metadata.Unchanged && versionOf(c) == 2:
		return errcode.New(errcode.META0004, "deployment %s has the address %s already", d.ID, d.URI)
	case r.Change == metadata.Created, versionOf(c) == 2:
		status = http.StatusCreated
	}
	defaults := s.cfg.Defaults()
	c.Response().Header().Set("Location", "deployments/"+string(d.ID))
	return answer(c, status, registeredView{
		ID: d.ID, Services: viewServices(d, defaults), MinProtocol: d.MinProtocol, MaxProtocol: d.MaxProtocol, SDKVersion: d.SDKVersion,
		Info: append(deploymentNotices(d, defaults), more...),
	})
}

// differences names the services and handlers that only one of two deployments
// has, or that changed their type; empty if there are none.
func differences(before, now *metadata.Deployment) string {
	had, has := parts(before), parts(now)
	var list string
	for _, name := range slices.Sorted(maps.Keys(merged(had, has))) {
		var what string
		switch _, was := had[name]; {
		case !was:
			what = "new " + name
		case has[name] == "":
			what = "no " + name
		case has[name] != had[name]:
			what = name + " is " + has[name]
		default:
			continue
		}
		if list != "" {
			list += ", "
		}
		list += what
	}
	return list
}

// parts maps services and their handlers to their types.
func parts(d *metadata.Deployment) map[string]string {
	m := map[string]string{}
	for _, s := range d.Services {
		m[s.Name] = s.Type.String()
		for _, h := range s.Handlers {
			m[s.Name+"/"+h.Name] = fmt.Sprint("handler ", handlerType(h.Type))
		}
	}
	return m
}

func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
