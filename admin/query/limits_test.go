package query

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/metadata"
	"platform/partition"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/listing"
	"platform/partition/machine"
	"platform/proto/service"
)

// paged is partitions that return short pages and ignore all conditions but the ID: what a client must
// not see is removed by the engine, whatever a partition returns.
type paged struct{ *memory }

const rowsPerPage = 3

func (p paged) Scan(ctx context.Context, id uint32, s *partition.Scan) (partition.Page, error) {
	all := *s
	all.Services, all.Scope = nil, nil
	page, err := p.memory.Scan(ctx, id, &all)
	from := 0
	if s.From != nil {
		from = int(binary.BigEndian.Uint32(s.From))
	}
	rows := page.Rows[min(from, len(page.Rows)):]
	page.Next = nil
	if len(rows) > rowsPerPage {
		rows = rows[:rowsPerPage]
		page.Next = binary.BigEndian.AppendUint32(nil, uint32(from+rowsPerPage))
	}
	page.Rows, page.Read, page.Matched = rows, len(rows), len(rows)
	if s.Detail == partition.Counts && s.ID.IsZero() {
		page.Rows = nil
	}
	return page, err
}

// owned is the content of a cluster that belongs to some services and scopes, with rows in every table.
func owned(t *testing.T, include func(service, scope string) bool) Config {
	rows := map[partition.Table][]partition.Row{}
	add := func(table partition.Table, r partition.Row) { rows[table] = append(rows[table], r) }
	registry := &metadata.Schemas{Services: map[string]*metadata.Service{}}
	var groups []listing.Group
	n := byte(0)
	services := []string{"Counter", "Greeter", "Orders"}
	for i, name := range services {
		if include(name, "") || include(name, "a") || include(name, "b") {
			registry.Services[name] = &metadata.Service{Name: name, Type: metadata.VirtualObject, Deployment: "dp_1"}
		}
		if include(name, "") && include(name, "a") { // not limited to scopes
			groups = append(groups, listing.Group{ID: listing.GroupID{byte(i)}, Service: name, Handler: "add", Message: "of " + name})
		}
	}
	for round := range 4 {
		for _, scope := range []string{"", "a", "b"} {
			for _, name := range services {
				n++
				if !include(name, scope) {
					continue
				}
				key := fmt.Sprint("key", n)
				to := machine.Target{Service: name, Key: key, Handler: "add", Scope: scope, Type: target.ObjectExclusive}
				inv := &machine.Invocation{ID: ids.NewInvocation(7, [16]byte{n}), Target: to, Status: machine.Invoked, HoldsLock: true, CreatedAt: 5, RunningAt: 6}
				if round == 1 {
					inv.Status, inv.HoldsLock, inv.Result = machine.Completed, false, &journal.Result{Value: []byte("result")}
				}
				if scope != "" {
					inv.Flow = &machine.Flow{Starts: 1}
				}
				record := partition.Record{Invocation: inv, Attempts: &attempts.Status{RetryCount: int(n), InFlight: true}}
				add(partition.Invocations, partition.Row{Record: record, Events: []machine.Event{{Kind: machine.CancelRequested, At: int64(n)}}})
				input, err := (&service.InputCommandMessage{Value: &service.Value{Content: []byte("input of " + name)}}).MarshalVT()
				require.NoError(t, err)
				for i := range uint64(n%4 + 1) {
					add(partition.Journal, partition.Row{ID: inv.ID, Index: i, Entry: journal.Entry{Type: journal.Input, Payload: input}, Size: len(input)})
				}
				object := to.Object()
				add(partition.State, partition.Row{Object: object, Key: "total", Value: []byte{n}, Size: 1})
				add(partition.Promises, partition.Row{Object: object, Key: "paid", Promise: machine.Promise{Result: &journal.Result{Value: []byte{n}}}})
				add(partition.Locks, partition.Row{Object: object, ID: inv.ID, Since: int64(n)})
				add(partition.Waiting, partition.Row{Object: object, ID: ids.NewInvocation(7, [16]byte{n, 1}), Index: uint64(n)})
				queue := &partition.Queue{ID: ids.OfVQueue(scope, "", name, ""), Key: flowcontrol.QueueKey{Scope: scope, Service: name}}
				queue.Stages[flowcontrol.Inbox] = 1
				if scope == "" {
					queue.Object = key
					add(partition.LockQueues, partition.Row{Queue: queue})
				} else if round == 0 {
					add(partition.Queues, partition.Row{Queue: queue})
				}
			}
		}
	}
	for _, scope := range []string{"a", "b"} {
		if include("Greeter", scope) && include("Counter", scope) { // not limited to services
			add(partition.Usages, partition.Row{Usage: &partition.Usage{NamedCounter: flowcontrol.NamedCounter{Key: flowcontrol.CounterKey{Scope: scope}}}})
		}
	}
	return Config{
		Partitions: paged{&memory{scoped: true, rows: rows}},
		Registry:   func() *metadata.Schemas { return registry },
		Failures:   func(context.Context) ([]listing.Group, error) { return groups, nil },
		Rules: func() *flowcontrol.Book {
			return &flowcontrol.Book{Rules: []flowcontrol.Rule{{Description: "of everyone"}}}
		},
		clock: func() time.Time { return time.UnixMilli(100) },
	}
}

