package query

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

// selecting is partitions that return only the rows that a scan selects, as real ones do.
type selecting struct{ memory }

func (m *selecting) Scan(ctx context.Context, id uint32, s *partition.Scan) (partition.Page, error) {
	page, err := m.memory.Scan(ctx, id, s)
	page.Rows = slices.DeleteFunc(page.Rows, func(r partition.Row) bool {
		o, key := r.Object, ids.Route(r.Object.Scope, r.Object.Key)
		if inv := r.Record.Invocation; inv != nil {
			o, key = machine.Object{Scope: inv.Target.Scope, Service: inv.Target.Service, Key: inv.Target.Key}, inv.ID.PartitionKey()
			if !oneOrAll(s.Statuses, inv.Status) || !oneOrAll(s.Handlers, inv.Target.Handler) {
				return true
			}
		}
		return s.Scope != nil && *s.Scope != o.Scope || !oneOrAll(s.Services, o.Service) || !oneOrAll(s.Objects, o.Key) ||
			key < s.Keys.First || key > s.Keys.Last
	})
	page.Matched = len(page.Rows)
	return page, err
}

func oneOrAll[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// numeric has names that are also numbers, which SQL compares with numbers.
func numeric() *selecting {
	m := &selecting{memory{scoped: true, rows: map[partition.Table][]partition.Row{}}}
	n := 0
	for _, scope := range []string{"", "42", "tenant"} {
		for _, service := range []string{"A", "42"} {
			for _, key := range []string{"", "42", "k/x"} {
				inv := &machine.Invocation{
					ID: ids.NewInvocation(ids.Route(scope, key), [16]byte{byte(n)}), Status: allStatuses[n%len(allStatuses)], CreatedAt: 1_700_000_000_000,
					Target: machine.Target{Scope: scope, Service: service, Key: key, Handler: []string{"h", "42"}[n%2], Type: target.ObjectExclusive},
				}
				if inv.Status == machine.Completed {
					inv.CompletedAt, inv.Result = 1_700_000_100_000, &journal.Result{}
				}
				o := inv.Target.Object()
				for table, row := range map[partition.Table]partition.Row{
					partition.Invocations: {Record: partition.Record{Invocation: inv}},
					partition.State:       {Object: o, Key: "s"},
					partition.Promises:    {Object: o, Key: "p"},
					partition.Locks:       {Object: o, ID: inv.ID},
					partition.Waiting:     {Object: o, ID: inv.ID, Index: uint64(n)}, //nolint:gosec // not negative
				} {
					m.rows[table] = append(m.rows[table], row)
				}
				n++
			}
		}
	}
	return m
}

// TestSourcesSelectWhatSQLiteSelects compares random conditions that sources evaluate with the same
// ones that SQLite evaluates alone, as it does if the query has a COLLATE.
func TestSourcesSelectWhatSQLiteSelects(t *testing.T) {
	m := numeric()
	e := newTestEngine(t, Config{Partitions: m})
	some := m.rows[partition.Invocations][4].Record
	key := fmt.Sprint(some.ID.PartitionKey())
	values := []string{
		"'42'", "42", "42.0", "x'3432'", "'A'", "'tenant'", "''", "null", "(select 42)", "(select '42')", "'A/42/h'", "'42/42'", "'k/x'", "'h'",
		"'completed'", "'paused'", "'running'", "'invoked'", "'success'", "'2023-11-14T22:15:00Z'", "'" + some.ID.String() + "'", key, "'" + key + "'",
	}
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible
	one := func(list []string) string { return list[rng.IntN(len(list))] }
	for table, columns := range map[string][]string{
		"sys_invocation":        {"id", "target", "target_service_name", "target_service_key", "target_handler_name", "scope", "status", "completed_at", "completion_result"},
		"sys_invocation_status": {"id", "partition_key", "target_service_name", "scope", "status"},
		"state":                 {"partition_key", "service_name", "service_key", "scope"},
		"sys_promise":           {"service_name", "service_key", "scope"},
		"sys_locks":             {"lock_name", "scope"},
		"sys_inbox":             {"id", "service_name", "service_key"},
	} {
		comparison := func() string {
			column := one(columns)
			switch rng.IntN(6) {
			case 0:
				return column + one([]string{" is null", " is not null"})
			case 1:
				return column + one([]string{" in (", " not in ("}) + one(values) + ", " + one(values) + ", " + one(values) + ")"
			case 2:
				return column + one([]string{" is ", " is not ", " <> ", " > ", " <= "}) + one(values)
			case 3:
				return one(values) + " = " + column
			}
			return column + " = " + one(values)
		}
		for range 150 {
			condition := comparison()
			for range rng.IntN(3) {
				condition = one([]string{"%s and %s", "(%s or %s)", "not %s and %s"})
				condition = fmt.Sprintf(condition, comparison(), comparison())
			}
			list := strings.Join(columns, ", ")
			text := "select " + list + " from " + table + " where " + condition
			var pushed, alone bytes.Buffer
			_, err := e.WriteJSON(t.Context(), text+" order by "+list, Options{}, &pushed)
			require.NoError(t, err, text)
			_, err = e.WriteJSON(t.Context(), text+" order by "+list+" collate binary", Options{}, &alone)
			require.NoError(t, err, text)
			require.Equal(t, alone.String(), pushed.String(), text)
		}
	}
}
