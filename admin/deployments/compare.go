package deployments

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"platform/admin/rest"
	"platform/internal/errcode"
	"platform/invoker/discovery"
	"platform/metadata"
)

// compareTimeout limits the discovery request that a registration without effect makes to compare
// the endpoint with the registered deployment.
const compareTimeout = 2 * time.Second

// compareEndpoint compares a registered deployment with the current offer of its endpoint, so that the
// response to a repeated registration can explain why nothing changed. It takes one discovery
// request, and its failure is a notice, not an error.
func (s *Server) compareEndpoint(ctx context.Context, e discovery.Request, known *metadata.Deployment) []rest.Notice {
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	now, err := s.discoverer.Discover(ctx, e)
	if err != nil {
		n := rest.Notice{Message: "the address is already registered, and nothing was changed; its services could not be compared with the endpoint: "}
		if coded, ok := errors.AsType[*errcode.Error](err); ok {
			n.Code, n.Message = coded.Code, n.Message+coded.Message
		} else {
			n.Message += err.Error()
		}
		return []rest.Notice{n}
	}
	differences := differences(known, now)
	if len(differences) == 0 {
		return []rest.Notice{{Message: "the address is registered already and nothing was changed; its endpoint offers the same services and handlers, but their code " +
			"and schemas were not compared. If they changed, register the new code at an address of its own, or replace the deployment with force; " +
			"force with dry_run shows what would change"}}
	}
	return []rest.Notice{{Message: "the address is registered already and nothing was changed, but the endpoint now offers something else (" +
		differences + "); register with force to replace the deployment"}}
}

// maxNamedServices bounds the services that a notice names.
const maxNamedServices = 10

// superseded returns a notice about the services of a registered deployment whose new invocations go
// to a later one.
func superseded(schemas *metadata.Schemas, known *metadata.Deployment) []rest.Notice {
	var names []string
	for _, own := range known.Services {
		if latest := schemas.Services[own.Name]; latest != nil && latest.Deployment != known.ID {
			names = append(names, own.Name)
		}
	}
	if names == nil {
		return nil
	}
	slices.Sort(names)
	if more := len(names) - maxNamedServices; more > 0 {
		names = append(names[:maxNamedServices], fmt.Sprintf("%d more", more))
	}
	return []rest.Notice{{Message: fmt.Sprintf("new invocations of %s go to a deployment that was registered later; if the code at this address is the one that was registered, force makes it the latest again without a change for the invocations on it",
		strings.Join(names, ", "))}}
}

// ignoredFields returns a notice about the fields of a registration that differ from the registered
// ones and have no effect.
func ignoredFields(body *registration, e discovery.Request, known *metadata.Deployment) []rest.Notice {
	var fields []string
	if body.AdditionalHeaders != nil && !maps.Equal(e.AdditionalHeaders, known.AdditionalHeaders) {
		fields = append(fields, "additional_headers")
	}
	if body.Metadata != nil && !maps.Equal(body.Metadata, known.Metadata) {
		fields = append(fields, "metadata")
	}
	if body.UseHTTP11 != nil && *body.UseHTTP11 != known.HTTP11 {
		fields = append(fields, "use_http_11")
	}
	if body.AssumeRoleARN != nil && e.AssumeRoleARN != known.AssumeRoleARN {
		fields = append(fields, "assume_role_arn")
	}
	if fields == nil {
		return nil
	}
	return []rest.Notice{{Message: fmt.Sprintf("the address is registered already with other values of %s, which stay; register with force, or update the deployment, to change them",
		strings.Join(fields, ", "))}}
}

// differences describes the services and handlers that only one of two deployments has, or whose
// types differ; empty if there are none.
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

// parts maps the names of services and handlers to their types.
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
