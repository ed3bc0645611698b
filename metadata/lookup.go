package metadata

import (
	"fmt"

	"platform/internal/errcode"
	"platform/internal/ids"
)

// NotFoundError says which deployment, service or handler the registry lacks, or
// which node the cluster.
type NotFoundError struct {
	Deployment ids.Deployment // asked for by id, or empty
	Service    string         // asked for by name, or empty
	Handler    string         // empty if it is the service that is missing
	Node       uint32         // asked for by id, or 0
}

// Error names what is missing in the words that users see.
func (e *NotFoundError) Error() string {
	switch {
	case e.Node != 0:
		return fmt.Sprintf("The requested node %d does not exist", e.Node)
	case e.Handler != "":
		return fmt.Sprintf("The requested handler '%s' on service '%s' does not exist", e.Handler, e.Service)
	case e.Service != "":
		return fmt.Sprintf("The requested service '%s' does not exist", e.Service)
	}
	return fmt.Sprintf("The requested deployment '%s' does not exist", e.Deployment)
}

// Service is the service of that name in this deployment, nil if there is none.
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

// Latest is the deployment that serves new invocations of a service. The error
// carries RT0011.
func (s *Schemas) Latest(service string) (*Deployment, *Service, error) {
	latest := s.Services[service]
	if latest == nil {
		return nil, nil, errcode.New(errcode.RT0011, "no deployment found for service %s", service)
	}
	return s.Pinned(latest.Deployment, service)
}

// Pinned is a deployment that an invocation was pinned to, with its own revision
// of the service. The error carries RT0011.
func (s *Schemas) Pinned(id ids.Deployment, service string) (*Deployment, *Service, error) {
	d := s.Deployments[id]
	if d == nil {
		return nil, nil, errcode.New(errcode.RT0011, "deployment %s, which the invocation started on, is not registered any more", id)
	}
	revision := d.Service(service)
	if revision == nil {
		return nil, nil, errcode.New(errcode.RT0011, "deployment %s does not offer service %s any more", id, service)
	}
	return d, revision, nil
}
