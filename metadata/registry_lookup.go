package metadata

import (
	"fmt"

	"platform/internal/errcode"
	"platform/internal/ids"
)

// NotFoundError means that a deployment, service, handler or node does not exist.
type NotFoundError struct {
	Deployment ids.Deployment // requested by ID, or empty
	Service    string         // requested by name, or empty
	Handler    string         // empty if the service is missing
	Node       uint32         // requested by ID, or 0
}

// Error returns the message for users.
func (e *NotFoundError) Error() string {
	switch {
	case e.Node != 0:
		return fmt.Sprintf("The requested node %s does not exist", ids.Node(e.Node))
	case e.Handler != "":
		return fmt.Sprintf("The requested handler '%s' on service '%s' does not exist", e.Handler, e.Service)
	case e.Service != "":
		return fmt.Sprintf("The requested service '%s' does not exist", e.Service)
	}
	return fmt.Sprintf("The requested deployment '%s' does not exist", e.Deployment)
}

// Service returns the service with that name in this deployment, nil if there is none.
func (d *Deployment) Service(name string) *Service {
	for _, s := range d.Services {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Resolve finds a handler of the latest revision of a service. The error is a
// *NotFoundError.
func (s *Schemas) Resolve(service, handler string) (*Service, *Handler, error) {
	latest := s.Services[service]
	if latest == nil {
		return nil, nil, &NotFoundError{Service: service}
	}
	h := latest.Handler(handler)
	if h == nil {
		return nil, nil, &NotFoundError{Service: service, Handler: handler}
	}
	return latest, h, nil
}

// Latest returns the deployment that serves new invocations of a service. The error is that of
// Pinned.
func (s *Schemas) Latest(service string) (*Deployment, *Service, error) {
	latest := s.Services[service]
	if latest == nil {
		return nil, nil, errcode.New(errcode.RT0011, "no deployment found for service %s", service)
	}
	return s.Pinned(latest.Deployment, service)
}

// Pinned returns a deployment to which an invocation was pinned, with its revision of the
// service. The error has code RT0011, or META0020 if its headers cannot be decrypted.
func (s *Schemas) Pinned(id ids.Deployment, service string) (*Deployment, *Service, error) {
	d := s.Deployments[id]
	if d == nil {
		return nil, nil, errcode.New(errcode.RT0011, "deployment %s, which the invocation started on, is no longer registered", id)
	}
	revision := d.Service(service)
	if revision == nil {
		return nil, nil, errcode.New(errcode.RT0011, "deployment %s no longer offers service %s", id, service)
	}
	if d.Unreadable != nil { // without them the service might reject the request, or trust it
		return nil, nil, d.Unreadable
	}
	return d, revision, nil
}