// limitsOfTables lists, for each table, the limits that its rows can be restricted to.
var limitsOfTables = map[string]string{
	"sys_invocation": "services scopes", "sys_invocation_status": "services scopes", "sys_invocation_state": "services scopes",
	"sys_awakeable": "services scopes", "sys_journal": "services scopes", "sys_journal_events": "services scopes", "state": "services scopes", "sys_inbox": "services scopes",
	"sys_keyed_service_status": "services scopes", "sys_locks": "services scopes", "sys_promise": "services scopes", "sys_service": "services scopes",
	"sys_scheduler": "services scopes", "sys_vqueues": "services scopes", "sys_vqueue_meta": "services scopes", "sys_vqueue_entry_status": "services scopes",
	"sys_failure_group": "services", "sys_user_limits": "scopes",
	"tables": "services scopes", "columns": "services scopes", // describe the tables
	"sys_deployment": "", "sys_job": "", "sys_audit": "", "sys_rules": "", "sys_subscription": "", "sys_subscription_partition": "", "sys_dead_letter": "",
	"partition_state": "", "nodes": "", "partitions": "", "partition_replica_set": "", "logs": "", "logs_tail_segments": "", "loglet_workers": "",
	"bifrost_read_streams": "", "config": "",
}

// A client with limits sees of each table what it would see if nothing else existed, or nothing.
func TestLimitsHoldInEveryTable(t *testing.T) {
	everything := newTestEngine(t, owned(t, func(string, string) bool { return true }))
	compared, rejected := 0, 0
	for _, limits := range []Limits{
		{Services: []string{"Greeter"}},
		{Services: []string{"Orders", "Greeter"}},
		{Scopes: []string{"a"}},
		{Scopes: []string{"a", "b"}},
		{Services: []string{"Greeter"}, Scopes: []string{"b"}},
		{Services: []string{"None"}},
	} {
		inside := newTestEngine(t, owned(t, func(service, scope string) bool { return limits.include(owner{service: service, scope: scope}) }))
		for _, table := range everything.Tables() {
			permitted, known := limitsOfTables[table.Name]
			require.True(t, known, "decide whether rows of the table %s belong to services and scopes", table.Name)
			open := (len(limits.Services) == 0 || strings.Contains(permitted, "services")) && (len(limits.Scopes) == 0 || strings.Contains(permitted, "scopes"))
			name := table.Schema + "." + table.Name
			first := quoteName(table.Columns[0].Name)
			for _, text := range []string{
				"select * from " + name + " order by 1, 2, 3",
				"select count(*) as n from " + name,
				"select count(distinct " + first + ") as n, min(" + first + ") as low, max(" + first + ") as high from " + name,
				"select exists (select 1 from " + name + ") as some",
				"select x.* from (select * from " + name + ") x where 1 order by 1, 2, 3",
				"with x as (select * from " + name + " union all select * from " + name + ") select count(*) as n from x",
				"select a." + first + " as v from " + name + " a left join (select * from " + name + " limit 20) b on a." + first + " = b." + first + " order by 1",
				"select * from " + name + " where " + first + " is not null order by 1, 2, 3 limit 2 offset 1",
				"select count(distinct rowid) as n from " + name,
			} {
				var got bytes.Buffer
				_, err := everything.WriteJSON(t.Context(), text, Options{Limits: limits, Stats: true}, &got)
				if !open {
					rejection := new(Error)
					require.ErrorAs(t, err, &rejection, "%+v: %s", limits, text)
					require.True(t, rejection.Forbidden, "%+v: %s", limits, text)
					require.Empty(t, got.String(), "%+v: %s", limits, text)
					rejected++
					continue
				}
				require.NoError(t, err, text)
				compared++
				require.Equal(t, rowsIn(t, written(t, inside, text, Options{})), rowsIn(t, got.String()), "%+v: %s", limits, text)
			}
		}
	}
	require.Greater(t, compared, 500)
	require.Greater(t, rejected, 500)
	for name := range limitsOfTables {
		require.True(t, slices.ContainsFunc(everything.Tables(), func(x *Table) bool { return x.Name == name }), "there is no table %s", name)
	}
}

