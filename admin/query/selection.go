package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"modernc.org/sqlite/vtab"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/machine"
)

// field is the property of a row that conditions on a column select by.
type field uint8

const (
	noField           field = iota
	byID                    // of an invocation
	byAwakeable             // id of an awakeable
	byQueue                 // id of a queue
	byPartitionKey          // of the owner of the row
	byScope                 // NULL if it has none
	byService               //
	byObject                // key of an object or workflow
	byHandler               //
	byTarget                // text of a target
	byLock                  // service and key of an object, as text
	byStatus                // status as shown to users
	byStoredStatus          // stored status
	whenCompleted           // NULL unless the invocation is completed
	unlessCompletedAt       // IS NULL selects uncompleted invocations only
	tellsAhead              // selects nothing, but is computed only on request
)

// takes reports whether the source can evaluate conditions with an operator.
func (f field) takes(op vtab.ConstraintOp) bool {
	switch f {
	case noField, tellsAhead:
		return false
	case byScope:
		return op == vtab.OpEQ || op == vtab.OpIS || op == vtab.OpISNULL
	case byStatus, byStoredStatus:
		return op == vtab.OpMATCH || op == vtab.OpEQ || op == vtab.OpIS || op == vtab.OpNE || op == vtab.OpISNOT
	case whenCompleted:
		return op == vtab.OpEQ || op == vtab.OpISNOTNULL
	case unlessCompletedAt:
		return slices.Contains([]vtab.ConstraintOp{vtab.OpISNULL, vtab.OpISNOTNULL, vtab.OpEQ, vtab.OpLT, vtab.OpLE, vtab.OpGT, vtab.OpGE}, op)
	}
	return op == vtab.OpEQ || op == vtab.OpIS || op == vtab.OpMATCH && f.takesList()
}

// takesList reports whether the source can evaluate a list of text values: it can if one scan finds
// all of them. IDs and keys of objects are looked up one by one instead.
func (f field) takesList() bool {
	return f == byService || f == byHandler || f == byStatus || f == byStoredStatus
}

// condition is a condition that SQLite delegates to a table.
type condition struct {
	column int
	op     vtab.ConstraintOp // OpMATCH: a list, see rewriter.lists
}

// plan is SQLite's decision how to read a table. SQLite stores it as text.
type plan struct {
	used       uint64 // columns, see columnBit
	conditions []condition
}

func (p *plan) encode() string {
	b := strconv.AppendUint(nil, p.used, 16)
	for _, c := range p.conditions {
		b = fmt.Appendf(b, " %d:%d", c.column, c.op)
	}
	return string(b)
}

func decodePlan(s string) (p plan, err error) {
	s, _, _ = strings.Cut(s, noteMark)
	used, rest, _ := strings.Cut(s, " ")
	if p.used, err = strconv.ParseUint(used, 16, 64); err != nil {
		return p, fmt.Errorf("plan %q: %w", s, err)
	}
	for part := range strings.FieldsSeq(rest) {
		var c condition
		if _, err := fmt.Sscanf(part, "%d:%d", &c.column, &c.op); err != nil {
			return p, fmt.Errorf("plan %q: %w", s, err)
		}
		p.conditions = append(p.conditions, c)
	}
	return p, nil
}

// selection describes the rows of a table that a query needs, as far as the source can determine.
type selection struct {
	used    uint64
	whole   bool // complete rows are needed
	ahead   bool // a used column needs the number of entries before a row
	rows    bool // rows are needed even if no column is used
	nothing bool // no row can match
	matched bool // a MATCH of the user, not of the rewriter

	id       *ids.Invocation
	key      *uint64 // partition key
	scope    *string
	services []string
	objects  []string
	handlers []string
	statuses []machine.Status // nil: all
	narrowed bool             // by other fields than those looked up
}

// selectionFor converts a plan to a selection. Without values it only determines the kinds of
// conditions.
func (t *virtual) selectionFor(p *plan, vals []vtab.Value) *selection {
	sel := &selection{used: p.used}
	for i, c := range p.conditions {
		var v vtab.Value
		if vals != nil {
			v = vals[i]
		}
		sel.apply(t.fields[c.column], c.op, v, vals == nil)
	}
	return sel
}

