package node

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// read decodes the response to a request to the admin API.
func (c *testCluster) read(path string, into any) {
	c.t.Helper()
	code, body := c.do(0, true, "GET", path, "")
	require.Equal(c.t, http.StatusOK, code, body)
	require.NoError(c.t, json.Unmarshal([]byte(body), into), body)
}

type readEntry struct {
	Index     uint32
	Type      string `json:"entry_type"`
	RawLength int    `json:"raw_length"`
	Content   struct {
		Command struct {
			Input struct{ Payload []int }
		}
	}
}

func TestJournalIsReadInPages(t *testing.T) {
	c := newTestCluster(t, 1)
	c.healthy(1, 0)
	c.counter(0)
	code, body := c.do(0, false, "POST", "/platform/call/Counter/a/add", "7")
	require.Equal(t, http.StatusOK, code, body)
	id := c.sql(0, "SELECT id FROM sys_invocation")[0]["id"].(string)

	type page struct {
		Entries []readEntry
		Next    *uint32
	}
	var whole page
	c.read("/invocations/"+id+"/journal", &whole)
	require.Nil(t, whole.Next)
	require.Equal(t, "Command: Input", whole.Entries[0].Type)
	require.Equal(t, []int{'7'}, whole.Entries[0].Content.Command.Input.Payload)
	var joined []readEntry
	for from, more := uint32(0), true; more; {
		var p page
		c.read(fmt.Sprintf("/invocations/%s/journal?limit=2&from=%d", id, from), &p)
		joined = append(joined, p.Entries...)
		if more = p.Next != nil; more {
			from = *p.Next
		}
	}
	require.Equal(t, whole.Entries, joined)

	var lite page
	c.read("/invocations/"+id+"/journal?max_payload=0", &lite)
	require.Empty(t, lite.Entries[0].Content.Command.Input.Payload)
	var entry readEntry
	c.read("/invocations/"+id+"/journal/0", &entry)
	require.Equal(t, whole.Entries[0], entry)
	c.read("/invocations/"+id+"/events", &struct{}{})

	for path, want := range map[string]int{
		"/journal/999": http.StatusNotFound, "/journal/x": http.StatusBadRequest, "/journal?from=-1": http.StatusBadRequest,
		"/journal?limit=1001": http.StatusBadRequest, "/journal?max_payload=4097": http.StatusBadRequest,
	} {
		code, body := c.do(0, true, "GET", "/invocations/"+id+path, "")
		require.Equal(t, want, code, "%s: %s", path, body)
	}
}

func TestQueuesAndCountersAreReadInPages(t *testing.T) {
	c := newTestCluster(t, 1, "--experimental-enable-vqueues", "--experimental-enable-protocol-v7")
	c.healthy(1, 0)
	c.counter(0)
	code, body := c.do(0, true, "PUT", "/limits/rules/*", `{"limits":{"concurrency":1}}`)
	require.Equal(t, http.StatusOK, code, body)
	for i, scope := range []string{"one", "two", "two"} {
		code, body := c.do(0, false, "POST", fmt.Sprintf("/platform/scope/%s/send/Counter/%d/add?delay=1h", scope, i), "1")
		require.Equal(t, http.StatusAccepted, code, body)
	}
	type queue struct {
		ID, Service, Scope string
		Waiting            int
		Status             string `json:"head_status"`
	}
	type page struct {
		VQueues []queue
		Next    string `json:"next_cursor"`
	}
	var first, second, one page
	require.Eventually(t, func() bool {
		c.read("/vqueues?limit=1", &first)
		return len(first.VQueues) == 1 && first.VQueues[0].Waiting == 2
	}, waitTimeout, 10*time.Millisecond)
	require.Equal(t, queue{first.VQueues[0].ID, "Counter", "two", 2, "scheduled"}, first.VQueues[0])
	c.read("/vqueues?limit=1&cursor="+first.Next, &second)
	require.Empty(t, second.Next)
	require.Equal(t, "one", second.VQueues[0].Scope)
	c.read("/vqueues?scope=one", &one)
	var none page
	for _, scope := range []string{"o%27ne", "one%00", "%00%27", "%ff"} {
		c.read("/vqueues?scope="+scope, &none)
		require.Empty(t, none.VQueues, scope)
	}
	require.Equal(t, second.VQueues, one.VQueues)
	var same queue
	c.read("/vqueues/"+second.VQueues[0].ID, &same)
	require.Equal(t, second.VQueues[0], same)

	var counters struct{ Counters []struct{ Scope string } }
	c.read("/limits/counters", &counters)
	c.read("/limits/counters?scope=%00%27&cursor="+base64.RawURLEncoding.EncodeToString([]byte(`{"Scope":"\u0000'"}`)), &counters)
	require.Empty(t, counters.Counters)
	for path, want := range map[string]int{"/vqueues?cursor=x": http.StatusBadRequest, "/vqueues/x": http.StatusBadRequest, "/limits/counters?limit=0": http.StatusBadRequest} {
		code, body := c.do(0, true, "GET", path, "")
		require.Equal(t, want, code, "%s: %s", path, body)
	}
}
