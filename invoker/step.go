package invoker

import (
	"errors"
	"time"

	"platform/flowcontrol"
	"platform/internal/errcode"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/limits"
	"platform/internal/target"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
)

// step validates the command with a number in the journal and returns the step that proposes it. An
// error describes what the handler did wrong.
func (iv *Invoker) step(inv *machine.Invocation, number uint32, m *protocol.Message, used *completions) (machine.Step, protocol.Command, error) {
	step := machine.Step{Kind: machine.StepCommand, Type: m.Type, Payload: m.Payload}
	c, err := protocol.ParseCommand(m.Type, m.Payload)
	if err != nil {
		return step, c, err
	}
	if err := allowed(inv.Target.Type, m.Type); err != nil {
		return step, c, err
	}
	if err := unused(c.Completions, used); err != nil {
		return step, c, err
	}
	switch m.Type {
	case journal.Call, journal.OneWayCall:
		step.Callee, err = iv.callee(inv.ID, number, c.Request)
	case journal.SetState:
		err = checkStateKey(c.StateKey)
	case journal.GetPromise, journal.PeekPromise, journal.CompletePromise:
		err = checkPromise(m.Type, m.Payload)
	case journal.SendSignal:
		err = checkSignal(m.Payload)
	case journal.AttachInvocation, journal.GetInvocationOutput:
		if _, bad := journal.ParseAttach(m.Type, m.Payload); bad != nil {
			err = errcode.New(errcode.RT0017, "%w", bad)
		}
	case journal.CompleteAwakeable:
		if _, bad := ids.ParseAwakeable(c.Target); bad != nil {
			err = errcode.New(errcode.RT0012, "awakeable ID %q: %w", c.Target, bad)
		}
	}
	return step, c, err
}

// unused checks that a command's completion IDs have not been used.
func unused(completions [2]uint32, used *completions) error {
	for _, id := range completions {
		if id != 0 && !used.add(id) {
			return errcode.New(errcode.RT0012, "another command has the completion ID %d", id)
		}
	}
	return nil
}

// allowed checks that handlers of a type may send a command.
func allowed(of target.Type, t journal.Type) error {
	switch t {
	case journal.GetEagerState, journal.GetEagerStateKeys, journal.GetLazyState, journal.GetLazyStateKeys:
		if !of.Keyed() {
			return errcode.New(errcode.RT0017, "%s: a plain service has no state", t.Name())
		}
	case journal.SetState, journal.ClearState, journal.ClearAllState:
		if !of.Keyed() {
			return errcode.New(errcode.RT0017, "%s: a plain service has no state", t.Name())
		}
		if !of.WritesState() {
			return errcode.New(errcode.RT0017, "%s: a shared handler may not change state", t.Name())
		}
	case journal.GetPromise, journal.PeekPromise, journal.CompletePromise:
		if !of.Workflow() {
			return errcode.New(errcode.RT0017, "%s: only handlers of a workflow have promises", t.Name())
		}
	}
	return nil
}

// checkStateKey refuses a key of state that is too long: values may be as large as a message, but keys
// are part of the keys of tables and of every list of the keys of an object.
func checkStateKey(key []byte) error {
	if len(key) > limits.Key {
		return errcode.New(errcode.RT0003, "state of the key %.100q: the key has %d bytes, at most %d", key, len(key), limits.Key)
	}
	return nil
}

// checkPromise refuses a key of a promise that is too long, as checkStateKey does.
func checkPromise(t journal.Type, payload []byte) error {
	c, err := journal.ParsePromise(t, payload)
	if err == nil && len(c.Key) > limits.Key {
		return errcode.New(errcode.RT0003, "promise %.100q: its key has %d bytes, at most %d", c.Key, len(c.Key), limits.Key)
	}
	return err
}

// checkSignal validates the target and the name or number of a signal.
func checkSignal(payload []byte) error {
	c, err := journal.ParseSendSignal(payload)
	switch {
	case err != nil:
		return errcode.New(errcode.RT0017, "%w", err)
	case len(c.ID.Name) > limits.Key:
		return errcode.New(errcode.RT0003, "signal %.100q: its name has %d bytes, at most %d", c.ID.Name, len(c.ID.Name), limits.Key)
	}
	return nil
}

