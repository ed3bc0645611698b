package metadata

import (
	"context"
	"errors"
	"fmt"
	"time"

	"platform/flowcontrol"
	"platform/internal/feature"
)

var (
	// ErrRulePrecondition means that a precondition of a change does not hold.
	ErrRulePrecondition = errors.New("rule is not as expected")
	// ErrTooManyRules means that a change would exceed the size of the rule book.
	ErrTooManyRules = errors.New("rule book is full")
)

// putRules adds or replaces rules of flow control.
type putRules struct {
	changes []flowcontrol.Change
	renew   bool // the book gets a version above all that were lost in a recovery
}

// deleteRules removes rules of flow control.
type deleteRules struct{ removals []flowcontrol.Removal }

func (*putRules) command()    {}
func (*deleteRules) command() {}

// Rules returns the immutable rule book of flow control, and a channel that is closed when
// there is a newer one.
func (s *Store) Rules() (*flowcontrol.Book, <-chan struct{}) {
	v := s.source.current()
	return v.book, v.rulesChanged
}

// PutRules adds or replaces rules atomically. It returns the rules in the order of the
// changes. The error can be ErrRulePrecondition, ErrTooManyRules or an *InvalidError.
func (s *Store) PutRules(ctx context.Context, changes []flowcontrol.Change) ([]flowcontrol.Rule, error) {
	for _, c := range changes {
		if err := c.Check(); err != nil {
			return nil, &InvalidError{err.Error()}
		}
	}
	if len(changes) > flowcontrol.MaxRules {
		return nil, rejectedRules(&flowcontrol.FullError{Rules: len(changes)})
	}
	return proposeToAll[[]flowcontrol.Rule](ctx, s, &putRules{changes: changes})
}

// RenewRules makes all partitions adopt the rule book after a recovery. The metadata may have lost
// changes that partitions know: these would keep the lost rules, and ignore later books until
// their version is higher. Below feature level 4 it does nothing.
func (s *Store) RenewRules(ctx context.Context) error {
	if s.FeatureLevel() < feature.Level4 {
		return nil
	}
	_, err := proposeToAll[[]flowcontrol.Rule](ctx, s, &putRules{renew: true})
	return err
}

// DeleteRules removes rules atomically. It returns the patterns of the removed ones. The
// error can be ErrRulePrecondition or an *InvalidError.
func (s *Store) DeleteRules(ctx context.Context, removals []flowcontrol.Removal) ([]flowcontrol.Pattern, error) {
	if len(removals) > flowcontrol.MaxRules {
		return nil, &InvalidError{fmt.Sprintf("at most %d rules can be deleted in one request, not %d", flowcontrol.MaxRules, len(removals))}
	}
	for _, r := range removals {
		if err := r.Pattern.Check(); err != nil {
			return nil, &InvalidError{err.Error()}
		}
	}
	return proposeToAll[[]flowcontrol.Pattern](ctx, s, &deleteRules{removals})
}

// applyPutRules returns the []flowcontrol.Rule.
func applyPutRules(d *draft, at time.Time, cmd *putRules) (outcome, error) {
	next, rules, err := d.book.Put(cmd.changes, at.UnixMilli())
	if err != nil {
		return outcome{rejection: rejectedRules(err)}, nil //nolint:nilerr // a rejection is a result that all replicas agree on
	}
	for _, r := range rules {
		// For a pattern that occurs twice, the last change wins.
		stored := next.Find(r.Pattern)
		if old := d.book.Find(r.Pattern); old != nil && old.Equal(stored) {
			continue
		}
		if err := d.put(tableRules, r.Pattern.String(), ruleToProto(stored)); err != nil {
			return outcome{}, err
		}
	}
	if cmd.renew {
		next = next.Renew(at.Unix())
	}
	return outcome{value: rules}, d.setBook(next)
}

// applyDeleteRules returns the removed []flowcontrol.Pattern.
func applyDeleteRules(d *draft, cmd *deleteRules) (outcome, error) {
	next, removed, err := d.book.Delete(cmd.removals)
	if err != nil {
		return outcome{rejection: rejectedRules(err)}, nil //nolint:nilerr // a rejection is a result that all replicas agree on
	}
	for _, p := range removed {
		d.deleteRecord(tableRules, p.String())
	}
	return outcome{value: removed}, d.setBook(next)
}

// setBook installs a book whose rules have already been written.
func (d *draft) setBook(next *flowcontrol.Book) error {
	before := d.book
	d.book = next
	if before.Version == next.Version {
		return nil
	}
	return d.put(tableRuleBook, bookKey, bookToProto(next))
}

// rejectedRules returns the rejection for an error of a book.
func rejectedRules(err error) error {
	if _, full := errors.AsType[*flowcontrol.FullError](err); full {
		return &rejection{ErrTooManyRules, err.Error()}
	}
	return &rejection{ErrRulePrecondition, err.Error()}
}
