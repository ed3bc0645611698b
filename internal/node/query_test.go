package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/config"
)

// sql runs a query on node i.
func (c *testCluster) sql(i int, text string) []map[string]any {
	c.t.Helper()
	body, err := json.Marshal(map[string]string{"query": text})
	require.NoError(c.t, err)
	code, answer := c.do(i, true, "POST", "/query", string(body))
	require.Equal(c.t, http.StatusOK, code, answer)
	var rows struct{ Rows []map[string]any }
	require.NoError(c.t, json.Unmarshal([]byte(answer), &rows), answer)
	return rows.Rows
}

// TestQueriesSeeAllPartitions queries each node of a cluster for rows spread over partitions that
// are mostly led by other nodes.
func TestQueriesSeeAllPartitions(t *testing.T) {
	c := newTestCluster(t, 3)
	c.healthy(3, 0, 1, 2)
	c.counter(0)
	c.replicated(0, 1, 2)
	for key := range 20 {
		code, body := c.do(0, false, "POST", fmt.Sprintf("/platform/call/Counter/k%d/add", key), "2")
		require.Equal(t, http.StatusOK, code, body)
		code, body = c.do(1, false, "POST", fmt.Sprintf("/platform/send/Counter/k%d/add?delay=1h", key), "3")
		require.Equal(t, http.StatusAccepted, code, body)
	}
	for i := range c.nodes {
		require.Equal(t, []map[string]any{{"status": "completed", "n": 20.0}, {"status": "scheduled", "n": 20.0}},
			c.sql(i, "SELECT status, COUNT(*) AS n FROM sys_invocation GROUP BY status ORDER BY status"))
		require.Equal(t, []map[string]any{{"n": 20.0, "sum": 40.0}},
			c.sql(i, "SELECT COUNT(*) AS n, SUM(CAST(value_utf8 AS INT)) AS sum FROM state WHERE service_name = 'Counter'"))
		require.Equal(t, []map[string]any{{"service_key": "k7", "value_utf8": "2", "value": "32"}},
			c.sql(i, "SELECT service_key, value_utf8, value FROM state WHERE service_name = 'Counter' AND service_key = 'k7'"))
		require.Equal(t, []map[string]any{{"target": "Counter/k7/add", "target_service_ty": "virtual_object", "invoked_by": "ingress"}},
			c.sql(i, "SELECT target, target_service_ty, invoked_by FROM sys_invocation WHERE target = 'Counter/k7/add' AND status = 'scheduled'"))
		require.Equal(t, []map[string]any{{"n": 20.0}},
			c.sql(i, "SELECT COUNT(*) AS n FROM sys_invocation WHERE created_at > now() - INTERVAL '10 minutes' AND scheduled_start_at - created_at >= INTERVAL '59 minutes'"))
		require.Len(t, c.sql(i, "SELECT * FROM nodes WHERE state = 'alive'"), 3)
		require.Len(t, c.sql(i, "SELECT * FROM partitions WHERE leader_plain_node_id IS NOT NULL"), 4)
		require.Equal(t, []map[string]any{{"name": "Counter", "ty": "virtual_object"}}, c.sql(i, "SELECT name, ty FROM sys_service"))
	}
	require.Equal(t, []map[string]any{{"value": "n1"}, {"value": "n2"}, {"value": "n3"}},
		c.sql(1, "SELECT c.value FROM config c JOIN nodes n USING (plain_node_id) WHERE c.key = 'node-name' AND n.name = c.value AND c.gen_node_id LIKE c.plain_node_id || ':%' ORDER BY 1"),
		"each node tells its own")
	require.Len(t, c.sql(0, "SELECT * FROM partition_state WHERE applied_schema_version > 0 AND storage_version > 0"), 12)
	rows := c.sql(2, `SELECT i.id, j.index, j.entry_type, j.name FROM sys_invocation i JOIN sys_journal j ON j.id = i.id
		WHERE i.target_service_key = 'k3' AND i.status = 'completed' ORDER BY j.index`)
	var types []any
	for _, row := range rows {
		types = append(types, row["entry_type"])
	}
	require.Contains(t, types, "Command: SetState")
	require.Equal(t, "Command: Input", types[0])
	require.Equal(t, "Command: Output", types[len(types)-1])

	c.stop(2)
	require.Equal(t, []map[string]any{{"name": "n1", "told": 1.0}, {"name": "n2", "told": 1.0}, {"name": "n3", "told": 0.0}},
		c.sql(0, `SELECT n.name, COUNT(c.key) AS told FROM nodes n LEFT JOIN config c ON c.plain_node_id = n.plain_node_id AND c.key = 'node-name'
			GROUP BY 1 ORDER BY 1`), "who does not answer is left out")
	require.Equal(t, []map[string]any{{"name": "n3"}}, c.sql(0, "SELECT name FROM nodes WHERE nodes_configuration_version IS NULL"), "and can be found")
}