// callee resolves the target of the call with a number in the journal of its caller.
func (iv *Invoker) callee(caller ids.Invocation, number uint32, r *journal.Request) (*machine.Callee, error) {
	service, handler, err := iv.registry.Schemas().Resolve(r.Service, r.Handler)
	if err != nil {
		return nil, errcode.New(errcode.RT0018, "call of %s/%s: %w", r.Service, r.Handler, err)
	}
	if err := iv.checkScope(r); err != nil {
		return nil, errcode.New(errcode.RT0024, "call of %s/%s: %w", r.Service, r.Handler, err)
	}
	if len(r.Key) > limits.Key {
		return nil, errcode.New(errcode.RT0003, "call of %.100s/%.100s: its key has %d bytes, at most %d", r.Service, r.Handler, len(r.Key), limits.Key)
	}
	if n := namesSize(r); n > limits.Names {
		return nil, errcode.New(errcode.RT0003, "call of %.100s/%.100s: its key, scope and idempotency key have %d bytes, at most %d", r.Service, r.Handler, n, limits.Names)
	}
	switch {
	case r.Key != "" && !handler.Type.Keyed():
		return nil, errcode.New(errcode.RT0017, "call of %s/%s: a plain service takes no key", r.Service, r.Handler)
	case r.IdempotencyKey != nil && *r.IdempotencyKey == "":
		return nil, errcode.New(errcode.RT0017, "call of %s/%s: the idempotency key is empty", r.Service, r.Handler)
	}
	options := metadata.Effective(handler, service, iv.defaults.Load())
	return &machine.Callee{
		ID:        iv.calleeID(caller, number, r, handler.Type),
		Type:      handler.Type,
		Retention: machine.RetentionOf(options.Retention(handler.Type, r.IdempotencyKey != nil)),
	}, nil
}

var (
	errFlowOff = errors.New("scope and limit key need flow control, which is off")
	errNoScope = errors.New("a limit key needs a scope")
)

// checkScope validates the scope and limit key of a call.
func (iv *Invoker) checkScope(r *journal.Request) error {
	switch {
	case r.Scope == nil && r.LimitKey == nil:
		return nil
	case !iv.cfg.FlowControl:
		return errFlowOff
	case r.Scope == nil:
		return errNoScope
	}
	if err := flowcontrol.CheckScope(*r.Scope); err != nil || r.LimitKey == nil {
		return err
	}
	_, err := flowcontrol.ParseLimitKey(*r.LimitKey)
	return err
}

// calleeID returns the ID of a callee: a function of the target if the same target must
// lead to the same invocation (service protocol, identifiers).
func (iv *Invoker) calleeID(caller ids.Invocation, number uint32, r *journal.Request, t target.Type) ids.Invocation {
	scope := ""
	if r.Scope != nil {
		scope = *r.Scope
	}
	switch {
	case t == target.WorkflowRun && iv.legacyIDs():
		return ids.LegacyOfWorkflow(scope, r.Service, r.Key)
	case t == target.WorkflowRun:
		return ids.OfWorkflow(scope, r.Service, r.Key)
	case r.IdempotencyKey != nil && iv.legacyIDs():
		return ids.LegacyOfIdempotent(scope, r.Service, r.Key, r.Handler, *r.IdempotencyKey)
	case r.IdempotencyKey != nil:
		return ids.OfIdempotent(scope, r.Service, r.Key, r.Handler, *r.IdempotencyKey)
	case scope != "" || t.Keyed():
		return ids.NewInvocation(ids.Route(scope, r.Key), iv.unique())
	}
	key := iv.cfg.Random()
	if number < nearCommands && key%farCallees != 0 && !iv.Short() && !iv.cfg.Spread() {
		key = caller.PartitionKey()
	}
	return ids.NewInvocation(key, iv.unique())
}

const (
	// nearCommands is the number of commands of an invocation whose callees are in its own partition,
	// if they may be in any: a call and its result then need no messages between partitions.
	nearCommands = 32
	// One of farCallees such callees may be in any partition nevertheless, so that a large tree of
	// calls spreads over all of them.
	farCallees = 8
)

// legacyIDs reports whether the cluster has servers that derive IDs like the first release.
func (iv *Invoker) legacyIDs() bool { return iv.level() < feature.Level2 }

// level returns the cluster's feature level as known to this node.
func (iv *Invoker) level() feature.Level {
	if iv.cfg.Level == nil {
		return feature.Level1
	}
	return iv.cfg.Level()
}

func (iv *Invoker) unique() [16]byte {
	return ids.OrderedUnique(time.Now().UnixMilli(), iv.cfg.Random)
}