func rowsIn(t *testing.T, document string) any {
	var all struct{ Rows []any }
	require.NoError(t, json.Unmarshal([]byte(document), &all))
	return all.Rows
}

// Conditions and joins must not reach rows outside of the limits either.
func TestQueriesCannotReachBeyondLimits(t *testing.T) {
	e := newTestEngine(t, owned(t, func(string, string) bool { return true }))
	limits := Limits{Services: []string{"Greeter"}, Scopes: []string{"a"}}
	foreign := ids.NewInvocation(7, [16]byte{1}) // of Counter
	for _, text := range []string{
		"select * from sys_invocation where target_service_name = 'Counter'",
		"select * from sys_invocation where id = '" + foreign.String() + "'",
		"select * from sys_journal where id = '" + foreign.String() + "'",
		"select * from sys_journal_events where id = '" + foreign.String() + "'",
		"select * from sys_invocation where target_service_name in ('Counter', 'Orders')",
		"select * from sys_invocation where scope is null",
		"select * from sys_invocation where scope = 'b'",
		"select * from sys_invocation where target like 'Counter/%' collate nocase",
		"select * from state where service_name <> 'Greeter'",
		"select * from sys_locks where lock_name = 'Counter/key1'",
		"select * from sys_vqueue_meta where lock_name is not null",
		"select j.* from sys_invocation i join sys_journal j on j.id = i.id where i.target_service_name <> 'Greeter'",
		"select j.* from sys_journal j left join sys_invocation i on j.id = i.id where i.id is null",
		"select j.raw from sys_journal j where cast(j.raw as text) like '%Counter%'",
	} {
		require.Empty(t, rowsIn(t, written(t, e, text, Options{Limits: limits})), text)
		require.NotEmpty(t, rowsIn(t, written(t, e, strings.Replace(text, "left join sys_invocation i on j.id = i.id where i.id is null", "where 1", 1), Options{})), text)
	}
	// A table that is rejected is so in every place of a query.
	for _, text := range []string{
		"select 1 as x from sys_invocation where exists (select 1 from sys_rules)",
		"select (select count(*) from sys_rules) as x",
		"select 1 as x union select version from sys_rules",
	} {
		_, err := e.WriteJSON(t.Context(), text, Options{Limits: limits}, io.Discard)
		require.ErrorContains(t, err, "the table sys_rules requires a token that is not limited to services and scopes", text)
	}
}

// The statistics of a query must not tell how much others have.
func TestStatisticsAreWithinLimits(t *testing.T) {
	few := newTestEngine(t, owned(t, func(service, _ string) bool { return service == "Greeter" }))
	many := newTestEngine(t, owned(t, func(string, string) bool { return true }))
	limits := Limits{Services: []string{"Greeter"}}
	for _, table := range []string{"sys_invocation", "sys_journal", "state", "sys_vqueues", "sys_service", "sys_vqueue_meta"} {
		for _, where := range []string{"", " where 0", " limit 1"} {
			text := "select * from " + table + where
			stats := func(e *Engine) Stats {
				w, err := e.WriteJSON(t.Context(), text, Options{Limits: limits}, io.Discard)
				require.NoError(t, err)
				return w.Stats
			}
			got := stats(many)
			if where != " limit 1" { // how much is read ahead depends on the pages
				require.Equal(t, stats(few), got, text)
			}
			require.Zero(t, got.Pages)
		}
	}
}

// The limits of one client must not remain in a session that another one uses.
func TestLimitsEndWithTheQuery(t *testing.T) {
	e := newTestEngine(t, owned(t, func(string, string) bool { return true }))
	for range 3 {
		require.Contains(t, written(t, e, "select count(*) as n from sys_invocation", Options{Limits: Limits{Services: []string{"Greeter"}}}), `"n":12`)
		require.Contains(t, written(t, e, "select count(*) as n from sys_invocation", Options{}), `"n":36`)
	}
}
