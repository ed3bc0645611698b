package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
)

func TestFailuresArePaged(t *testing.T) {
	w := newWorld(t, nil)
	w.failures = &FailureGroups{Other: 2}
	for n := range 25 {
		w.failures.Groups = append(w.failures.Groups, FailureGroup{
			ID: fmt.Sprintf("fg_%016x", n), Service: "S", Handler: "h", Code: 500, Message: "boom ?", Count: 1, LastSeen: Timestamp(1000 - n/5),
			FirstSeen: 7, ByStatus: map[Status]int{StatusPaused: 1}, Deployments: []ids.Deployment{},
		})
	}
	var found []struct{ ID string }
	for cursor := ""; ; {
		var page struct {
			Groups   []struct{ ID string } `json:"groups"`
			Next     string                `json:"next_cursor"`
			Other    int                   `json:"other"`
			Complete bool                  `json:"complete"`
		}
		body := text(t, w.ask(t, "GET", "/failures?limit=7&service=S&cursor="+cursor, ""))
		require.NoError(t, json.Unmarshal([]byte(body), &page), body)
		require.Equal(t, []string{"S"}, w.query.Services)
		require.Equal(t, 2, page.Other)
		require.True(t, page.Complete)
		found = append(found, page.Groups...)
		if cursor = page.Next; cursor == "" {
			break
		}
		require.Len(t, page.Groups, 7)
	}
	require.Len(t, found, 25)
	for n, g := range found {
		require.Equal(t, w.failures.Groups[n].ID, g.ID)
	}
	for _, cursor := range []string{"x", "zz.fg_1", "!.fg_0011223344556677"} {
		refused := w.ask(t, "GET", "/failures?cursor="+cursor, "")
		require.Equal(t, http.StatusBadRequest, refused.StatusCode)
		requireError(t, refused, text(t, refused), "", "The query parameter 'cursor' is invalid")
	}
}

func TestOneFailureGroup(t *testing.T) {
	w := newWorld(t, nil)
	g := FailureGroup{
		ID: "fg_0011223344556677", Service: "S", Handler: "h", ErrorCode: "RT0007", Code: 500, Message: "boom", Sample: "inv_1", Count: 3,
		ByStatus: map[Status]int{StatusPaused: 2, StatusCompleted: 1}, Keys: 2, FirstSeen: 5, LastSeen: 9, Deployments: []ids.Deployment{"dp_1"},
	}
	w.failures = &FailureGroups{Groups: []FailureGroup{g}}
	goldenJSON(t, "failure", text(t, w.ask(t, "GET", "/failures/"+g.ID, "")))
	require.Equal(t, Query{Filter: Filter{FailureGroup: g.ID}}, w.query)
	for id, status := range map[string]int{"fg_0011223344556678": 404, "fg_1": 400, "1": 400} {
		refused := w.ask(t, "GET", "/failures/"+id, "")
		require.Equal(t, status, refused.StatusCode)
		requireError(t, refused, text(t, refused), "", "")
	}
}
