package query

import (
	"io"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/machine"
)

const someID = "inv_1eZuh3e9kYOt41qu4r6Lc4GeOvsM3b1KoN"

// TestConditionsArePushedDown compares the requests to partitions with
// the conditions of the query.
func TestConditionsArePushedDown(t *testing.T) {
	id, err := ids.ParseInvocation(someID)
	require.NoError(t, err)
	one := func(key uint64) partition.KeyRange { return partition.KeyRange{First: key, Last: key} }
	alice, scope, none := one(ids.HashKey("alice")), "tenant", ""
	queue := ids.OfVQueue(scope, "", "Counter", "")
	open := []machine.Status{machine.Scheduled, machine.Inboxed, machine.Invoked, machine.Suspended, machine.Paused}
	for query, want := range map[string]partition.Scan{
		"select count(*) from sys_invocation":                               {Table: partition.Invocations, Keys: partition.AllKeys},
		"select id, target from sys_invocation":                             {Table: partition.Invocations, Detail: partition.Heads, Keys: partition.AllKeys},
		"select created_at from sys_invocation":                             {Table: partition.Invocations, Detail: partition.Whole, Keys: partition.AllKeys},
		"select created_at from sys_invocation where id = '" + someID + "'": {Table: partition.Invocations, Detail: partition.Whole, ID: id, Keys: one(id.PartitionKey())},
		"select id from sys_invocation where target_service_name = 'Counter' and target_handler_name = 'add'": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: partition.AllKeys, Services: []string{"Counter"}, Handlers: []string{"add"}},
		"select id from sys_invocation where target_service_name = 'Counter' and target_service_key = 'alice'": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: alice, Services: []string{"Counter"}, Objects: []string{"alice"}},
		"select id from sys_invocation where target = 'Counter/alice/add'": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: partition.AllKeys, Services: []string{"Counter"}},
		"select id from sys_invocation where status = 'backing-off'": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: partition.AllKeys, Statuses: []machine.Status{machine.Invoked}},
		"select id from sys_invocation where status in ('ready', 'paused', 'running', 'sleeping')": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: partition.AllKeys, Statuses: []machine.Status{machine.Invoked, machine.Paused}},
		"select id from sys_invocation i where (i.status = 'paused' or i.status = 'pending') and i.status in ('pending', 'completed')": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: partition.AllKeys, Statuses: []machine.Status{machine.Inboxed}},
		"select count(*) from sys_invocation where target_service_name in ('A', 'it''s') and target_handler_name in ('x', 'y') group by status": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: partition.AllKeys, Services: []string{"A", "it's"}, Handlers: []string{"x", "y"}},
		"select id from sys_invocation where status = 'paused' or status = 'suspended' order by id": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: partition.AllKeys, Statuses: []machine.Status{machine.Paused, machine.Suspended}},
		"select id from sys_invocation_status where status in ('inboxed', 'completed') limit 3": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: partition.AllKeys, Statuses: []machine.Status{machine.Inboxed, machine.Completed}},
		"select value from state where service_name in ('A', 'B')": {
			Table: partition.State, Detail: partition.Whole, Keys: partition.AllKeys, Services: []string{"A", "B"}},
		"select id from sys_invocation where status <> 'completed'": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: partition.AllKeys, Statuses: open},
		"select id from sys_invocation where completed_at is null": {
			Table: partition.Invocations, Detail: partition.Whole, Keys: partition.AllKeys, Statuses: open},
		"select id from sys_invocation where completion_result = 'failure'": {
			Table: partition.Invocations, Detail: partition.Whole, Keys: partition.AllKeys, Statuses: []machine.Status{machine.Completed}},
		"select id from sys_invocation_status where partition_key = 13803158172436129791": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: one(13803158172436129791)},
		"select id from sys_invocation_status where partition_key = '13803158172436129791'": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: one(13803158172436129791)},
		"select id from sys_invocation_status where partition_key = '7912481858132400394'": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: one(7912481858132400394)},
		"select id from sys_invocation_status where partition_key = 5.0": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: partition.AllKeys},
		"select id from sys_invocation where scope = 'tenant'": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: one(ids.HashKey(scope)), Scope: &scope},
		"select raw_length from sys_journal where id = '" + someID + "'": {Table: partition.Journal, Detail: partition.Heads, ID: id, Keys: one(id.PartitionKey())},
		"select entry_json from sys_journal where id = '" + someID + "'": {Table: partition.Journal, Detail: partition.Whole, ID: id, Keys: one(id.PartitionKey())},
		"select value from state where service_name = 'Counter' and service_key = 'alice'": {
			Table: partition.State, Detail: partition.Whole, Keys: alice, Services: []string{"Counter"}, Objects: []string{"alice"}},
		"select key from state where scope is null and service_key = 'alice'": {
			Table: partition.State, Detail: partition.Heads, Keys: alice, Scope: &none, Objects: []string{"alice"}},
		"select acquired_by from sys_locks where lock_name = 'Counter/alice'": {
			Table: partition.Locks, Detail: partition.Heads, Keys: alice, Services: []string{"Counter"}, Objects: []string{"alice"}},
		"select num_ahead from sys_inbox where id = '" + someID + "'": {
			Table: partition.Waiting, Detail: partition.Heads, ID: id, Ahead: true, Keys: one(id.PartitionKey())},
		"select sequence_number from sys_inbox where id = '" + someID + "'": {
			Table: partition.Waiting, Detail: partition.Heads, ID: id, Keys: one(id.PartitionKey())},
		"select num_ahead from sys_vqueues where entry_id = '" + someID + "'": {
			Table: partition.Invocations, Detail: partition.Whole, ID: id, Ahead: true, Keys: one(id.PartitionKey())},
		"select num_inbox from sys_vqueue_meta where id = '" + queue.String() + "'": {
			Table: partition.Queues, Detail: partition.Whole, Keys: one(queue.PartitionKey())},
		"select entry_id from sys_vqueues where id = '" + queue.String() + "'": {
			Table: partition.Invocations, Detail: partition.Whole, Keys: one(queue.PartitionKey())},
		// Compared in another way than byte by byte, nothing can be left to the source.
		"select id from sys_invocation where target_service_name = 'COUNTER' collate nocase": {
			Table: partition.Invocations, Detail: partition.Heads, Keys: partition.AllKeys},
	} {
		m := &memory{count: 4}
		_, err := newTestEngine(t, Config{Partitions: m}).WriteJSON(t.Context(), query, Options{}, io.Discard)
		require.NoError(t, err, query)
		partitions := 4
		if want.Keys != partition.AllKeys {
			partitions = 1
		}
		require.Len(t, m.asked, partitions, query)
		require.Equal(t, want, m.asked[0], query)
	}
}

