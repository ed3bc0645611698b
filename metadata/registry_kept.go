package metadata

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"platform/internal/feature"
	pb "platform/proto/metadata"
)

// MaxKeptOptions is the number of services without a deployment whose options are kept. It is more
// than the usual number of services, so it bounds a client that registers and deletes ever new ones.
const MaxKeptOptions = 10_000

// ofOperator returns the options that only operators set; false if none are set.
func (o *Options) ofOperator() (*Options, bool) {
	return &Options{IngressAuth: o.IngressAuth, ForwardHeaders: o.ForwardHeaders}, o.IngressAuth != nil || o.ForwardHeaders != nil
}

// inherit sets the options of operators of a new revision of a service: to those of the latest one or, if there
// is none, those that were kept since the last deployment.
func (s *Service) inherit(from *Schemas) {
	options := from.Kept[s.Name]
	if latest := from.Services[s.Name]; latest != nil {
		options = &latest.Options
	}
	if options != nil {
		s.Options.IngressAuth, s.Options.ForwardHeaders = options.IngressAuth, options.ForwardHeaders
	}
}

// keepOptions prepares the replacement of a deployment by another one; either can be nil. What operators have
// set for the callers of a service is kept if it loses its last deployment, so that a deployment
// that is deleted and registered again does not open the service. It returns a rejection.
func (d *draft) keepOptions(old, now *Deployment) (rejection, err error) {
	if d.cluster.Level() < feature.Level4 {
		return nil, nil
	}
	kept, added := maps.Clone(d.schemas.Kept), []string(nil)
	if old != nil {
		for _, service := range old.Services {
			own, set := service.Options.ofOperator()
			if !set || now != nil && now.Service(service.Name) != nil || d.schemas.elsewhere(service.Name, old) {
				continue
			}
			if kept == nil {
				kept = map[string]*Options{}
			}
			kept[service.Name] = own
			added = append(added, service.Name)
		}
	}
	if len(added) > 0 && len(kept) > MaxKeptOptions {
		return &InvalidError{fmt.Sprintf("%s would be the last deployment of %s, whose settings of callers are kept, and those of %d services without a deployment are; register some of them again first",
			old.ID, strings.Join(added, ", "), MaxKeptOptions)}, nil
	}
	for _, name := range added {
		if err := d.put(tableKeptOptions, name, &pb.KeptOptions{Service: name, Options: optionsToProto(kept[name])}); err != nil {
			return nil, err
		}
	}
	if now != nil {
		for _, service := range now.Services {
			if kept[service.Name] != nil {
				delete(kept, service.Name)
				d.deleteRecord(tableKeptOptions, service.Name)
			}
		}
	}
	schemas := *d.schemas
	schemas.Kept = kept
	d.schemas = &schemas
	return nil, nil
}

// elsewhere reports whether a deployment other than one has a service.
func (s *Schemas) elsewhere(service string, other *Deployment) bool {
	if latest := s.Services[service]; latest == nil || latest.Deployment != other.ID {
		return latest != nil
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(s.Deployments)), func(d *Deployment) bool {
		return d.ID != other.ID && d.Service(service) != nil
	})
}
