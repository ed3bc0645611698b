package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"platform/admin/openapi"
	"platform/admin/query"
	"platform/admin/rest"
	"platform/internal/access"
	"platform/internal/budget"
	"platform/internal/errcode"
	"platform/internal/ids"
)

// journalEntry is a journal entry with its content.
type journalEntry struct {
	Index         uint32         `json:"index"`
	Type          string         `json:"entry_type"`
	Name          string         `json:"name,omitempty"`
	InvokedID     string         `json:"invoked_id,omitempty"`
	InvokedTarget string         `json:"invoked_target,omitempty"`
	PromiseName   string         `json:"promise_name,omitempty"`
	SleepWakeupAt rest.Timestamp `json:"sleep_wakeup_at,omitzero"`
	AppendedAt    rest.Timestamp `json:"appended_at,omitzero"`
	RawLength     int            `json:"raw_length"`
	// Content is omitted for principals that must not read payloads.
	Content embeddedJSON `json:"content,omitempty"`
}

type journalPage struct {
	Entries []journalEntry `json:"entries"`
	Next    *uint32        `json:"next,omitempty"`
}

// journalEvent is something that happened between journal entries.
type journalEvent struct {
	AfterEntry uint32         `json:"after_journal_entry_index"`
	At         rest.Timestamp `json:"appended_at,omitzero"`
	Type       string         `json:"event_type"`
	// Sequence is the number of the event in the history; nil if it is not stored.
	Sequence *uint32      `json:"sequence,omitempty"`
	Content  embeddedJSON `json:"content,omitempty"`
}

type journalEventList struct {
	Events []journalEvent `json:"events"`
}

// maxInlinePayload limits the size of the entries of a list that include their payloads, so that a
// page is at most about 16 MiB.
const maxInlinePayload = 4096

const journalColumns = "index, entry_type, name, invoked_id, invoked_target, promise_name, sleep_wakeup_at, appended_at, raw_length"

// listJournal returns a page of the journal of an invocation.
func (s *Server) listJournal(c echo.Context, id ids.Invocation) error {
	from, limit, inline, err := journalParameters(c)
	if err != nil {
		return err
	}
	entries, err := s.journalRows(c, fmt.Sprintf("SELECT %s, CASE WHEN raw_length <= %d THEN entry_json ELSE entry_lite_json END AS content FROM sys_journal WHERE id = '%s' AND index >= %d ORDER BY index LIMIT %d",
		journalColumns, inline, id, from, limit))
	if err != nil {
		return err
	}
	page := journalPage{Entries: entries}
	if len(entries) == limit {
		next := entries[limit-1].Index + 1
		page.Next = &next
	}
	return rest.Respond(c, http.StatusOK, page)
}

// entryIndex returns the index of an entry in the path.
func entryIndex(c echo.Context) (uint32, error) {
	index, err := strconv.ParseUint(c.Param("index"), 10, 32)
	if err != nil {
		return 0, rest.InvalidField("index", fmt.Errorf("%q is not a number from 0 to 4294967295", c.Param("index")))
	}
	return uint32(index), nil
}

// getJournalEntry returns an entry with its payloads.
func (s *Server) getJournalEntry(c echo.Context, id ids.Invocation) error {
	index, err := entryIndex(c)
	if err != nil {
		return err
	}
	entries, err := s.journalRows(c, fmt.Sprintf("SELECT %s, entry_json AS content FROM sys_journal WHERE id = '%s' AND index = %d", journalColumns, id, index))
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return noEntry(id, index)
	}
	return rest.Respond(c, http.StatusOK, entries[0])
}

// entryPayload responds with the payload of an entry as it was given by the client or the handler.
func (s *Server) entryPayload(c echo.Context, id ids.Invocation) error {
	if s.cfg.Query == nil {
		return query.ErrNoEngine
	}
	index, err := entryIndex(c)
	if err != nil {
		return err
	}
	var held int64
	account := budget.From(c.Request().Context())
	defer func() { account.Return(held) }()
	payload, err := s.cfg.Query.EntryPayload(c.Request().Context(), id, index, func(size int) error {
		if !account.ReserveResponse(int64(size)) {
			return &rest.Error{
				Status: http.StatusServiceUnavailable, Code: errcode.RT0026, Retry: true, After: account.RetryAfter(),
				Message: "not enough memory for the payload besides those in progress (networking.body-memory-limit, networking.connection-body-memory-limit); retry later",
			}
		}
		held = int64(size)
		return nil
	})
	switch {
	case errors.Is(err, query.ErrNoEntry):
		return noEntry(id, index)
	case errors.Is(err, query.ErrNoPayload):
		return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("The journal entry %d of the invocation '%s' has no payload: its type has none, or it contains a failure. GET /invocations/{invocation_id}/journal/{index} shows it", index, id)}
	case err != nil:
		return err
	}
	h := c.Response().Header()
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%d"`, id, index))
	h.Set("Cache-Control", "no-store")
	return c.Blob(http.StatusOK, echo.MIMEOctetStream, payload)
}

