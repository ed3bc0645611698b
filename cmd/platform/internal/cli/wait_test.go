package cli

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/ids"
)

// at returns an app whose admin API and ingress are one handler, and what it writes.
func at(t *testing.T, handler http.HandlerFunc) (*app, *bytes.Buffer) {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	out := &bytes.Buffer{}
	system := command.System{Out: out, Err: out, Getenv: os.Getenv}
	return &app{App: &command.App{
		System: system, Print: term.New(out, os.Getenv, false, term.Human), Hint: term.New(out, os.Getenv, false, term.Human),
		Client: client.New(client.Options{AdminURL: server.URL, IngressURL: server.URL, ConnectTimeout: time.Minute, RequestTimeout: time.Minute, Log: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelWarn}))}),
	}}, out
}

// notifyingWriter closes written when text is written.
type notifyingWriter struct {
	io.Writer
	text    string
	written chan struct{}
}

func (w *notifyingWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if bytes.Contains(p, []byte(w.text)) {
		close(w.written)
	}
	return n, err
}

// TestAttachReportsWhatItWaitsFor attaches to a paused workflow by its key; the result arrives once
// the client has printed the status.
func TestAttachReportsWhatItWaitsFor(t *testing.T) {
	explained := make(chan struct{})
	a, out := at(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/platform/attach":
			<-explained
			_, _ = w.Write([]byte(`"done"`))
		case "/platform/output":
			w.Header().Set("X-Platform-Id", "inv_1w")
			w.WriteHeader(470)
			_, _ = w.Write([]byte(`{"code":470,"message":"not completed","source":"ingress"}`))
		case "/invocations/inv_1w/explain":
			_, _ = w.Write([]byte(`{"id":"inv_1w","target":"Signup/ada/run","status":"paused","summary":"It was paused."}`))
		}
	})
	a.Hint = term.New(&notifyingWriter{Writer: out, text: "says what to do", written: explained}, os.Getenv, false, term.Human)
	a.noticeDelay, a.statusInterval = time.Millisecond, time.Hour
	response, err := a.waitFor(t.Context(), client.InvocationRef{Target: client.Target{Service: "Signup", Key: "ada", Keyed: true}})
	require.NoError(t, err)
	require.Equal(t, `"done"`, string(response.Body))
	require.Contains(t, out.String(), "Waiting for inv_1w (Signup/ada/run), which is paused:\n  It was paused")
	require.Contains(t, out.String(), "`platform explain inv_1w` says what to do.")
}

// TestAttachIsSilentAboutShortWaits gets the result before the notice is due.
func TestAttachIsSilentAboutShortWaits(t *testing.T) {
	a, out := at(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`1`)) })
	a.noticeDelay = time.Hour
	_, err := a.waitFor(t.Context(), client.InvocationRef{ID: "inv_1"})
	require.NoError(t, err)
	require.Empty(t, out.String())
}

// TestPauseDistinguishesRequestedFromPaused pauses two invocations, of which one executes a step.
func TestPauseDistinguishesRequestedFromPaused(t *testing.T) {
	questions := 0
	a, out := at(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "/query", r.URL.Path)
		questions++
		_, _ = w.Write([]byte(`{"columns":[{"name":"id"}],"rows":[{"id":"inv_2"}]}`))
	})
	done := client.Batch{Succeeded: []client.BatchSuccess{{ID: "inv_1"}, {ID: "inv_2"}}}
	require.NoError(t, a.reportPause(t.Context(), done))
	require.Equal(t, 1, questions)
	require.True(t, strings.HasPrefix(out.String(), "[OK]: Paused 1 invocation\n[OK]: Requested the pause of 1 invocation\n"), out.String())
	require.Contains(t, out.String(), "`platform explain inv_2`")
}

// TestExplainOfAnOldServer explains an invocation of a server without explanations.
func TestExplainOfAnOldServer(t *testing.T) {
	a, _ := at(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			_, _ = w.Write([]byte(`{"version":"1.2.3"}`))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message":"there is no route GET /invocations/x/explain; GET /openapi describes the routes","platform_code":null}`))
	})
	_, err := a.explained(t.Context(), ids.NewInvocation(7, [16]byte{15: 1}).String())
	require.EqualError(t, err, "the server, version 1.2.3, cannot explain invocations")
}

// TestExplanationsHaveTheTimesOfTheClient prints times in the format that the user chose.
func TestExplanationsHaveTheTimesOfTheClient(t *testing.T) {
	a, out := at(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"id":"inv_1","target":"S/h","status":"paused","summary":"at 2026-11-20T18:13:50.000Z (1s ago):\ntwo","details":[],"waiting_for":[],"next_steps":[]}`))
	})
	a.Print = term.New(out, os.Getenv, false, term.RFC2822)
	require.NoError(t, a.explainInvocation(t.Context(), "inv_1", false))
	when := time.Date(2026, 11, 20, 18, 13, 50, 0, time.UTC).Local().Format(time.RFC1123Z)
	require.Contains(t, out.String(), "  at "+when+" (1s ago):\n    two\n")
}

// TestCallReportsWhatItWaitsFor calls a handler whose invocation becomes paused after the first
// notice; the result arrives once the client has printed that.
func TestCallReportsWhatItWaitsFor(t *testing.T) {
	var asked atomic.Int32
	told := make(chan struct{})
	a, out := at(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/invocations/inv_1w/explain" {
			status := "scheduled"
			if asked.Load() > 0 {
				status = "paused"
			}
			_, _ = fmt.Fprintf(w, `{"id":"inv_1w","target":"S/h","status":%q,"summary":"It was %[1]s."}`, status)
			return
		}
		if r.URL.Path != "/query" {
			<-told
			_, _ = w.Write([]byte(`"done"`))
			return
		}
		question, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(question), "SELECT id FROM"):
			_, _ = w.Write([]byte(`{"rows":[{"id":"inv_1w"}]}`))
		case strings.Contains(string(question), "SELECT status"):
			_, _ = w.Write([]byte(`{"rows":[{"status":"paused"}]}`))
			if asked.Add(1) == 2 {
				close(told) // the explanation of the pause was requested before
			}
		default:
			_, _ = w.Write([]byte(`{"rows":[]}`))
		}
	})
	a.noticeDelay, a.statusInterval = time.Millisecond, time.Millisecond
	cmd := a.call()
	cmd.SetArgs([]string{"S/h"})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	require.Contains(t, out.String(), "Waiting for inv_1w (S/h), which is scheduled:")
	require.Equal(t, 1, strings.Count(out.String(), "Waiting for inv_1w (S/h), which is paused:\n  It was paused"), out.String())
	require.Contains(t, out.String(), "`platform explain inv_1w` says what to do.")
}

func TestCallThatFindsSeveralInvocations(t *testing.T) {
	told := make(chan struct{})
	a, out := at(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/query" {
			_, _ = w.Write([]byte(`{"rows":[{"id":"inv_1"},{"id":"inv_2"}]}`))
			return
		}
		<-told
	})
	a.Hint = term.New(&notifyingWriter{Writer: out, text: "Waiting for", written: told}, os.Getenv, false, term.Human)
	a.noticeDelay, a.statusInterval = time.Millisecond, time.Hour
	cmd := a.call()
	cmd.SetArgs([]string{"S/h"})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	require.Contains(t, out.String(), "`platform invocations list S/h --active` shows")
}
