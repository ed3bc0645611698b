package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// get reads JSON from the admin API of node i.
func (c *testCluster) get(i int, path string, into any) {
	c.t.Helper()
	code, body := c.do(i, true, "GET", path, "")
	require.Equal(c.t, http.StatusOK, code, body)
	require.NoError(c.t, json.Unmarshal([]byte(body), into), body)
}

// listed reads all pages of a list from node i.
func (c *testCluster) listed(i int, path string) (found []string) {
	c.t.Helper()
	for cursor := ""; ; {
		var page struct {
			Invocations []struct{ ID string }
			Next        string `json:"next_cursor"`
		}
		c.get(i, path+"&limit=7&cursor="+url.QueryEscape(cursor), &page)
		for _, inv := range page.Invocations {
			found = append(found, inv.ID)
		}
		if cursor = page.Next; cursor == "" {
			return found
		}
	}
}

// Lists, counts and failure groups come from the leaders of all partitions, on any node, and
// include what was acknowledged before.
func TestListsCountsAndFailureGroups(t *testing.T) {
	c := newTestCluster(t, 3)
	c.healthy(3, 0, 1, 2)
	c.counter(0)
	c.replicated(0, 1, 2)
	type counts struct {
		Total    int
		ByStatus map[string]int `json:"by_status"`
		ByResult map[string]int `json:"by_result"`
		Complete bool
	}
	for round := range 2 {
		for key := range 20 {
			code, body := c.do(0, false, "POST", fmt.Sprintf("/platform/call/Counter/k%d/add", key), "2")
			require.Equal(t, http.StatusOK, code, body)
			code, body = c.do(1, false, "POST", fmt.Sprintf("/platform/send/Counter/k%d/add?delay=1h", key), "3")
			require.Equal(t, http.StatusAccepted, code, body)
		}
		for key := range 3 {
			code, body := c.do(0, false, "POST", fmt.Sprintf("/platform/call/Counter/bad%d/add", key), `"no number"`)
			require.GreaterOrEqual(t, code, 400, body)
		}
		total := 43 * (round + 1)
		for i := range c.nodes {
			var n counts
			c.get(i, "/invocations/counts?service=Counter", &n)
			require.Equal(t, total, n.Total)
			require.Equal(t, 20*(round+1), n.ByStatus["scheduled"])
			require.Equal(t, 20*(round+1), n.ByResult["success"])
			require.Equal(t, 3*(round+1), n.ByResult["failure"])
			require.True(t, n.Complete)
			var groups struct {
				Groups []struct {
					ID    string
					Count int
					Keys  int
				}
			}
			c.get(i, "/failures", &groups)
			require.Len(t, groups.Groups, 1)
			require.Equal(t, 3*(round+1), groups.Groups[0].Count)
			require.Equal(t, 3, groups.Groups[0].Keys)
			require.Equal(t, []map[string]any{{"id": groups.Groups[0].ID, "service_name": "Counter", "num_completed": 3.0 * float64(round+1), "num_keys": 3.0}},
				c.sql(i, "SELECT id, service_name, num_completed, num_keys FROM sys_failure_group WHERE last_seen_at > now() - INTERVAL '10 minutes'"))
			require.Len(t, c.listed(i, "/invocations?failure_group="+groups.Groups[0].ID), 3*(round+1))
			var one struct{ Count int }
			c.get(i, "/failures/"+groups.Groups[0].ID, &one)
			require.Equal(t, 3*(round+1), one.Count)
		}
		newest, oldest := c.listed(1, "/invocations?service=Counter"), c.listed(2, "/invocations?oldest_first=true")
		require.Len(t, newest, total)
		require.ElementsMatch(t, newest, oldest)
		require.Equal(t, newest[0], oldest[total-1])
		require.Len(t, c.listed(0, "/invocations?sort=modified&status=completed&key=k7&partial=true"), round+1)
	}
	code, body := c.do(0, true, "PATCH", "/invocations/"+c.listed(0, "/invocations?status=scheduled&key=k7")[0]+"/kill", "")
	require.Equal(t, http.StatusOK, code, body)
	require.Len(t, c.listed(2, "/invocations?result=killed"), 1)
	purged := c.listed(0, "/invocations?result=success&key=k3")
	code, body = c.do(0, true, "PATCH", "/invocations/"+purged[0]+"/purge", "")
	require.Equal(t, http.StatusOK, code, body)
	require.Equal(t, purged[1:], c.listed(1, "/invocations?result=success&key=k3"))
}
