package metadata

import (
	"context"
	"fmt"
	"time"

	"platform/internal/feature"
	"platform/internal/ids"
)

// groupLog orders the commands of the group.
type groupLog interface {
	// Propose waits until the command encoded in data has been applied on this node and
	// returns its outcome.
	Propose(ctx context.Context, data []byte) (outcome, error)
}

// source provides the current view.
type source interface{ current() *view }

// Store is a node's replica of the metadata. All methods are safe for concurrent use.
//
// Readers get immutable views without waiting. Changes go through the group's log and
// return when they have been applied on this node, so that the caller sees them in the next
// view; changes of deployments, services and rules return when all nodes that keep up have
// applied them. A change that fails with anything but a rejection (a coded error, a
// *NotFoundError, an *InvalidError, ErrLastNode, ErrVersionConflict, or an error whose name
// starts with ErrNode) may still take effect. Any replica accepts changes; one that does
// not lead forwards them.
type Store struct {
	source     source
	log        groupLog
	now        func() time.Time
	newID      func() [16]byte
	awaitNodes AwaitNodesFunc  // may be nil
	routing    map[string]bool // names of routing headers, in lower case

	replica *replica // nil in tests that need no log
}

// Schemas returns the current view of the registry.
func (s *Store) Schemas() *Schemas { return s.source.current().readable.schemas }

// Watch returns the current view of the registry, and a channel that is closed when any
// metadata has changed since.
func (s *Store) Watch() (*Schemas, <-chan struct{}) {
	v := s.source.current()
	return v.readable.schemas, v.changed
}

// Cluster returns the cluster record; false before the cluster is provisioned.
func (s *Store) Cluster() (Cluster, bool) {
	c := s.source.current().cluster
	return c, c.ID != ""
}

// Nodes returns the members of the cluster, sorted by name. The slice is shared.
func (s *Store) Nodes() []Node { return s.source.current().layout.Nodes }

// Layout returns the members of the cluster and the partition table, and a channel that is
// closed when they have changed since.
func (s *Store) Layout() (*Layout, <-chan struct{}) {
	v := s.source.current()
	return v.layout, v.layoutChanged
}

// RegisterDeployment adds a discovered deployment to the registry. The result contains the
// stored deployment, which must not be modified. The error can have code META0020: its headers
// cannot be encrypted.
func (s *Store) RegisterDeployment(ctx context.Context, r Registration) (Registered, error) {
	prepared, err := s.prepare(r)
	if err != nil {
		return Registered{}, err
	}
	registered, err := retryConflict(ctx, errDeploymentsChanged, func() (Registered, error) {
		sealed, err := s.sealRegistration(prepared)
		if err != nil {
			return Registered{}, err
		}
		return proposeToAll[Registered](ctx, s, &registerDeployment{sealed})
	})
	if err == nil {
		registered.Deployment = openDeployment(s.source.current().keys, registered.Deployment)
	}
	return registered, err
}

// PlanDeployment validates a registration and returns its result without storing anything.
func (s *Store) PlanDeployment(r Registration) (Registered, error) {
	prepared, err := s.prepare(r)
	if err != nil {
		return Registered{}, err
	}
	return s.Schemas().Plan(prepared, s.now().Truncate(time.Millisecond).UTC())
}

// DeleteDeployment removes a deployment. The error can be a *NotFoundError.
func (s *Store) DeleteDeployment(ctx context.Context, id ids.Deployment) error {
	_, err := proposeToAll[any](ctx, s, &deleteDeployment{id})
	return err
}

// UpdateDeployment changes a deployment in place. The error can be a *NotFoundError, an
// *InvalidError, or have code META0016. The result must not be modified.
func (s *Store) UpdateDeployment(ctx context.Context, u Update) (*Deployment, error) {
	prepared, err := prepareUpdate(u)
	if err != nil {
		return nil, err
	}
	d := *prepared.Deployment
	if d.AdditionalHeaders, err = s.seal(deploymentSecrets, string(d.ID), d.AdditionalHeaders, nil); err != nil {
		return nil, err
	}
	prepared.Deployment = &d
	updated, err := retryConflict(ctx, errDeploymentsChanged, func() (*Deployment, error) {
		expected, err := s.verifyUpdate(prepared)
		if err != nil {
			return nil, err
		}
		return proposeToAll[*Deployment](ctx, s, &updateDeployment{prepared, expected})
	})
	if err != nil {
		return nil, err
	}
	return openDeployment(s.source.current().keys, updated), nil
}

// verifyUpdate calls u.Verify, and returns what identifies the state that it has permitted to change.
func (s *Store) verifyUpdate(u Update) (expected []byte, err error) {
	view := s.source.current()
	current := view.schemas.Deployments[u.Deployment.ID]
	if u.Verify == nil || current == nil {
		return nil, nil
	}
	if err := u.Verify(openDeployment(view.keys, current)); err != nil {
		return nil, err
	}
	if view.cluster.Level() < feature.Level4 {
		return nil, nil
	}
	return current.connection()
}

// PlanUpdate validates an update and returns its result without storing anything.
func (s *Store) PlanUpdate(u Update) (*Deployment, error) {
	prepared, err := prepareUpdate(u)
	if err != nil {
		return nil, err
	}
	if _, err := s.verifyUpdate(prepared); err != nil {
		return nil, err
	}
	return s.Schemas().PlanUpdate(prepared)
}

// ModifyService sets the non-nil options on the latest revision of a service, until its
// next revision. The error can be a *NotFoundError or an *InvalidError. The result must not
// be modified.
func (s *Store) ModifyService(ctx context.Context, name string, options Options) (*Service, error) {
	return proposeToAll[*Service](ctx, s, &modifyService{name, options})
}

// propose sends a command through the log and unpacks its outcome. It fails with a
// *feature.Error if the cluster's feature level does not include the command.
func propose[T any](ctx context.Context, s *Store, cmd command) (result T, err error) {
	if err := s.mayPropose(cmd); err != nil {
		return result, fmt.Errorf("change metadata: %w", err)
	}
	data, err := encodeEntry(header{at: s.now(), request: newRequestID(), action: s.actionOf(ctx, cmd)}, cmd)
	if err != nil {
		return result, err
	}
	o, err := s.log.Propose(ctx, data)
	if err != nil {
		return result, fmt.Errorf("change metadata: %w", err)
	}
	if o.rejection != nil {
		notRecorded(ctx)
		return result, o.rejection
	}
	result, _ = o.value.(T)
	return result, nil
}

// AwaitNodesFunc waits until the other nodes have applied the log up to index, or until a
// timeout for those that do not respond.
type AwaitNodesFunc func(ctx context.Context, index uint64)

// proposeToAll is propose for changes that clients of the ingress notice: after registering
// a service here, a client may call it on any node.
func proposeToAll[T any](ctx context.Context, s *Store, cmd command) (T, error) {
	result, err := propose[T](ctx, s, cmd)
	if err == nil {
		s.awaitAll(ctx)
	}
	return result, err
}

// awaitAll waits until all nodes that keep up have applied what this node has applied.
func (s *Store) awaitAll(ctx context.Context) {
	if s.awaitNodes != nil {
		s.awaitNodes(ctx, s.AppliedIndex())
	}
}

// Follow waits until this node has applied the log up to index.
func (s *Store) Follow(ctx context.Context, index uint64) error {
	return s.replica.fsm.await(ctx, index)
}