// TestWithScopesAKeyIsInAnyPartition looks for a key where scopes decide about the
// partition.
func TestWithScopesAKeyIsInAnyPartition(t *testing.T) {
	for query, partitions := range map[string]int{
		"select id from sys_invocation where target_service_key = 'alice'":                   4,
		"select id from sys_invocation where target_service_key = 'alice' and scope is null": 1,
		"select id from sys_invocation where target_service_key = 'alice' and scope = 'x'":   1,
	} {
		m := &memory{count: 4, scoped: true}
		_, err := newTestEngine(t, Config{Partitions: m}).WriteJSON(t.Context(), query, Options{}, io.Discard)
		require.NoError(t, err)
		require.Len(t, m.asked, partitions, query)
	}
}

func TestImpossibleConditionsReadNothing(t *testing.T) {
	for _, query := range []string{
		"select * from sys_invocation where id = 'nonsense'",
		"select * from sys_vqueues where id = 'nonsense'",
		"select * from sys_invocation where status = 'sleeping'",
		"select * from sys_invocation where status in ('sleeping', 'dreaming')",
		"select * from sys_invocation where status in ('paused', 'pending') and status = 'completed'",
		"select * from sys_invocation where status = 'paused' and completion_result = 'success'",
		"select * from state where service_name = null",
	} {
		m := &memory{}
		written, err := newTestEngine(t, Config{Partitions: m}).WriteJSON(t.Context(), query, Options{}, io.Discard)
		require.NoError(t, err)
		require.Zero(t, written.Rows)
		require.Empty(t, m.asked, query)
	}
}

