package partition

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition/machine"
	"platform/partition/store"
)

// ErrHoldsData is wrapped when a partition refuses to enable flow control because it holds
// invocations that have not completed.
var ErrHoldsData = errors.New("flow control can be enabled only on a cluster without invocations in flight")

// FlowConfig configures flow control.
type FlowConfig struct {
	// Enable enables it. A partition that holds invocations and was led without it refuses, see
	// ErrHoldsData.
	Enable bool
	// EnabledEverywhere reports whether flow control is enabled on all partitions, which skips
	// the check of ErrHoldsData. nil: it is not.
	EnabledEverywhere func() bool
	// Rules is the source of the rule book; nil: there are no rules.
	Rules RuleSource
}

// toBeChecked reports whether a new leader has to call checkFlowControl.
func (c *FlowConfig) toBeChecked() bool {
	return c.Enable && (c.EnabledEverywhere == nil || !c.EnabledEverywhere())
}

// checkFlowControl refuses flow control if the previous leader ran without it and there are
// invocations in flight. It is called before the leader announces itself: the tables then
// reflect the whole log and nothing new.
func (p *Partition) checkFlowControl() error {
	view := p.tables.View()
	defer view.Close()
	meta, err := view.Meta()
	if err != nil || meta.Flow {
		return err
	}
	held, first := 0, (*machine.Invocation)(nil)
	for inv, err := range view.Live() {
		if err != nil {
			return fmt.Errorf("look for invocations in flight: %w", err)
		}
		if first == nil {
			first = inv
		}
		if held++; held > maxHeld {
			break
		}
	}
	if held == 0 {
		return nil
	}
	count := fmt.Sprint(held)
	if held > maxHeld {
		count = fmt.Sprintf("more than %d", maxHeld)
	}
	err = fmt.Errorf("%w: partition %d holds %s, such as %s of %s, which is %s; let them complete or kill them with flow control off, then enable it again",
		ErrHoldsData, p.id, count, first.ID, first.Target, first.Status)
	p.cfg.OnFailed(err)
	return err
}

// maxHeld bounds the count of invocations in flight.
const maxHeld = 10_000

// queueOf returns the key of the vqueue with an ID; the zero key if there is none.
func (p *Partition) queueOf(id ids.VQueue) (flowcontrol.QueueKey, error) {
	view := p.tables.View()
	defer view.Close()
	for q, err := range view.VQueues() {
		if err != nil {
			return flowcontrol.QueueKey{}, err
		}
		if q.Key.ID() == id {
			return q.Key, nil
		}
	}
	return flowcontrol.QueueKey{}, nil
}

// Queue is a vqueue and, if invocations wait in it, why the first one does not run.
type Queue struct {
	ID  ids.VQueue
	Key flowcontrol.QueueKey
	// Object is the key of the unscoped object that the invocations of a lock queue hold or
	// wait for; empty for vqueues.
	Object string
	flowcontrol.VQueue
	// Head is the invocation that gets the next slot of the queue, and since when it waits;
	// if none is queued for a slot, the one that has waited longest for its key.
	Head    flowcontrol.Queued
	HeadKey string              // object key that the head waits for, if that is what blocks it
	Blocked flowcontrol.Blocked // set if the inbox is not empty
}

// explain sets Head, HeadKey and Blocked of a queue whose inbox is not empty.
func (q *Queue) explain(view *store.View, rules *flowcontrol.Matcher, now int64) (err error) {
	if q.Blocked, err = rules.Explain(view, q.Key, &q.VQueue, now); err != nil {
		return err
	}
	if q.Waiting == 0 {
		q.Head, q.HeadKey, err = longestKeyWaiter(view, q.Key)
		return err
	}
	_, _, q.Head, err = flowcontrol.First(view, q.Key, &q.VQueue)
	return err
}

// maxKeyWaiters bounds the scan for the invocation that has waited longest for a key.
const maxKeyWaiters = 256

// longestKeyWaiter returns the invocation of a vqueue that has waited longest for its key,
// and that key: the head of a queue in which no invocation can use a slot. In very long
// queues it is approximate.
func longestKeyWaiter(view *store.View, key flowcontrol.QueueKey) (head flowcontrol.Queued, object string, err error) {
	seen := 0
	err = view.WalkWaiting(store.ServicePlace(key.Scope, key.Service), func(_ store.Place, o machine.Object, _ uint64, id ids.Invocation) (store.Visit, error) {
		if seen++; o.Scope != key.Scope || o.Service != key.Service || seen > maxKeyWaiters {
			return store.Visit{Stop: true}, nil
		}
		inv, err := view.Invocation(id)
		if err != nil || inv == nil || inv.Flow == nil || inv.VQueue() != key {
			return store.Visit{}, err
		}
		if head.At == 0 || inv.InboxedAt < head.At {
			head, object = flowcontrol.Queued{ID: id, At: inv.InboxedAt}, o.Key
		}
		return store.Visit{}, nil
	})
	return head, object, err
}

// rulesOf returns the rules of a view and its partition time.
func rulesOf(view *store.View) (*flowcontrol.Matcher, int64, error) {
	book, err := view.Rules()
	if err != nil {
		return nil, 0, err
	}
	meta, err := view.Meta()
	return flowcontrol.NewMatcher(book), meta.Clock, err
}

// Usage is a counter of flow control and the rule that limits it.
type Usage struct {
	flowcontrol.NamedCounter
	Rule *flowcontrol.Rule // nil: unlimited
}

// usages yields the counters of the partition as of this replica, ordered by scope and
// limit key, with a scope before its limit keys.
func (p *Partition) usages(ctx context.Context) iter.Seq2[Usage, error] {
	return func(yield func(Usage, error) bool) {
		if _, err := p.leader(); err != nil {
			yield(Usage{}, err)
			return
		}
		view := p.tables.View()
		defer view.Close()
		rules, _, err := rulesOf(view)
		if err != nil {
			yield(Usage{}, err)
			return
		}
		for c, err := range untilDone(ctx, view.AllCounters()) {
			u := Usage{NamedCounter: c, Rule: rules.Match(c.Key.Scope, c.Key.LimitKey)[c.Key.Level()]}
			if !yield(u, err) || err != nil {
				return
			}
		}
	}
}
