package query

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

// heads is a memory that returns only the head of a row unless the scan requests all of it.
type heads struct{ memory }

func (h *heads) Scan(ctx context.Context, id uint32, s *partition.Scan) (partition.Page, error) {
	page, err := h.memory.Scan(ctx, id, s)
	if s.Detail == partition.Heads {
		for i := range page.Rows {
			r := &page.Rows[i]
			r.Value, r.Entry.Payload = nil, nil
			if inv := r.Record.Invocation; inv != nil {
				r.Record.Invocation = &machine.Invocation{ID: inv.ID, Target: inv.Target, Status: inv.Status}
			}
		}
	}
	return page, err
}

// fill sets everything that is not set yet to a value that is not zero.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), depth)
			}
		}
	case reflect.Pointer, reflect.Slice:
		if depth == 0 || !v.IsNil() {
			return
		}
		if v.Kind() == reflect.Pointer {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth-1)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth-1)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), depth)
		}
	case reflect.String:
		if v.IsZero() {
			v.SetString("text")
		}
	case reflect.Bool:
		v.SetBool(true)
	default:
		if v.IsZero() && v.CanInt() {
			v.SetInt(1)
		} else if v.IsZero() && v.CanUint() {
			v.SetUint(1)
		}
	}
}

// A column that needs more than the head of a row is heavy: otherwise a query of it alone would
// return NULL, or the number 0.
func TestColumnsOfHeadsNeedNoMore(t *testing.T) {
	id := func(n byte) ids.Invocation { return ids.NewInvocation(7, [16]byte{n}) }
	h := &heads{memory{rows: map[partition.Table][]partition.Row{
		partition.State:   {{Object: machine.Object{Service: "Counter", Key: "k"}, Key: "total", Value: []byte("12"), Size: 2}},
		partition.Journal: {{ID: id(1), Index: 1, Size: 3, Entry: journal.Entry{Type: journal.Output, Payload: []byte{114, 1, 49}, AppendedAt: 5}}},
	}}}
	for _, status := range []machine.Status{machine.Scheduled, machine.Inboxed, machine.Invoked, machine.Suspended, machine.Paused, machine.Completed} {
		inv := &machine.Invocation{
			ID: id(byte(status)), Status: status, Source: machine.Source{Kind: machine.FromService},
			Target: machine.Target{Scope: "s", Service: "Counter", Key: "k", Handler: "add", Type: target.ObjectExclusive},
			Trace:  machine.Trace{Parent: "00-11112222333344445555666677778888-0123456789abcdef-01"},
		}
		fill(reflect.ValueOf(inv).Elem(), 3)
		h.rows[partition.Invocations] = append(h.rows[partition.Invocations], partition.Row{Record: partition.Record{Invocation: inv}})
	}
	e := newTestEngine(t, Config{Partitions: h})
	for _, table := range []string{"sys_invocation", "sys_invocation_status", "sys_journal", "state"} {
		whole := ask(t, e, "select * from "+table)
		require.NotEmpty(t, whole, table)
		for _, c := range e.catalog.find(schemaPublic, table).Columns {
			for i, row := range ask(t, e, "select "+quoteName(c.Name)+" from "+table) {
				require.Equal(t, whole[i][c.Name], row[c.Name], "%s.%s: the column needs more than the head of a row", table, c.Name)
			}
		}
	}
}
