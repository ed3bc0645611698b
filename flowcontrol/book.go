package flowcontrol

import (
	"fmt"
	"math"
	"slices"
)

// MaxRules is the maximum number of rules in a book.
const MaxRules = 10_000

// Book is the immutable rule book; a change creates a new one.
//
// Version grows with every change that can affect an invocation, and is not below the
// version of any rule, including removed ones.
type Book struct {
	Version uint32
	Rules   []Rule // sorted by pattern
}

// PreconditionKind is the kind of a Precondition.
type PreconditionKind uint8

// The kinds of preconditions.
const (
	None         PreconditionKind = iota // no precondition
	Matches                              // the rule exists at a version
	DoesNotExist                         // the rule does not exist
)

// Precondition is the expected state of a rule before a change.
type Precondition struct {
	Kind    PreconditionKind
	Version uint32 // for Matches
}

// Change replaces a rule as a whole, or adds it.
type Change struct {
	Pattern      Pattern
	Limits       Limits
	Description  string
	Disabled     bool
	Precondition Precondition
}

// Removal removes a rule.
type Removal struct {
	Pattern      Pattern
	Precondition Precondition
}

// PreconditionError means that a precondition does not hold.
type PreconditionError struct {
	Pattern      Pattern
	Precondition Precondition
	Actual       uint32 // version of the rule; 0: it does not exist
}

// Error describes the expected and the actual state.
func (e *PreconditionError) Error() string {
	actual := "there is no such rule"
	if e.Actual != 0 {
		actual = fmt.Sprintf("it is at version %d", e.Actual)
	}
	if e.Precondition.Kind == DoesNotExist {
		return fmt.Sprintf("rule '%s' was expected not to exist, but %s", e.Pattern, actual)
	}
	return fmt.Sprintf("rule '%s' was expected at version %d, but %s", e.Pattern, e.Precondition.Version, actual)
}

// FullError means that a book would have too many rules.
type FullError struct{ Rules int }

// Error describes the limit.
func (e *FullError) Error() string {
	return fmt.Sprintf("the rule book would hold %d rules, and at most %d are allowed: delete rules that are not needed, or cover several with one pattern", e.Rules, MaxRules)
}

// Find returns the rule with a pattern, nil if there is none.
func (b *Book) Find(p Pattern) *Rule {
	if i, found := b.index(p); found {
		return &b.Rules[i]
	}
	return nil
}

func (b *Book) index(p Pattern) (int, bool) {
	return slices.BinarySearchFunc(b.Rules, p, func(r Rule, p Pattern) int { return r.Pattern.Compare(p) })
}

// Put returns the book with all the changes, or b and the reason why none was made: a
// *PreconditionError or a *FullError. Changes are made in order, so for a pattern that
// occurs twice the last change wins. rules are the changed rules, in the order of the
// changes. A change to the current content changes nothing. at is the time, in milliseconds
// since 1970.
func (b *Book) Put(changes []Change, at int64) (next *Book, rules []Rule, err error) {
	if len(changes) > MaxRules {
		return b, nil, &FullError{Rules: len(changes)}
	}
	d := bookDraft{Book: b.clone(len(changes)), version: b.Version + 1, at: at, added: map[Pattern]int{}}
	d.sorted = len(d.Rules)
	rules = make([]Rule, len(changes))
	for i := range changes {
		if rules[i], err = d.put(&changes[i]); err != nil {
			return b, nil, err
		}
	}
	if len(d.Rules) > MaxRules {
		return b, nil, &FullError{Rules: len(d.Rules)}
	}
	slices.SortFunc(d.Rules, func(a, b Rule) int { return a.Pattern.Compare(b.Pattern) })
	return d.Book, rules, nil
}

// Renew returns the book with a version above all earlier ones, even if some of them are not known:
// each change adds one to the version, so seconds since 1970 are far above.
func (b *Book) Renew(now int64) *Book {
	return &Book{Version: max(b.Version+1, uint32(min(max(now, 0), math.MaxUint32-1<<20))), Rules: b.Rules}
}

