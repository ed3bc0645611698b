package metadata

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"platform/internal/errcode"
	"platform/internal/feature"
	"platform/internal/ids"
)

// prepare validates what does not depend on the registry, and normalizes a registration for
// proposing: with an ID, and sorted.
func (s *Store) prepare(r Registration) (Registration, error) {
	if r.Deployment == nil {
		return r, errors.New("register deployment: there is none")
	}
	d, err := ordered(r.Deployment)
	if err != nil {
		return r, err
	}
	if d.ID == "" {
		d.ID = ids.NewDeployment(s.newID())
	}
	r.Deployment = d
	if s.FeatureLevel() < feature.Level4 {
		r.Limit = 0
	}
	r.RoutingHeaders = slices.Clone(r.RoutingHeaders)
	for i, name := range r.RoutingHeaders {
		r.RoutingHeaders[i] = strings.ToLower(name)
	}
	return r, nil
}

// ordered returns a validated copy of a discovered deployment, with services and handlers
// sorted by name.
func ordered(discovered *Deployment) (*Deployment, error) {
	d := *discovered
	if (d.URI == "") == (d.ARN == "") {
		return nil, errors.New("a deployment has either a URI or an ARN")
	}
	d.Services = slices.SortedFunc(slices.Values(d.Services), func(a, b *Service) int { return cmp.Compare(a.Name, b.Name) })
	for i, service := range d.Services {
		if err := CheckServiceName(service.Name); err != nil {
			return nil, err
		}
		if i > 0 && d.Services[i-1].Name == service.Name {
			return nil, errcode.New(errcode.META0013, "the endpoint announces service %s twice", service.Name)
		}
		sorted := *service
		sorted.Handlers = slices.SortedFunc(slices.Values(service.Handlers), func(a, b *Handler) int { return cmp.Compare(a.Name, b.Name) })
		for j, handler := range sorted.Handlers {
			if j > 0 && sorted.Handlers[j-1].Name == handler.Name {
				return nil, errcode.New(errcode.META0013, "service %s announces handler %s twice", service.Name, handler.Name)
			}
		}
		d.Services[i] = &sorted
	}
	return &d, nil
}

// CheckServiceName rejects names that are reserved because paths of the ingress start with
// them. The error has code META0005.
func CheckServiceName(name string) error {
	lower := strings.ToLower(name)
	if strings.HasPrefix(lower, "platform") || strings.HasPrefix(lower, "restate") || lower == "openapi" {
		return errcode.New(errcode.META0005, "the service name %q is reserved", name).WithStatus(http.StatusBadRequest)
	}
	return nil
}

// formatID formats an ID of newID.
func formatID(id [16]byte) string { return ulid.ULID(id).String() }
