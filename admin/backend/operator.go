package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"platform/admin"
	"platform/admin/rest"
	"platform/flowcontrol"
	"platform/internal/cluster/routing"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/version"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
)

// operator performs the operations of operators on invocations of any partition.
type operator struct {
	router   *routing.Router
	schemas  func() *metadata.Schemas
	level    func() feature.Level
	protocol protocol.Range // supported service protocol versions
}

var _ admin.Operator = (*operator)(nil)

// Cancel implements admin.Operator.
func (o *operator) Cancel(ctx context.Context, id ids.Invocation) (started bool, err error) {
	out, err := o.operate(ctx, id, cancelOf(id, routing.NewRequest()), machine.Ended)
	return out.Status != machine.Completed, err
}

// CancelOnce implements JobOperator.
func (o *operator) CancelOnce(ctx context.Context, id ids.Invocation, request uint64) error {
	_, err := o.operate(ctx, id, cancelOf(id, request), machine.Ended)
	return err
}

// Kill implements admin.Operator.
func (o *operator) Kill(ctx context.Context, id ids.Invocation) error {
	_, err := o.operate(ctx, id, &machine.Kill{Target: id}, machine.Ended)
	return err
}

// Pause implements admin.Operator.
func (o *operator) Pause(ctx context.Context, id ids.Invocation, r rest.PauseRequest) (already bool, err error) {
	if err := o.allowReason(r); err != nil {
		return false, err
	}
	if o.level() < feature.Level3 {
		r.By = ""
	}
	out, err := o.operate(ctx, id, &machine.Pause{Target: id, By: r.By, Reason: r.Reason}, machine.Existing)
	if out.Code == machine.NotStarted {
		err = reject(http.StatusConflict, "the invocation has not started yet: it is %s; only started invocations can be paused", out.Status)
	}
	return out.Code == machine.Existing, err
}

// allowReason rejects a pause with a reason that the cluster cannot store yet.
func (o *operator) allowReason(r rest.PauseRequest) error {
	if r.Reason == "" {
		return nil
	}
	return feature.Require(o.level(), feature.Level4, "a pause with a reason")
}

// Resume implements admin.Operator.
func (o *operator) Resume(ctx context.Context, id ids.Invocation, on admin.DeploymentChoice) error {
	repin, err := o.repin(ctx, id, on, admin.Keep)
	if err != nil {
		return err
	}
	if repin == nil && on.Which == admin.Latest {
		return o.resumeUnpinned(ctx, id)
	}
	out, err := o.operate(ctx, id, &machine.Resume{Target: id, Repin: repin}, machine.OK)
	switch {
	case err == nil || repin == nil:
		return err
	case out.Code == machine.Running:
		inv, findErr := o.router.Find(ctx, id)
		if findErr != nil {
			return operatorError(findErr)
		}
		if inv.Pausing || inv.Status == machine.Paused { // the pause took effect meanwhile
			return o.resumePaused(ctx, id, repin)
		}
		if waiting, findErr := o.backingOff(ctx, id); findErr != nil || !waiting {
			return errors.Join(findErr, err)
		}
		err = o.resumeElsewhere(ctx, id, repin)
	}
	return err
}

// resumeUnpinned resumes an invocation that is not pinned to a deployment, so that its next
// attempt runs on the latest one. An open attempt on another deployment would continue there.
func (o *operator) resumeUnpinned(ctx context.Context, id ids.Invocation) error {
	r, _, err := o.router.Owner(id).Inspect(ctx, id, false)
	if err != nil {
		return operatorError(err)
	}
	inv := r.Invocation
	switch {
	case inv.Pausing:
		return o.resumePaused(ctx, id, nil)
	case inv.Status == machine.Invoked && r.Attempts != nil && r.Attempts.InFlight && r.Attempts.Deployment != o.latest(&inv.Target):
		return reject(http.StatusConflict, "the deployment cannot be changed while the invocation is running; pause it first")
	}
	_, err = o.operate(ctx, id, &machine.Resume{Target: id}, machine.OK)
	return err
}

