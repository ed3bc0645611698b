package metadata

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"

	"platform/internal/errcode"
)

// Update is a request to change a deployment in place: its address, its connection options
// and, with Overwrite, its services. Invocations pinned to it continue at the new address.
type Update struct {
	// Deployment is the discovered deployment, with the ID of the deployment to update.
	// Labels, creation time and revisions are kept from the registry.
	Deployment *Deployment
	// Overwrite installs the discovered services even if they are incompatible. Otherwise
	// they must be compatible with those of the registry, which are kept.
	Overwrite bool
	// Verify returns an error if the deployment as it is now must not be changed, for example because another request has
	// changed it; nil permits any. It may be called several times. Below level 4, a change that another node requests at
	// the same moment is not noticed.
	Verify func(current *Deployment) error
}

// InvalidError describes why a change is invalid. Its text is stored if the change was rejected
// by apply.
type InvalidError struct{ Reason string }

// Error returns the reason.
func (e *InvalidError) Error() string { return e.Reason }

func prepareUpdate(u Update) (Update, error) {
	d, err := ordered(u.Deployment)
	u.Deployment = d
	return u, err
}

// PlanUpdate returns the result of an update for this view of the registry, without
// changing anything. The error can be a *NotFoundError, an *InvalidError, or have code
// META0016.
func (s *Schemas) PlanUpdate(u Update) (*Deployment, error) {
	old := s.Deployments[u.Deployment.ID]
	if old == nil {
		return nil, &NotFoundError{Deployment: u.Deployment.ID}
	}
	if old.Function() != u.Deployment.Function() {
		return nil, &InvalidError{fmt.Sprintf("deployment %s is %s and cannot become %s", old.ID, kind(old), kind(u.Deployment))}
	}
	planned := *u.Deployment
	planned.CreatedAt, planned.Metadata = old.CreatedAt, old.Metadata
	if u.Overwrite {
		planned.Services = s.overwritten(old, u.Deployment)
		return &planned, nil
	}
	if broken := incompatibilities(old, u.Deployment); len(broken) > 0 {
		return nil, errcode.New(errcode.META0016, "deployment %s cannot be updated in place: %s", old.ID, strings.Join(broken, "; "))
	}
	planned.Services = old.Services
	return &planned, nil
}

// overwritten returns the services that replace those of a deployment. An existing service
// keeps its revision, so that updating a draining deployment does not make it serve new
// invocations again; a new service gets a new revision.
func (s *Schemas) overwritten(old, now *Deployment) []*Service {
	services := make([]*Service, len(now.Services))
	for i, discovered := range now.Services {
		service := *discovered
		service.Deployment, service.Revision = old.ID, 1
		if had := old.Service(service.Name); had != nil {
			service.Revision = had.Revision
			service.Options.IngressAuth, service.Options.ForwardHeaders = had.Options.IngressAuth, had.Options.ForwardHeaders
		} else {
			if latest := s.Services[service.Name]; latest != nil {
				service.Revision = latest.Revision + 1
			}
			service.inherit(s)
		}
		services[i] = &service
	}
	return services
}

// incompatibilities lists, for users, the reasons why invocations that started on a
// deployment may be unable to continue on the new one; empty if there are none.
func incompatibilities(old, now *Deployment) []string {
	var broken []string
	if old.MinProtocol != now.MinProtocol || old.MaxProtocol != now.MaxProtocol {
		broken = append(broken, fmt.Sprintf("it speaks service protocol %d to %d, not %d to %d",
			now.MinProtocol, now.MaxProtocol, old.MinProtocol, old.MaxProtocol))
	}
	for _, service := range old.Services {
		offered := now.Service(service.Name)
		switch {
		case offered == nil:
			broken = append(broken, fmt.Sprintf("service %s is missing", service.Name))
			continue
		case offered.Type != service.Type:
			broken = append(broken, fmt.Sprintf("service %s is %s, not %s", service.Name, offered.Type, service.Type))
		}
		for _, h := range service.Handlers {
			if offered.Handler(h.Name) == nil {
				broken = append(broken, fmt.Sprintf("handler %s/%s is missing", service.Name, h.Name))
			}
		}
	}
	return broken
}

// applyUpdateDeployment returns the *Deployment.
func applyUpdateDeployment(d *draft, index uint64, cmd *updateDeployment) (outcome, error) {
	planned, err := d.schemas.PlanUpdate(cmd.Update)
	if err != nil {
		return outcome{rejection: err}, nil //nolint:nilerr // a rejection is a result that all replicas agree on
	}
	if len(cmd.expected) > 0 {
		current, err := d.schemas.Deployments[planned.ID].connection()
		if err != nil {
			return outcome{}, err
		}
		if !bytes.Equal(current, cmd.expected) {
			return outcome{rejection: &rejection{errDeploymentsChanged, errDeploymentsChanged.Error()}}, nil
		}
	}
	rejection, err := d.keepOptions(d.schemas.Deployments[planned.ID], planned)
	if err != nil || rejection != nil {
		return outcome{rejection: rejection}, err
	}
	return outcome{value: planned}, d.putDeployment(index, planned)
}

// connection identifies the address of a deployment and the options to reach it, as they are stored.
func (d *Deployment) connection() ([]byte, error) {
	record := deploymentToProto(&Deployment{
		URI: d.URI, HTTP11: d.HTTP11, ARN: d.ARN, AssumeRoleARN: d.AssumeRoleARN, AdditionalHeaders: d.AdditionalHeaders,
	})
	data, err := record.MarshalVT()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return sum[:], nil
}

func kind(d *Deployment) string {
	if d.Function() {
		return "a function"
	}
	return "an HTTP endpoint"
}
