package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/admin/rest"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/metadata"
	"platform/partition/listing"
)

func TestFailuresArePaged(t *testing.T) {
	w := newTestServer(t, nil)
	w.failures = &FailureGroups{Other: 2}
	for n := range 25 {
		w.failures.Groups = append(w.failures.Groups, FailureGroup{
			ID: fmt.Sprintf("fg_%016x", n), Service: "S", Handler: "h", Code: 500, Message: "boom ?", Count: 1, LastSeen: rest.Timestamp(1000 - n/5),
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
		require.Equal(t, []string{"S"}, w.query.Filter.Services)
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
		rejected := w.ask(t, "GET", "/failures?cursor="+cursor, "")
		require.Equal(t, http.StatusBadRequest, rejected.StatusCode)
		requireError(t, rejected, text(t, rejected), "", "The query parameter 'cursor' is invalid")
	}
}

func TestOneFailureGroup(t *testing.T) {
	w := newTestServer(t, nil)
	g := FailureGroup{
		ID: "fg_0011223344556677", Service: "S", Handler: "h", ErrorCode: "RT0007", Code: 500, Message: "boom", Sample: "inv_1", Count: 3,
		ByStatus: map[Status]int{StatusPaused: 2, StatusCompleted: 1}, Keys: 2, FirstSeen: 5, LastSeen: 9, Deployments: []ids.Deployment{"dp_1"},
	}
	w.failures = &FailureGroups{Groups: []FailureGroup{g}}
	goldenJSON(t, "failure", text(t, w.ask(t, "GET", "/failures/"+g.ID, "")))
	require.Equal(t, Query{Filter: listing.Filter{Group: listing.GroupID{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77}}}, w.query)
	for id, status := range map[string]int{"fg_0011223344556678": 404, "fg_1": 400, "1": 400} {
		rejected := w.ask(t, "GET", "/failures/"+id, "")
		require.Equal(t, status, rejected.StatusCode)
		requireError(t, rejected, text(t, rejected), "", "")
	}
}

func TestFailureGroupsAreMuted(t *testing.T) {
	w := newTestServer(t, nil)
	w.failures = &FailureGroups{Groups: []FailureGroup{
		{ID: "fg_0011223344556677", Service: "S", Handler: "h", Message: "boom", Count: 3, LastSeen: 9}, {ID: "fg_0011223344556678", Service: "S", Handler: "h", Message: "bang", Count: 1, LastSeen: 8},
	}}
	listed := func(query string) string {
		var page struct{ Groups []struct{ ID string } }
		require.NoError(t, json.Unmarshal([]byte(text(t, w.ask(t, "GET", "/failures"+query, ""))), &page))
		ids := ""
		for _, g := range page.Groups {
			ids += g.ID[len(g.ID)-1:]
		}
		return ids
	}
	const path = "/failures/fg_0011223344556677"
	early := w.ask(t, "PATCH", path, `{"muted":true}`)
	require.Equal(t, http.StatusConflict, early.StatusCode)
	requireError(t, early, text(t, early), "", "feature level")
	_, err := w.store.Provision(t.Context(), metadata.Cluster{Name: "local", Partitions: 2, FeatureLevel: feature.Level4})
	require.NoError(t, err)

	muted := w.ask(t, "PATCH", path, `{"muted":true,"note":"known"}`)
	require.Equal(t, http.StatusOK, muted.StatusCode)
	body := text(t, muted)
	require.Contains(t, body, `"count":3`)
	require.Contains(t, body, `"muted":true,"note":"known","marked_by":"192.0.2.1"`)
	require.Equal(t, []string{"78", "7", "8"}, []string{listed(""), listed("?muted=true"), listed("?muted=false")})
	require.Contains(t, text(t, w.ask(t, "GET", path, "")), `"note":"known"`)

	w.failures.Groups = nil // a mark can be removed although no invocation belongs to the group
	require.Equal(t, http.StatusOK, w.ask(t, "PATCH", path, `{"muted":false,"note":""}`).StatusCode)
	for body, status := range map[string]int{`{"muted":true}`: 404, `{}`: 422, `{"muted":"yes"}`: 422, `{"note":"` + strings.Repeat("x", 2001) + `"}`: 422, `{"note":"a\u0007"}`: 422, `{"mute":true}`: 422} {
		rejected := w.ask(t, "PATCH", path, body)
		require.Equal(t, status, rejected.StatusCode, body)
		requireError(t, rejected, text(t, rejected), "", "")
	}
	require.Equal(t, 400, w.ask(t, "PATCH", "/failures/1", `{"muted":true}`).StatusCode)
	require.Equal(t, 400, w.ask(t, "GET", "/failures?muted=maybe", "").StatusCode)
}