// latest returns the latest deployment of a target's service; "" if none serves it.
func (o *operator) latest(target *machine.Target) ids.Deployment {
	if service := o.schemas().Services[target.Service]; service != nil {
		return service.Deployment
	}
	return ""
}

// resumePaused resumes an invocation on another deployment once the pause that an operator has
// requested takes effect. On failure the pause remains.
func (o *operator) resumePaused(ctx context.Context, id ids.Invocation, repin *machine.Repin) error {
	paused, err := o.awaitPaused(ctx, id)
	switch {
	case err != nil:
		return err
	case !paused:
		return reject(http.StatusConflict, "the pause was requested and has not taken effect: the handler has not finished its current step; repeat the command once the invocation is paused")
	}
	_, err = o.operate(ctx, id, &machine.Resume{Target: id, Repin: repin}, machine.OK)
	return err
}

// backingOff reports whether an invocation waits for its next attempt, so that no attempt is
// open.
func (o *operator) backingOff(ctx context.Context, id ids.Invocation) (bool, error) {
	r, _, err := o.router.Owner(id).Inspect(ctx, id, false)
	if err != nil {
		return false, operatorError(err)
	}
	return r.Attempts != nil && !r.Attempts.InFlight && r.Attempts.RetryCount > 0, nil
}

const (
	// repinTimeout limits the wait until an invocation is paused.
	repinTimeout = 5 * time.Second
	repinPause   = 5 * time.Millisecond
)

// resumeElsewhere pauses an invocation that is backing off and resumes it on another deployment.
// On failure it continues where it was, or stays paused if another operator has paused it.
func (o *operator) resumeElsewhere(ctx context.Context, id ids.Invocation, repin *machine.Repin) error {
	pause := &machine.Pause{Target: id}
	if o.level() >= feature.Level4 {
		pause.Repin = repin.Deployment
	}
	if _, err := o.operate(ctx, id, pause, machine.Existing); err != nil {
		return err
	}
	paused, err := o.awaitPaused(ctx, id)
	if err == nil && !paused {
		err = reject(http.StatusConflict, "an attempt of the invocation has started meanwhile; pause it first")
	}
	if err == nil {
		_, err = o.operate(ctx, id, &machine.Resume{Target: id, Repin: repin}, machine.OK)
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, o.withdraw(context.WithoutCancel(ctx), pause))
}

// withdraw ends the pause of resumeElsewhere, but not one that another operator has requested.
func (o *operator) withdraw(ctx context.Context, pause *machine.Pause) error {
	if pause.Repin != "" {
		inv, err := o.router.Find(ctx, pause.Target)
		if err != nil {
			return operatorError(err)
		}
		if p := inv.LastPause; p == nil || p.Cause != machine.BeforeRepin {
			return nil
		}
	}
	_, err := o.operate(ctx, pause.Target, &machine.Resume{Target: pause.Target}, machine.OK)
	return err
}

// awaitPaused waits until a requested pause takes effect, up to the timeout.
func (o *operator) awaitPaused(ctx context.Context, id ids.Invocation) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, repinTimeout)
	defer cancel()
	for {
		inv, err := o.router.Find(ctx, id)
		switch {
		case err != nil && ctx.Err() != nil:
			return false, nil
		case err != nil:
			return false, operatorError(err)
		case inv.Status == machine.Paused:
			return true, nil
		case inv.Status == machine.Completed:
			return false, alreadyCompleted()
		}
		select {
		case <-time.After(repinPause):
		case <-ctx.Done():
			return false, nil
		}
	}
}

// Purge implements admin.Operator.
func (o *operator) Purge(ctx context.Context, id ids.Invocation) error {
	_, err := o.operate(ctx, id, &machine.Purge{Target: id}, machine.NotFound)
	return err
}

// PurgeJournal implements admin.Operator.
func (o *operator) PurgeJournal(ctx context.Context, id ids.Invocation) error {
	_, err := o.operate(ctx, id, &machine.Purge{Target: id, Journal: true}, machine.OK)
	return err
}

// Restart implements admin.Operator.
func (o *operator) Restart(ctx context.Context, id ids.Invocation, from uint32, on admin.DeploymentChoice) (ids.Invocation, error) {
	return o.restart(ctx, id, newUnique(), from, on)
}