// apply adds a condition. A condition with an invalid value selects everything or nothing; SQLite
// evaluates it again.
func (s *selection) apply(f field, op vtab.ConstraintOp, v vtab.Value, planning bool) {
	s.narrowed = true
	if op == vtab.OpMATCH {
		s.applyList(f, v, planning)
		return
	}
	str, isText := v.(string)
	if v == nil && op == vtab.OpEQ && !planning {
		s.nothing = true
		return
	}
	switch f {
	case byID:
		id, err := ids.ParseInvocation(str)
		s.nothing = s.nothing || !planning && err != nil || s.id != nil && *s.id != id
		s.id = &id
	case byAwakeable:
		a, err := ids.ParseAwakeable(str)
		s.nothing = s.nothing || !planning && err != nil || s.id != nil && *s.id != a.Invocation
		s.id = &a.Invocation
	case byQueue: // the contents of a queue have the partition key of the queue
		id, err := ids.ParseVQueue(str)
		s.nothing = s.nothing || !planning && err != nil
		s.key = new(id.PartitionKey())
	case byPartitionKey:
		key, known := v.(int64)
		if isText { // SQLite converts it before it compares it
			n, err := strconv.ParseInt(str, 10, 64)
			key, known = n, err == nil
		}
		if known || planning {
			s.key = new(uint64(key))
		}
	case byScope:
		if isText || v == nil { // SQLite converts a number to text before it compares it
			s.scope = &str
		}
	case byService, byObject, byHandler, byTarget, byLock:
		if isText || planning {
			s.name(f, str)
		}
	case byStatus:
		s.status(shownStatuses[str], op, planning)
	case byStoredStatus:
		s.status(storedStatuses[str], op, planning)
	case whenCompleted:
		s.among(machine.Completed)
	case unlessCompletedAt:
		if op == vtab.OpISNULL {
			s.except(machine.Completed)
		} else {
			s.among(machine.Completed)
		}
	}
}

// applyList adds a condition that the column is in a list of texts.
func (s *selection) applyList(f field, v vtab.Value, planning bool) {
	text, _ := v.(string)
	values, ok := listOf(text)
	switch {
	case planning && f == byService:
		s.services = append(s.services, "", "")
	case planning:
	case !ok:
		s.matched = true
	case f == byService && len(s.services) == 0:
		s.services = values
	case f == byHandler && len(s.handlers) == 0:
		s.handlers = values
	case f == byStatus:
		s.oneOf(statusesNamed(shownStatuses, values))
	case f == byStoredStatus:
		s.oneOf(statusesNamed(storedStatuses, values))
	}
}

func statusesNamed(names map[string]machine.Status, values []string) (statuses []machine.Status) {
	for _, v := range values {
		if status := names[v]; status != 0 && !slices.Contains(statuses, status) {
			statuses = append(statuses, status)
		}
	}
	return statuses
}

// oneOf intersects the statuses with others.
func (s *selection) oneOf(some []machine.Status) {
	if s.statuses != nil {
		some = slices.DeleteFunc(some, func(status machine.Status) bool { return !slices.Contains(s.statuses, status) })
	}
	s.statuses = some
	s.nothing = s.nothing || len(some) == 0
}

func (s *selection) name(f field, text string) {
	switch f {
	case byService:
		s.services = append(s.services[:0], text)
	case byObject:
		s.objects = append(s.objects[:0], text)
	case byHandler:
		s.handlers = append(s.handlers[:0], text)
	case byTarget:
		service, _, _ := strings.Cut(text, "/")
		s.services = append(s.services[:0], service)
	case byLock:
		service, object, _ := strings.Cut(text, "/")
		s.services, s.objects = append(s.services[:0], service), append(s.objects[:0], object)
	}
}

// allStatuses are the stored statuses.
var allStatuses = []machine.Status{
	machine.Scheduled, machine.Inboxed, machine.Invoked, machine.Suspended, machine.Paused, machine.Completed,
}

func (s *selection) status(status machine.Status, op vtab.ConstraintOp, planning bool) {
	unequal := op == vtab.OpNE || op == vtab.OpISNOT
	switch {
	case planning && !unequal:
		s.among(machine.Invoked)
	case planning || status == 0 && unequal:
	case status == 0:
		s.nothing = true
	case !unequal:
		s.among(status)
	case status != machine.Invoked: // Invoked corresponds to three statuses shown to users
		s.except(status)
	}
}

func (s *selection) among(status machine.Status) {
	if s.statuses != nil && !slices.Contains(s.statuses, status) {
		s.nothing = true
	}
	s.statuses = []machine.Status{status}
}

func (s *selection) except(status machine.Status) {
	if s.statuses == nil {
		s.statuses = slices.Clone(allStatuses)
	}
	s.statuses = slices.DeleteFunc(s.statuses, func(st machine.Status) bool { return st == status })
	s.nothing = s.nothing || len(s.statuses) == 0
}

// keys returns the partition keys of the selected rows. scoped means that objects may have
// scopes, which then determine the partition.
func (s *selection) keys(scoped bool) partition.KeyRange {
	var key uint64
	switch {
	case s.id != nil:
		key = s.id.PartitionKey()
	case s.key != nil:
		key = *s.key
	case s.scope != nil && *s.scope != "":
		key = ids.HashKey(*s.scope)
	case len(s.objects) == 1 && s.objects[0] != "" && (!scoped || s.scope != nil):
		key = ids.HashKey(s.objects[0])
	default:
		return partition.AllKeys
	}
	return partition.KeyRange{First: key, Last: key}
}