// bookDraft is a book during a batch of changes. New rules are appended unsorted: inserting
// each in order would be too slow for thousands.
type bookDraft struct {
	*Book
	sorted  int             // number of existing rules
	added   map[Pattern]int // indexes of the new rules
	version uint32          // of the book after an effective change
	at      int64
}

func (d *bookDraft) find(p Pattern) *Rule {
	old := Book{Rules: d.Rules[:d.sorted]}
	if r := old.Find(p); r != nil {
		return r
	}
	if i, found := d.added[p]; found {
		return &d.Rules[i]
	}
	return nil
}

// put makes one change.
func (d *bookDraft) put(c *Change) (Rule, error) {
	rule := Rule{Pattern: c.Pattern, Limits: c.Limits, Description: c.Description, Disabled: c.Disabled, ModifiedAt: d.at}
	old := d.find(c.Pattern)
	if old == nil {
		if err := c.Precondition.check(c.Pattern, 0); err != nil {
			return rule, err
		}
		rule.Version = d.version
		d.added[c.Pattern] = len(d.Rules)
		d.Rules = append(d.Rules, rule)
		d.Version = max(d.Version, d.version)
		return rule, nil
	}
	if err := c.Precondition.check(c.Pattern, old.Version); err != nil {
		return rule, err
	}
	rule.Version = old.Version
	if !old.Limits.equal(c.Limits) || old.Disabled != c.Disabled {
		rule.Version++
		// A pattern that occurs several times in a batch grows by more than one.
		d.Version = max(d.Version, d.version, rule.Version)
	} else if old.Description == c.Description {
		return *old, nil
	}
	*old = rule
	return rule, nil
}

// Delete returns the book without the rules, and their patterns in the order of the
// removals; patterns without a rule are skipped unless a precondition requires them. The
// error is a *PreconditionError; next is then b.
func (b *Book) Delete(removals []Removal) (next *Book, removed []Pattern, err error) {
	gone := make(map[Pattern]struct{}, len(removals))
	removed = make([]Pattern, 0, len(removals))
	for _, r := range removals {
		version := uint32(0)
		rule := b.Find(r.Pattern)
		if _, earlier := gone[r.Pattern]; rule != nil && !earlier {
			version = rule.Version
		}
		if err := r.Precondition.check(r.Pattern, version); err != nil {
			return b, nil, err
		}
		if version != 0 {
			gone[r.Pattern] = struct{}{}
			removed = append(removed, r.Pattern)
		}
	}
	if len(removed) == 0 {
		return b, removed, nil
	}
	next = b.clone(0)
	next.Version++
	next.Rules = slices.DeleteFunc(next.Rules, func(r Rule) bool {
		_, found := gone[r.Pattern]
		return found
	})
	return next, removed, nil
}

// clone copies the rules, with capacity for more.
func (b *Book) clone(more int) *Book {
	rules := make([]Rule, len(b.Rules), len(b.Rules)+more)
	copy(rules, b.Rules)
	return &Book{Version: b.Version, Rules: rules}
}

// check compares with the actual version, 0 for none.
func (p Precondition) check(pattern Pattern, actual uint32) error {
	ok := true
	switch p.Kind {
	case Matches:
		ok = actual != 0 && actual == p.Version
	case DoesNotExist:
		ok = actual == 0
	}
	if !ok {
		return &PreconditionError{Pattern: pattern, Precondition: p, Actual: actual}
	}
	return nil
}

// Check validates a change independently of the book.
func (c *Change) Check() error {
	if err := c.Pattern.Check(); err != nil {
		return err
	}
	if len(c.Description) > MaxDescriptionBytes {
		return fmt.Errorf("rule '%s': description has %d bytes, at most %d are allowed", c.Pattern, len(c.Description), MaxDescriptionBytes)
	}
	if err := c.Limits.Check(); err != nil {
		return fmt.Errorf("rule '%s': %w", c.Pattern, err)
	}
	return nil
}

// Effective returns the part of a book that affects invocations: the enabled rules, without
// descriptions. It has the version of the book.
func (b *Book) Effective() *Book {
	kept := &Book{Version: b.Version}
	for _, r := range b.Rules {
		if !r.Disabled {
			r.Description = ""
			kept.Rules = append(kept.Rules, r)
		}
	}
	return kept
}
