package metadata

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"platform/internal/errcode"
)

// Registration is a request to add a discovered deployment to the registry.
type Registration struct {
	// Deployment is the discovered deployment. Its ID is used if the address is new; an
	// empty one means a new ID. Creation time, revisions and the services' deployment are
	// assigned by the registry.
	Deployment *Deployment
	// Force replaces the deployment at the same address and implies Breaking.
	Force bool
	// Breaking permits services to change their type.
	Breaking bool
	// RoutingHeaders are the names, in lower case, of additional headers that distinguish
	// deployments with the same URI.
	RoutingHeaders []string
	// Limit is how many deployments there may be; 0: any number. Replicas apply the limit of the
	// request, since the configurations of nodes may differ.
	Limit int
}

// Change is the effect of a registration.
type Change uint8

// The possible changes.
const (
	Created   Change = iota // the address was new
	Unchanged               // the address was known and Force was not set: nothing happened
	Replaced                // the record at that address was replaced as a whole, keeping its ID
)

// Registered is the result of a registration.
type Registered struct {
	Deployment *Deployment
	Change     Change
}

// Find returns the deployments at a registration's address, a URI or an ARN. Several can
// share an address after an update in place.
func (s *Schemas) Find(address string, headers map[string]string, routingHeaders []string) []*Deployment {
	var found []*Deployment
	for _, id := range slices.Sorted(maps.Keys(s.Deployments)) {
		if d := s.Deployments[id]; d.Address() == address && sameRoute(d.AdditionalHeaders, headers, routingHeaders) {
			found = append(found, d)
		}
	}
	return found
}

// Plan returns the result of a registration for this view of the registry, without changing
// anything. The error has a code if the catalogue has one.
func (s *Schemas) Plan(r Registration, at time.Time) (Registered, error) {
	planned := *r.Deployment
	planned.CreatedAt = at
	change := Created
	same := s.Find(planned.Address(), planned.AdditionalHeaders, r.RoutingHeaders)
	switch {
	case len(same) > 0 && !r.Force:
		return Registered{Deployment: same[0], Change: Unchanged}, nil
	case len(same) > 1:
		return Registered{}, errcode.New(errcode.META0017,
			"%d deployments share the address %s (%s); delete all but one first", len(same), planned.Address(), idList(same))
	case planned.sealedFor() && len(same) == 1 && same[0].ID != planned.ID,
		planned.sealedFor() && len(same) == 0 && s.Deployments[planned.ID] != nil:
		return Registered{}, &rejection{errDeploymentsChanged, errDeploymentsChanged.Error()}
	case len(same) == 1:
		planned.ID, change = same[0].ID, Replaced
	case s.Deployments[planned.ID] != nil:
		return Registered{}, errcode.New(errcode.META0004, "deployment %s has another address", planned.ID)
	}
	if n := len(s.Deployments); change == Created && r.Limit > 0 && n >= r.Limit {
		return Registered{}, errcode.New(errcode.META0021,
			"there are %d deployments, and admin.deployments-limit is %d; remove drained ones with `platform deployments prune`, or raise the limit", n, r.Limit)
	}
	planned.Services = make([]*Service, len(r.Deployment.Services))
	for i, discovered := range r.Deployment.Services {
		service := *discovered
		service.Deployment, service.Revision = planned.ID, 1
		if latest := s.Services[service.Name]; latest != nil {
			if latest.Type != service.Type && !r.Breaking && !r.Force {
				return Registered{}, errcode.New(errcode.META0006,
					"service %s was registered as %s and cannot become %s", service.Name, latest.Type, service.Type)
			}
			service.Revision = latest.Revision + 1
		}
		service.inherit(s) // a deployment must not open a service
		planned.Services[i] = &service
	}
	return Registered{Deployment: &planned, Change: change}, nil
}

// applyRegisterDeployment returns a Registered.
func applyRegisterDeployment(d *draft, index uint64, at time.Time, cmd *registerDeployment) (outcome, error) {
	plan, err := d.schemas.Plan(cmd.Registration, at)
	if err != nil {
		return outcome{rejection: err}, nil //nolint:nilerr // a rejection is a result that all replicas agree on
	}
	if plan.Change == Unchanged {
		return outcome{value: plan}, nil
	}
	rejection, err := d.keepOptions(d.schemas.Deployments[plan.Deployment.ID], plan.Deployment)
	if err != nil || rejection != nil {
		return outcome{rejection: rejection}, err
	}
	return outcome{value: plan}, d.putDeployment(index, plan.Deployment)
}

// applyDeleteDeployment returns nothing. Services whose latest revision is deleted fall
// back to the newest revision of another deployment; without one, what operators have set for
// their callers is kept.
func applyDeleteDeployment(d *draft, index uint64, cmd *deleteDeployment) (outcome, error) {
	old := d.schemas.Deployments[cmd.id]
	if old == nil {
		return outcome{rejection: &NotFoundError{Deployment: cmd.id}}, nil
	}
	if rejection, err := d.keepOptions(old, nil); err != nil || rejection != nil {
		return outcome{rejection: rejection}, err
	}
	d.deleteDeployment(index, cmd.id)
	return outcome{}, nil
}

// sameRoute compares the values of the routing headers, whose names are lower case, in two
// sets of headers.
func sameRoute(a, b map[string]string, routingHeaders []string) bool {
	for _, name := range routingHeaders {
		valueA, inA := headerValue(a, name)
		valueB, inB := headerValue(b, name)
		if valueA != valueB || inA != inB {
			return false
		}
	}
	return true
}

func headerValue(headers map[string]string, name string) (string, bool) {
	for _, key := range slices.Sorted(maps.Keys(headers)) {
		if strings.EqualFold(key, name) {
			return headers[key], true
		}
	}
	return "", false
}

func idList(deployments []*Deployment) string {
	var list []string
	for _, d := range deployments {
		list = append(list, string(d.ID))
	}
	return strings.Join(list, ", ")
}

// String returns the name that users see.
func (t ServiceType) String() string {
	switch t {
	case PlainService:
		return "Service"
	case VirtualObject:
		return "VirtualObject"
	case Workflow:
		return "Workflow"
	}
	return fmt.Sprintf("ServiceType(%d)", uint8(t))
}

// String returns the name that users see.
func (e OnMaxAttempts) String() string {
	if e == Kill {
		return "Kill"
	}
	return "Pause"
}