// TestPartitionKeysAsText finds rows by a partition key that is written as text, like a number.
func TestPartitionKeysAsText(t *testing.T) {
	id, err := ids.ParseInvocation(someID)
	require.NoError(t, err)
	inv := &machine.Invocation{ID: id, Status: machine.Completed, Target: machine.Target{Service: "S", Handler: "h"}}
	high := &machine.Invocation{ID: ids.Invocation{255, 1}, Status: machine.Completed, Target: inv.Target}
	e := newTestEngine(t, Config{Partitions: &memory{rows: map[partition.Table][]partition.Row{
		partition.Invocations: {{Record: partition.Record{Invocation: inv}}, {Record: partition.Record{Invocation: high}}},
	}}})
	for _, inv := range []*machine.Invocation{inv, high} {
		key := strconv.FormatUint(inv.ID.PartitionKey(), 10)
		for _, condition := range []string{"partition_key = " + key, "partition_key = '" + key + "'", "'" + key + "' = partition_key"} {
			rows := ask(t, e, "select id from sys_invocation_status where "+condition)
			require.Len(t, rows, 1, condition)
			require.Equal(t, inv.ID.String(), rows[0]["id"])
		}
		for _, list := range []string{"('" + key + "')", "('5', '" + key + "')", "('" + key + "', 5)"} {
			rows := ask(t, e, "select id from sys_invocation_status where partition_key in "+list)
			require.Len(t, rows, 1, list)
			require.Equal(t, inv.ID.String(), rows[0]["id"])
			rows = ask(t, e, "select id from sys_invocation_status i where i.partition_key not in "+list)
			require.Len(t, rows, 1, list)
			require.NotEqual(t, inv.ID.String(), rows[0]["id"])
		}
	}
}

// TestJoinsLookUp reads the journals of the invocations found, and no others.
func TestJoinsLookUp(t *testing.T) {
	id, err := ids.ParseInvocation(someID)
	require.NoError(t, err)
	inv := &machine.Invocation{ID: id, Status: machine.Completed, Target: machine.Target{Service: "S", Handler: "h"}}
	m := &memory{rows: map[partition.Table][]partition.Row{
		partition.Invocations: {{Record: partition.Record{Invocation: inv}}},
		partition.Journal:     {{ID: id}, {ID: id, Index: 1}, {ID: ids.Invocation{7}}},
	}}
	e := newTestEngine(t, Config{Partitions: m})
	rows := ask(t, e, "select j.index from sys_invocation i join sys_journal j on j.id = i.id where i.target_service_name = 'S' order by j.index desc")
	require.Len(t, rows, 2)
	require.Equal(t, "1", toText(rows[0]["index"]))
	require.Len(t, m.asked, 2)
	require.Equal(t, id, m.asked[1].ID)
}

// TestListsHaveTheSameMeaningEverywhere compares lists with equalities that are not
// pushed down to a source.
func TestListsHaveTheSameMeaningEverywhere(t *testing.T) {
	var rows []partition.Row
	for n, status := range []machine.Status{machine.Scheduled, machine.Inboxed, machine.Suspended, machine.Paused, machine.Completed} {
		inv := &machine.Invocation{ID: ids.Invocation{byte(n)}, Status: status, Target: machine.Target{Service: string(rune('A' + n)), Handler: "h"}}
		rows = append(rows, partition.Row{Record: partition.Record{Invocation: inv}})
	}
	e := newTestEngine(t, Config{Partitions: &memory{rows: map[partition.Table][]partition.Row{partition.Invocations: rows}}})
	for query, want := range map[string]string{
		"where status in ('paused', 'pending')":                                                "BD",
		"where not status in ('paused', 'pending')":                                            "ACE",
		"where status not in ('paused', 'pending')":                                            "ACE",
		"where not (status in ('paused', 'pending') or target_service_name in ('A', 'B'))":     "CE",
		"where target_service_name = 'A' or (status in ('paused', 'pending'))":                 "ABD",
		"where status = 'paused' or status = 'pending' or target_service_name = 'E'":           "BDE",
		"where (status = 'paused' or status = 'pending') and target_service_name in ('A','D')": "D",
		"where status in ('paused', 'pending') is false":                                       "ACE",
		"where status = 'paused' or status = 'pending' and target_service_name = 'B'":          "BD",
		"where case when status in ('paused', 'x') then 1 else 0 end":                          "D",
	} {
		got := ""
		for _, r := range ask(t, e, "select target_service_name as s from sys_invocation "+query+" order by s") {
			got += toText(r["s"])
		}
		require.Equal(t, want, got, query)
	}
	named := ask(t, e, "select status in ('paused', 'x') from sys_invocation limit 1")
	require.Contains(t, named[0], "status in ('paused', 'x')", "the name is the user's")
	_, err := e.WriteJSON(t.Context(), "select id from sys_invocation where status match 'paused'", Options{}, io.Discard)
	require.ErrorContains(t, err, "MATCH is not supported")
	joined := ask(t, e, "with w as (select status, id from sys_invocation) select count(*) as n from w left join sys_invocation i on i.id = w.id and i.status in ('paused','pending') where w.status in ('paused','pending','completed')")
	require.Equal(t, "3", toText(joined[0]["n"]))
}