func TestQueriesThatAreRefused(t *testing.T) {
	c := newTestCluster(t, 1)
	c.healthy(1, 0)
	for text, want := range map[string]string{
		`{"query":"SELECT x FROM sys_invocation"}`:     `"line":1,"column":8`,
		`{"query":"DELETE FROM state"}`:                `queries can only read`,
		`{"query":"SELECT * FROM sys_invocations"}`:    `did you mean sys_invocation?`,
		`{"query":"SELECT 1; SELECT 2"}`:               `one query at a time`,
		`{"query":"SELECT * FROM state WHERE 1/0 = "}`: `unexpected end of the query`,
	} {
		code, answer := c.do(0, true, "POST", "/query", text)
		require.Equal(t, http.StatusBadRequest, code, answer)
		require.Contains(t, answer, want)
	}
	code, answer := c.do(0, true, "GET", "/query/tables", "")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, answer, `"name":"sys_invocation"`)
	code, answer = c.do(0, true, "POST", "/query", `{"query":"SELECT partition_key FROM sys_invocation_status WHERE id = 'x'","u64_as_text":true}`)
	require.Equal(t, http.StatusOK, code, answer)
	require.Len(t, c.sql(0, "SELECT * FROM config WHERE key = 'node-name'"), 1)
}

// Tokens with limits read the rows of their services and scopes, however these are spread over
// partitions, completed, queued or scheduled.
func TestTokensWithLimitsReadTheirRows(t *testing.T) {
	c := newTestClusterWith(t, 1, func(cfg *config.Config) { cfg.EnableVQueues, cfg.EnableProtocolV7 = true, true })
	c.healthy(1, 0)
	c.objects(0, func(h http.Handler) http.Handler { return h }, "", "Counter", "Ledger")
	for key := range 20 {
		for _, service := range []string{"Counter", "Ledger"} {
			for _, scope := range []string{"", "/scope/a", "/scope/b"} {
				code, body := c.do(0, false, "POST", fmt.Sprintf("/platform%s/call/%s/k%d/add", scope, service, key), "2")
				require.Equal(t, http.StatusOK, code, body)
				code, body = c.do(0, false, "POST", fmt.Sprintf("/platform%s/send/%s/k%d/add?delay=1h", scope, service, key), "3")
				require.Equal(t, http.StatusAccepted, code, body)
			}
		}
	}
	rows := func(token, text string) (int, string, []map[string]any) {
		body, err := json.Marshal(map[string]string{"query": text})
		require.NoError(t, err)
		code, answer := c.as(token, 0, true, "POST", "/query", string(body))
		var result struct{ Rows []map[string]any }
		if code == http.StatusOK {
			require.NoError(t, json.Unmarshal([]byte(answer), &result), answer)
		}
		return code, answer, result.Rows
	}
	create := func(name, limits string) string {
		var created struct{ Token string }
		code, body := c.do(0, true, "POST", "/tokens", fmt.Sprintf(`{"name":%q,"roles":["reader"],%s}`, name, limits))
		require.Equal(t, http.StatusCreated, code, body)
		require.NoError(t, json.Unmarshal([]byte(body), &created))
		return created.Token
	}
	for name, limit := range map[string]struct{ token, where string }{
		"service":       {create("service", `"services":["Counter"]`), "service = 'Counter'"},
		"scope":         {create("scope", `"scopes":["a"]`), "scope = 'a'"},
		"both":          {create("both", `"services":["Ledger"],"scopes":["a","b"]`), "service = 'Ledger' and scope in ('a', 'b')"},
		"other service": {create("other", `"services":["Missing"]`), "0"},
	} {
		for table, owner := range map[string]string{
			"sys_invocation":        "target_service_name as service, scope from sys_invocation t",
			"sys_invocation_status": "target_service_name as service, scope from sys_invocation_status t",
			"state":                 "service_name as service, scope from state t",
			"sys_journal":           "i.target_service_name as service, i.scope from sys_journal t join sys_invocation i on i.id = t.id",
			"sys_vqueue_meta":       "service_name as service, scope from sys_vqueue_meta t",
			"sys_vqueues":           "i.target_service_name as service, i.scope from sys_vqueues t join sys_invocation i on i.id = t.entry_id",
			"sys_service":           "name as service, 'a' as scope from sys_service t",
		} {
			want := c.sql(0, "select count(*) as n from (select t.*, "+owner+") where "+limit.where)
			code, answer, got := rows(limit.token, "select count(*) as n from "+table)
			require.Equal(t, http.StatusOK, code, answer)
			require.Equal(t, want, got, "%s: %s", name, table)
			if limit.where != "0" {
				require.NotEqual(t, 0.0, want[0]["n"], "%s: %s", name, table)
			}
			code, answer, _ = rows(limit.token, "select * from "+table)
			require.Equal(t, http.StatusOK, code)
			if name != "scope" {
				outside := map[string]string{"service": "Ledger", "both": "Counter", "other service": "er/k"}[name]
				require.NotContains(t, answer, `"`+outside, "%s: %s", name, table)
			}
		}
		code, answer, _ := rows(limit.token, "select * from nodes")
		require.Equal(t, http.StatusForbidden, code)
		require.Contains(t, answer, "the table nodes requires a token that is not limited")
	}
}
