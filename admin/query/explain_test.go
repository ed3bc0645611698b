package query

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExplainDescribesThePlan(t *testing.T) {
	e := newTestEngine(t, Config{})
	plan := func(text string) string {
		t.Helper()
		var out bytes.Buffer
		_, err := e.WriteJSON(t.Context(), text, Options{}, &out)
		require.NoError(t, err, text)
		var result struct {
			Rows []struct {
				Step int
				Plan string
			}
		}
		require.NoError(t, json.Unmarshal(out.Bytes(), &result), out.String())
		var lines []string
		for i, r := range result.Rows {
			require.Equal(t, i+1, r.Step)
			lines = append(lines, r.Plan)
		}
		return strings.Join(lines, "\n")
	}
	for query, want := range map[string]string{
		"EXPLAIN SELECT id FROM sys_invocation": "read all of sys_invocation",
		"explain select id from sys_invocation i where i.status = 'paused' and target_service_name in ('A', 'B') order by created_at": "read from sys_invocation AS i where status = ? AND target_service_name IN (…)\nsort for ORDER BY",
		"EXPLAIN SELECT * FROM sys_invocation WHERE id = 'inv_1'":                                                                     "read from sys_invocation where id = ?",
		"EXPLAIN VALUES (1, 2)":   "scan constant row",
		"EXPLAIN VALUES (1), (2)": "scan 2-row values clause",
		"EXPLAIN SELECT 1":        "scan constant row",
		"EXPLAIN SELECT s.name FROM sys_service s LEFT JOIN state st ON st.service_name = s.name": "read all of sys_service AS s\nread from state AS st where service_name = ?, as the right side of a LEFT JOIN",
	} {
		require.Equal(t, want, plan(query), query)
	}
	nested := plan("EXPLAIN SELECT id FROM sys_invocation WHERE id IN (SELECT id FROM sys_journal WHERE name = 'it''s') UNION SELECT id FROM sys_invocation")
	require.Contains(t, nested, "\n  ", "steps of parts are indented")
	_, err := e.WriteJSON(t.Context(), "EXPLAIN SELECT nothing FROM sys_invocation", Options{}, &bytes.Buffer{})
	require.ErrorContains(t, err, "nothing")
	_, err = e.WriteJSON(t.Context(), "EXPLAIN DELETE FROM sys_invocation", Options{}, &bytes.Buffer{})
	require.Error(t, err)
}
