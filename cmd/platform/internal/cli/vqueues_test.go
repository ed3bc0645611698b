package cli

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/client"
)

func TestDescribedQueuesSayWhatIsNotShown(t *testing.T) {
	queue := client.VQueue{ID: "vq_1", Inbox: 290, Running: 1, Finished: 9}
	require.Empty(t, entriesFooter(&queue, 300, client.QueueOrder))
	require.Equal(t, "Showing 100/300 entries. Use --limit to see more.", entriesFooter(&queue, 100, client.QueueOrder))
	require.Contains(t, entriesFooter(&queue, 100, client.UnfinishedAsFound), "Showing 100/300 entries, an arbitrary selection of those that have not ended.")
	require.Equal(t, "Showing 100/300 entries, an arbitrary selection. All have ended.", entriesFooter(&queue, 100, client.AsFound))
}

func TestLongQueuesAreNotRead(t *testing.T) {
	require.Equal(t, client.QueueOrder, orderOf(&client.VQueue{Inbox: 1000, Finished: 9000}, false))
	require.Equal(t, client.UnfinishedAsFound, orderOf(&client.VQueue{Inbox: 1, Finished: 10_000}, false))
	require.Equal(t, client.AsFound, orderOf(&client.VQueue{Finished: 10_001}, false))
	require.Equal(t, client.NewestFirst, orderOf(&client.VQueue{Inbox: 10_001}, true))
}

// A token that is limited to a service may see its vqueues, but not which scopes are paused.
func TestVQueuesAreListedWithoutPausedScopes(t *testing.T) {
	a, out := at(t, func(w http.ResponseWriter, r *http.Request) {
		query, _ := io.ReadAll(r.Body)
		if strings.Contains(string(query), "sys_user_limits") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"message":"the table sys_user_limits requires a token that is not limited to services"}`)
			return
		}
		_, _ = io.WriteString(w, `{"rows":[{"id":"vq_1","service_name":"Orders","scope":"acme","num_inbox":3}]}`)
	})
	cmd := a.vqueuesList()
	cmd.SetArgs(nil)
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	require.Contains(t, out.String(), "vq_1")
}