func noEntry(id ids.Invocation, index uint32) error {
	return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("The invocation '%s' does not exist or has no journal entry %d", id, index)}
}

// journalRows reads journal entries, without content if the principal must not read payloads.
func (s *Server) journalRows(c echo.Context, sql string) ([]journalEntry, error) {
	readable := access.From(c.Request().Context()).Allows(access.Payloads)
	if readable {
		if err := s.recordRead(c, "GET "+c.Path(), c.Request().URL.RequestURI()); err != nil {
			return nil, err
		}
	}
	rows, err := query.Select[journalEntry](c.Request().Context(), s.cfg.Query, sql, query.Options{HidePayloads: !readable})
	if limit, ok := errors.AsType[*query.Error](err); ok && !limit.Forbidden {
		// The statement is correct, so the error is a limit of the engine.
		return nil, &rest.Error{Status: http.StatusUnprocessableEntity, Message: fmt.Sprintf("The journal cannot be returned as JSON: %s. GET /invocations/{invocation_id}/journal/{index}/payload returns the payload of an entry as it is", limit.Message)}
	}
	if err != nil {
		return nil, err
	}
	return rows, nil
}

func journalParameters(c echo.Context) (from uint64, limit, inline int, err error) {
	inline = maxInlinePayload
	if text := c.QueryParam("from"); text != "" {
		if from, err = strconv.ParseUint(text, 10, 32); err != nil {
			return 0, 0, 0, rest.BadRequest("The query parameter 'from' is invalid: %q is not the index of an entry", text)
		}
	}
	if limit, err = rest.Limit(c); err != nil {
		return 0, 0, 0, err
	}
	if text := c.QueryParam("max_payload"); text != "" {
		if inline, err = strconv.Atoi(text); err != nil || inline < 0 || inline > maxInlinePayload {
			return 0, 0, 0, rest.BadRequest("The query parameter 'max_payload' is invalid: %q is not a number from 0 to %d; GET /invocations/{invocation_id}/journal/{index} returns larger payloads", text, maxInlinePayload)
		}
	}
	return from, limit, inline, nil
}

// listJournalEvents returns what happened between the entries of a journal.
func (s *Server) listJournalEvents(c echo.Context, id ids.Invocation) error {
	ctx := c.Request().Context()
	events, err := query.Select[journalEvent](ctx, s.cfg.Query,
		fmt.Sprintf("SELECT after_journal_entry_index, appended_at, event_type, sequence, event_json AS content FROM sys_journal_events WHERE id = '%s' ORDER BY sequence NULLS LAST, appended_at", id),
		query.Options{HidePayloads: !access.From(ctx).Allows(access.Payloads)})
	if err != nil {
		return err
	}
	return rest.Respond(c, http.StatusOK, journalEventList{events})
}

var journalOperations = map[string]operation{
	"GET /invocations/:invocation_id/journal": {
		ID: "list_journal", Tag: "invocation", Summary: "List the journal of an invocation from an entry on. Entries never change, so a client that has read some continues after the last one. An invocation without a journal has no entries",
		Query: []object{
			openapi.QueryParameter("from", "Index of the first entry; next of the page before.", object{"type": "integer", "minimum": 0, "default": 0}),
			openapi.Limit("entries"),
			openapi.QueryParameter("max_payload", "Entries of up to this many bytes include their payloads.", object{"type": "integer", "minimum": 0, "maximum": maxInlinePayload, "default": maxInlinePayload}),
		},
		Responses: openapi.OK("One page", journalPage{}), Errors: []int{400, 429, 503},
	},
	"GET /invocations/:invocation_id/journal/:index": {
		ID: "get_journal_entry", Tag: "invocation", Summary: "Show a journal entry with its payloads",
		Responses: openapi.OK("The entry", journalEntry{}), Errors: []int{400, 404, 422, 429, 503},
	},
	"GET /invocations/:invocation_id/journal/:index/payload": {
		ID: "get_journal_payload", Tag: "invocation", Summary: "Download the payload of a journal entry as it is: an input, result, parameter or value of any size",
		Responses: openapi.OK("The payload", []byte(nil)), Errors: []int{400, 404, 429, 503},
	},
	"GET /invocations/:invocation_id/events": {
		ID: "list_journal_events", Tag: "invocation", Summary: "List what happened between the journal entries of an invocation: failed attempts, pauses, resumes and requests to cancel, kept as long as the journal, and the present suspension. Events with a sequence are stored; if the first one's is not 0, older ones were dropped",
		Responses: openapi.OK("The events, the oldest first", journalEventList{}), Errors: []int{400, 429, 503},
	},
}

// embeddedJSON is a JSON value that a column of a table contains as text.
type embeddedJSON json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (e *embeddedJSON) UnmarshalJSON(b []byte) error {
	var text string
	err := json.Unmarshal(b, &text)
	*e = embeddedJSON(text)
	return err
}

// MarshalJSON implements json.Marshaler.
func (e embeddedJSON) MarshalJSON() ([]byte, error) { return e, nil }
