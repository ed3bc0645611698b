package sdk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

// journalEvent is a row of sys_journal_events.
type journalEvent struct {
	After int    `json:"after_journal_entry_index"`
	At    string `json:"appended_at"`
	Type  string `json:"event_type"`
	JSON  string `json:"event_json"`
}

// failureEvent is the event_json of a failed attempt, with the names of the peer.
type failureEvent struct {
	Type         string        `json:"ty"`
	Code         int           `json:"error_code"`
	Message      string        `json:"error_message"`
	Stacktrace   string        `json:"error_stacktrace"`
	DocCode      string        `json:"restate_doc_error_code"`
	RelatedIndex *int          `json:"related_command_index"`
	RelatedName  string        `json:"related_command_name"`
	RelatedType  string        `json:"related_command_type"`
	LastFailure  *failureEvent `json:"last_failure"` // of a pause
}

// events returns the events of an invocation, the oldest first.
func (e *env) events(id string) (events []journalEvent, bodies []failureEvent) {
	e.Helper()
	sql := "SELECT after_journal_entry_index, appended_at, event_type, event_json FROM sys_journal_events WHERE id = '" + id + "' ORDER BY appended_at"
	resp := e.admin(http.MethodPost, "/query", map[string]string{"query": sql})
	require.Equal(e, http.StatusOK, resp.Status, "%s", resp.Body)
	var out struct {
		Rows []journalEvent `json:"rows"`
	}
	require.NoError(e, json.Unmarshal(resp.Body, &out))
	for _, row := range out.Rows {
		var body failureEvent
		require.NoError(e, json.Unmarshal([]byte(row.JSON), &body), row.JSON)
		require.Equal(e, row.Type, body.Type)
		bodies = append(bodies, body)
		e.Log(row.After, row.Type, row.JSON)
	}
	return out.Rows, bodies
}

var historyCases = []testCase{
	{"the failures of an invocation are kept after its completion", func(e *env) {
		id := e.startIdempotent(e.path("Paused", "work"), contract.Step{ID: e.id(), Fail: 4})
		e.awaitStatus(id, "paused")
		e.requireOperation(id, "resume") // three more attempts, of which the second succeeds
		var n int
		e.result(id, &n)
		require.Equal(e, 5, n)

		_, bodies := e.events(id)
		bodies = slices.DeleteFunc(bodies, func(b failureEvent) bool { return b.Type == "Resumed" }) // the peer does not record it
		require.Len(e, bodies, 4)
		require.NotNil(e, bodies[2].LastFailure)
		require.Equal(e, "Paused", bodies[2].Type)
		bodies[2] = *bodies[2].LastFailure
		for i := range bodies {
			require.Equal(e, 500, bodies[i].Code)
			require.Contains(e, bodies[i].Message, fmt.Sprintf("attempt %d is meant to fail", i+1))
			require.Equal(e, "RT0007", bodies[i].DocCode)
		}
	}},
	{"equal failures are one event until there is progress", func(e *env) {
		id := e.startIdempotent(e.path("Steps", "retry"), contract.Step{ID: e.id(), Fail: 3})
		var n int
		e.result(id, &n)
		require.Equal(e, 4, n)
		events, bodies := e.events(id)
		require.NotEmpty(e, events)
		for i, body := range bodies {
			require.Equal(e, "TransientError", body.Type)
			require.Contains(e, body.Message, fmt.Sprintf("attempt %d is meant to fail", i+1))
			require.NotNil(e, body.RelatedIndex)
			require.Equal(e, 1, *body.RelatedIndex)
			require.Contains(e, body.RelatedType, "Run")
		}
	}},
}