// RestartOnce implements JobOperator.
func (o *operator) RestartOnce(ctx context.Context, id ids.Invocation, unique [16]byte, on admin.DeploymentChoice) (ids.Invocation, error) {
	return o.restart(ctx, id, unique, 0, on)
}

func (o *operator) restart(ctx context.Context, id ids.Invocation, unique [16]byte, from uint32, on admin.DeploymentChoice) (ids.Invocation, error) {
	which := cmp.Or(on.Which, admin.Latest)
	c := &machine.Restart{
		Target: id, New: ids.NewInvocation(id.PartitionKey(), unique), From: from, Keep: which == admin.Keep,
		ServerVersion: version.Version(),
	}
	if which == admin.ThisOne || which == admin.Latest && from > 0 {
		var err error
		if c.Repin, err = o.repin(ctx, id, on, admin.Latest); err != nil {
			return ids.Invocation{}, err
		}
	}
	_, err := o.operate(ctx, id, c, machine.OK)
	return c.New, err
}

// PauseQueue implements admin.Operator.
func (o *operator) PauseQueue(ctx context.Context, id ids.VQueue, r rest.PauseRequest) error {
	if err := o.allowReason(r); err != nil {
		return err
	}
	if o.level() < feature.Level4 {
		r.By = ""
	}
	_, err := o.operate(ctx, ids.Invocation(id), &machine.PauseQueue{ID: id, Paused: true, By: r.By, Reason: r.Reason}, machine.OK)
	return err
}

// ResumeQueue implements admin.Operator.
func (o *operator) ResumeQueue(ctx context.Context, id ids.VQueue) error {
	_, err := o.operate(ctx, ids.Invocation(id), &machine.PauseQueue{ID: id}, machine.OK)
	return err
}

// PauseScope implements admin.Operator.
func (o *operator) PauseScope(ctx context.Context, scope string, r rest.PauseRequest) error {
	return o.switchScope(ctx, &machine.PauseQueue{Queue: flowcontrol.QueueKey{Scope: scope}, Paused: true, By: r.By, Reason: r.Reason})
}

// ResumeScope implements admin.Operator.
func (o *operator) ResumeScope(ctx context.Context, scope string) error {
	return o.switchScope(ctx, &machine.PauseQueue{Queue: flowcontrol.QueueKey{Scope: scope}})
}

func (o *operator) switchScope(ctx context.Context, c *machine.PauseQueue) error {
	if err := feature.Require(o.level(), feature.Level4, "a pause of a scope"); err != nil {
		return err
	}
	_, err := o.operate(ctx, ids.NewInvocation(ids.Route(c.Queue.Scope, ""), [16]byte{}), c, machine.OK)
	return err
}

// repin resolves the choice of a deployment; nil keeps the current one.
func (o *operator) repin(ctx context.Context, id ids.Invocation, on admin.DeploymentChoice, usual admin.Which) (*machine.Repin, error) {
	on.Which = cmp.Or(on.Which, usual)
	if on.Which == admin.Keep {
		return nil, nil
	}
	inv, err := o.router.Find(ctx, id)
	if err != nil {
		return nil, operatorError(err)
	}
	if on.Which == admin.Latest && usual == admin.Keep && inv.Pin == (machine.Pin{}) {
		return nil, nil // its next attempt runs on the latest deployment anyway
	}
	schemas, target := o.schemas(), &inv.Target
	if on.Which == admin.Latest {
		service := schemas.Services[target.Service]
		if service == nil {
			return nil, reject(http.StatusBadRequest, "no deployment offers the service '%s'; register one", target.Service)
		}
		on.ID = service.Deployment
	}
	d := schemas.Deployments[on.ID]
	if d == nil {
		return nil, reject(http.StatusBadRequest, "deployment '%s' is not registered; 'platform deployments list' lists registered ones", on.ID)
	}
	if service := d.Service(target.Service); service == nil || service.Handler(target.Handler) == nil {
		return nil, reject(http.StatusBadRequest, "deployment '%s' does not offer %s/%s", on.ID, target.Service, target.Handler)
	}
	lowest, highest := max(d.MinProtocol, o.protocol.Min), min(d.MaxProtocol, o.protocol.Max)
	if lowest > highest {
		return nil, reject(http.StatusBadRequest, "deployment '%s' and the server have no service protocol version in common", on.ID)
	}
	return &machine.Repin{Deployment: d.ID, Min: uint8(lowest), Max: uint8(highest)}, nil
}

