package metadata

import (
	"context"
	"fmt"
	"time"

	"platform/internal/ids"
)

// groupLog orders the commands of the group.
type groupLog interface {
	// Propose waits until the command that data encodes has been applied on this
	// node and returns what the state machine made of it.
	Propose(ctx context.Context, data []byte) (outcome, error)
}

// source is what the store reads.
type source interface{ current() *view }

// Store is a node's replica of the metadata. All methods may be called from any
// goroutine.
//
// Readers get immutable views without waiting. Changes go through the group's log
// and return when they have been applied on this node, so that whoever made a
// change sees it in the next view; changes of deployments, services and rules return
// when all nodes that follow have applied them. A change that fails with anything but a refusal
// (a coded error, a *NotFoundError, an *InvalidError, or one of the errors that
// begin with ErrNode…, ErrLastNode and ErrVersionConflict) may still happen. Any
// replica takes changes; one that does not lead has them forwarded.
type Store struct {
	source source
	log    groupLog
	now    func() time.Time
	newID  func() [16]byte
	spread SpreadFunc // may be nil

	replica *replica // nil in tests that need no log
}

// Schemas is the current view of the registry.
func (s *Store) Schemas() *Schemas { return s.source.current().schemas }

// Watch is the current view of the registry, and a channel that is closed as soon
// as any metadata has changed since.
func (s *Store) Watch() (*Schemas, <-chan struct{}) {
	v := s.source.current()
	return v.schemas, v.changed
}

// Cluster is what the cluster was provisioned with; false as long as it was not.
func (s *Store) Cluster() (Cluster, bool) {
	c := s.source.current().cluster
	return c, c.ID != ""
}

// Nodes are the members of the cluster, sorted by name. The slice is shared.
func (s *Store) Nodes() []Node { return s.source.current().layout.Nodes }

// Layout is who belongs to the cluster and which node has what, and a channel that
// is closed as soon as that has changed since.
func (s *Store) Layout() (*Layout, <-chan struct{}) {
	v := s.source.current()
	return v.layout, v.moved
}

// RegisterDeployment adds what discovery found to the registry. The result holds
// the stored deployment; it is never to be changed.
func (s *Store) RegisterDeployment(ctx context.Context, r Registration) (Registered, error) {
	prepared, err := s.prepare(r)
	if err != nil {
		return Registered{}, err
	}
	return proposeToAll[Registered](ctx, s, &registerDeployment{prepared})
}

// PlanDeployment checks a registration and tells what it would result in, without
// storing anything.
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

// UpdateDeployment changes a deployment in place. The error can be a *NotFoundError,
// an *InvalidError, or carry META0016. The result is never to be changed.
func (s *Store) UpdateDeployment(ctx context.Context, u Update) (*Deployment, error) {
	prepared, err := prepareUpdate(u)
	if err != nil {
		return nil, err
	}
	return proposeToAll[*Deployment](ctx, s, &updateDeployment{prepared})
}

// PlanUpdate checks an update and tells what it would result in, without storing
// anything.
func (s *Store) PlanUpdate(u Update) (*Deployment, error) {
	prepared, err := prepareUpdate(u)
	if err != nil {
		return nil, err
	}
	return s.Schemas().PlanUpdate(prepared)
}

// ModifyService sets those options of the latest revision of a service that are not
// nil, until its next revision. The error can be a *NotFoundError or an
// *InvalidError. The result is never to be changed.
func (s *Store) ModifyService(ctx context.Context, name string, options Options) (*Service, error) {
	return proposeToAll[*Service](ctx, s, &modifyService{name, options})
}

// propose sends a command through the log and takes its outcome apart. It fails with a
// *feature.Error when the cluster's feature level does not include the command.
func propose[T any](ctx context.Context, s *Store, cmd command) (result T, err error) {
	if err := s.mayPropose(cmd); err != nil {
		return result, fmt.Errorf("change metadata: %w", err)
	}
	data, err := encodeEntry(header{at: s.now(), request: newRequestID()}, cmd)
	if err != nil {
		return result, err
	}
	o, err := s.log.Propose(ctx, data)
	if err != nil {
		return result, fmt.Errorf("change metadata: %w", err)
	}
	if o.refusal != nil {
		return result, o.refusal
	}
	result, _ = o.value.(T)
	return result, nil
}

// SpreadFunc waits until the other nodes have applied the log up to index, or for as
// long as those that do not answer are worth.
type SpreadFunc func(ctx context.Context, index uint64)

// proposeToAll is propose for what callers of the ingress notice: someone who
// registers a service here may call it on any node.
func proposeToAll[T any](ctx context.Context, s *Store, cmd command) (T, error) {
	result, err := propose[T](ctx, s, cmd)
	if err == nil && s.spread != nil {
		s.spread(ctx, s.AppliedIndex())
	}
	return result, err
}

// Follow waits until this node has applied the log up to index.
func (s *Store) Follow(ctx context.Context, index uint64) error {
	return s.replica.fsm.await(ctx, index)
}
