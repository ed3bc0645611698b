package query

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/metadata"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/service"
)

// canaries has a secret in every payload that tables show.
func canaries(t *testing.T) *memory {
	const secret = "canary"
	// The value of an Input, and a header of the caller.
	input, err := (&service.InputCommandMessage{
		Headers: []*service.Header{{Key: "authorization", Value: secret}}, Value: &service.Value{Content: []byte(secret)},
	}).MarshalVT()
	require.NoError(t, err)
	return &memory{rows: map[partition.Table][]partition.Row{
		partition.State: {{Object: machine.Object{Service: "Counter", Key: "k"}, Key: "total", Value: []byte(secret), Size: 6}},
		partition.Promises: {
			{Object: machine.Object{Service: "Order", Key: "k"}, Key: "paid", Promise: machine.Promise{Result: &journal.Result{Value: []byte(secret)}}},
			{Object: machine.Object{Service: "Order", Key: "k"}, Key: "sent", Promise: machine.Promise{Result: &journal.Result{Failure: &journal.Failure{Code: 400, Message: secret}}}},
		},
		partition.Journal: {{Entry: journal.Entry{Type: journal.Input, Payload: input}, Size: len(input)}},
	}}
}

func written(t *testing.T, e *Engine, text string, o Options) string {
	t.Helper()
	var out bytes.Buffer
	_, err := e.WriteJSON(t.Context(), text, o, &out)
	require.NoError(t, err, text)
	return out.String()
}

func TestViewersSeeNoPayloads(t *testing.T) {
	e := newTestEngine(t, Config{Partitions: canaries(t)})
	shown := 0
	for table, columns := range payloadColumns {
		at := slices.IndexFunc(e.Tables(), func(x *Table) bool { return x.Name == table })
		require.GreaterOrEqual(t, at, 0, table)
		for _, c := range columns {
			require.True(t, slices.ContainsFunc(e.Tables()[at].Columns, func(x Column) bool { return x.Name == c }), "%s.%s", table, c)
			for _, query := range []string{
				"select " + c + " as v from " + table,
				"select * from " + table,
				"select hex(" + c + ") as v from " + table,
				"select substr(cast(" + c + " as text), 1, 6) as v from " + table,
				"select coalesce(" + c + ", 'none') as v from " + table + " order by " + c,
				"select count(*) as v from " + table + " where " + c + " is not null",
				"select max(v) as v from (select " + c + " as v from " + table + " union select 'a')",
				"with x as (select * from " + table + ") select x." + c + " as v from x join " + table + " on 1",
			} {
				text := written(t, e, query, Options{HidePayloads: true})
				require.NotContains(t, text, "canary", query)
				require.NotContains(t, text, "99,97,110,97,114,121", query) // as an array of bytes
				require.NotContains(t, text, "63616E617279", query)         // in hexadecimal
				require.NotContains(t, text, "Y2FuYXJ5", query)             // in base64
				require.NotContains(t, text, `"v":1`, query)
				if written(t, e, query, Options{}) != text {
					shown++
				}
			}
		}
	}
	require.Greater(t, shown, 30, "readers see them")
}

// No table shows a payload to viewers, whether or not its columns are known to contain some.
func TestNoTableShowsPayloadsToViewers(t *testing.T) {
	e := newTestEngine(t, Config{Partitions: canaries(t)})
	readable := 0
	for _, table := range e.Tables() {
		for _, options := range []Options{{HidePayloads: true, HideAudit: true}, {}} {
			var out bytes.Buffer
			_, err := e.WriteJSON(t.Context(), "select * from "+table.Name, options, &out)
			if table.Name == "sys_audit" && options.HideAudit {
				require.Error(t, err)
				continue
			}
			require.NoError(t, err, table.Name)
			shown := false
			for _, form := range []string{"canary", "99,97,110,97,114,121", "63616E617279", "63616e617279", "Y2FuYXJ5"} {
				shown = shown || strings.Contains(out.String(), form)
			}
			require.False(t, shown && options.HidePayloads, "%s: %s", table.Name, out.String())
			if shown {
				readable++
			}
		}
	}
	require.GreaterOrEqual(t, readable, 3, "readers see them")
}

func TestAuditLogRequiresAPermission(t *testing.T) {
	e := newTestEngine(t, Config{Audit: func() ([]metadata.AuditRecord, error) {
		return []metadata.AuditRecord{{Sequence: 7, At: time.UnixMilli(1), Action: metadata.Action{Principal: "ada", Action: "DELETE /tokens/:token", Objects: []string{"inv_1", "inv_2"}}, Hash: []byte{1}}}, nil
	}})
	require.Contains(t, written(t, e, "select invocations from sys_audit where array_has(invocations, 'inv_2')", Options{}), `"inv_1"`)
	require.Contains(t, written(t, e, "select sequence, principal, hash from sys_audit", Options{}), `"principal":"ada"`)
	for _, query := range []string{"select * from sys_audit", "select count(*) as n from sys_audit", "select 1 as n where exists (select 1 from sys_audit)"} {
		var out bytes.Buffer
		_, err := e.WriteJSON(t.Context(), query, Options{HideAudit: true}, &out)
		require.ErrorContains(t, err, "requires the role security", query)
		require.False(t, strings.Contains(out.String(), "ada"))
	}
}