// operate proposes an operation until its outcome is known. A repetition may find the effect of an
// earlier attempt whose response was lost; asDone is the resulting error.
func (o *operator) operate(ctx context.Context, id ids.Invocation, c machine.Operation, asDone machine.Code) (machine.Outcome, error) {
	out, repeated, err := o.router.Operate(ctx, id, c)
	if err != nil {
		return out, operatorError(err)
	}
	if repeated && out.Code == asDone {
		return out, nil
	}
	return out, rejection(out)
}

// statusText is the status of an invocation in the terms of the documentation.
func statusText(s machine.Status) string {
	switch s {
	case machine.Inboxed:
		return "pending"
	case machine.Invoked:
		return "in progress"
	}
	return s.String()
}

// rejection returns why a command was rejected, as text for operators; nil if it was not.
func rejection(out machine.Outcome) error {
	switch out.Code {
	case machine.OK, machine.Existing:
		return nil
	case machine.NotFound:
		return rest.ErrNotFound
	case machine.Ended:
		return alreadyCompleted()
	case machine.NotEnded:
		return reject(http.StatusConflict, "the invocation has not completed: it is %s; cancel or kill it first", statusText(out.Status))
	case machine.NotStarted:
		return reject(http.StatusTooEarly, "the invocation has not started yet: it is %s", statusText(out.Status))
	case machine.Running:
		return &admin.Rejection{Status: http.StatusConflict, Later: true, Message: "the deployment cannot be changed while the invocation is running; pause it first"}
	case machine.NotPinned:
		return reject(http.StatusConflict, "the deployment cannot be changed before the invocation is pinned to one by its first stored step")
	case machine.Incompatible:
		return reject(http.StatusBadRequest, "the deployment does not support the service protocol version that the invocation's journal is written in")
	case machine.NoInput:
		return reject(http.StatusGone, "the journal of the invocation, which contains the input, was deleted after the journal retention of the handler")
	case machine.Unsupported:
		return reject(http.StatusUnprocessableEntity, "invocations of workflows cannot be restarted")
	case machine.OutOfRange:
		return reject(http.StatusBadRequest, "the journal has no entry with that index")
	case machine.Unanswered:
		return reject(http.StatusBadRequest, "the journal up to that entry contains some commands without their completions; choose an earlier entry")
	case machine.SignalsFull:
		return reject(http.StatusConflict, "the invocation was cancelled so often that its journal accepts no more cancels; kill it instead")
	case machine.TooLarge:
		return reject(http.StatusUnprocessableEntity, "the journal up to that entry is too long to be copied: at most 64 MiB and 100,000 entries; choose an earlier entry, or restart from the beginning")
	}
	return fmt.Errorf("the partition refused the operation with code %d", out.Code)
}

func alreadyCompleted() error {
	return &admin.Rejection{Status: http.StatusConflict, Later: true, Message: "the invocation has already completed"}
}

func reject(status int, format string, args ...any) error {
	return &admin.Rejection{Status: status, Message: fmt.Sprintf(format, args...)}
}

// operatorError converts the router's errors for the admin API.
func operatorError(err error) error {
	if errors.Is(err, routing.ErrNotFound) {
		return rest.ErrNotFound
	}
	if down, ok := errors.AsType[*routing.UnavailableError](err); ok {
		if down.SafeToRetry {
			return fmt.Errorf("%w; nothing was changed, try again: %w", admin.ErrUnavailable, down)
		}
		return fmt.Errorf("%w; whether the operation took effect is unknown: %w", admin.ErrUnavailable, down)
	}
	return err
}

// cancelOf returns the command that cancels an invocation. Repetitions have the same request.
func cancelOf(id ids.Invocation, request uint64) *machine.Signal {
	return &machine.Signal{Target: id, ID: journal.NumberedSignal(journal.CancelSignal), Request: request}
}
