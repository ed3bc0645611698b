package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fake is an ingress that answers at once, and the endpoint's counts beside it.
type fake struct {
	answer func(call int64, body string) (status int, answer string)

	mu    sync.Mutex // covers all below
	calls int64
	extra int64 // executions that nobody asked for
	lost  int64 // executions that did not happen
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Path == "/counts" {
		done := f.calls + f.extra - f.lost
		_ = json.NewEncoder(w).Encode(tally{Done: map[string]int64{"echo": done, "add": done}, Latest: time.Now()})
		return
	}
	f.calls++
	status, answer := f.answer(f.calls, string(body))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

// against returns a load of the step on the fake.
func (f *fake) against(t *testing.T, text string) *load {
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	s, err := parseStep(text)
	require.NoError(t, err)
	return &load{step: s, bed: &bed{host: strings.TrimPrefix(server.URL, "http://"), prefix: "platform", counts: server.URL + "/counts"}}
}

// drive makes the step's sends, or calls as often as given, and verifies them.
func drive(t *testing.T, l *load, calls int64) (string, error) {
	l.from, l.until = time.Now(), time.Now().Add(time.Hour)
	l.left.Store(calls)
	c, err := dial(t.Context(), l.bed.host)
	require.NoError(t, err)
	defer c.close()
	err = l.call(c, l.step.caller(l.step, l.bed.prefix, 0), func() bool { return l.left.Add(-1) >= 0 })
	if err != nil {
		return "", err
	}
	seen, err := l.bed.tally(t.Context(), false)
	require.NoError(t, err)
	return l.verify(t.Context(), l.outcome(time.Second, both{}, both{}, seen))
}

func echoing(_ int64, body string) (int, string) { return http.StatusOK, body }

func TestRightAnswersPass(t *testing.T) {
	l := (&fake{answer: echoing}).against(t, "echo")
	note, err := drive(t, l, 20)
	require.NoError(t, err)
	require.Empty(t, note)
	require.Len(t, l.latencies, 20)
}

func TestOneWrongAnswerFails(t *testing.T) {
	l := (&fake{answer: func(call int64, body string) (int, string) {
		if call == 7 {
			return http.StatusOK, `"something else"`
		}
		return http.StatusOK, body
	}}).against(t, "echo")
	_, err := drive(t, l, 20)
	require.ErrorContains(t, err, `wrong answer: echo of "0-7`)
}

func TestAnErrorStatusFails(t *testing.T) {
	l := (&fake{answer: func(int64, string) (int, string) { return http.StatusServiceUnavailable, "" }}).against(t, "echo")
	_, err := drive(t, l, 1)
	require.ErrorContains(t, err, "status 503")
}

func TestAnAnswerWithoutAnExecutionFails(t *testing.T) {
	l := (&fake{answer: echoing, lost: 1}).against(t, "echo")
	_, err := drive(t, l, 20)
	require.ErrorContains(t, err, "20 operations were answered, which takes 20 executions of echo; there were 19")
}

func TestRepeatedExecutionsAreNotedAndForSendsFail(t *testing.T) {
	l := (&fake{answer: echoing, extra: 2}).against(t, "echo")
	note, err := drive(t, l, 5)
	require.NoError(t, err)
	require.Equal(t, "2 executions repeated", note)

	l = (&fake{extra: 2, answer: func(int64, string) (int, string) {
		return http.StatusAccepted, `{"invocationId":"inv_1","status":"Accepted"}`
	}}).against(t, "send:5")
	_, err = drive(t, l, 5)
	require.ErrorContains(t, err, "5 sends were executed 7 times")
}

func TestCountersThatLoseAnAddFail(t *testing.T) {
	value := 0
	l := (&fake{answer: func(call int64, body string) (int, string) {
		if body == "1" {
			value++
			return http.StatusOK, strconv.Itoa(value)
		}
		return http.StatusOK, strconv.Itoa(value - 1) // the read at the end
	}}).against(t, "counter:1")
	_, err := drive(t, l, 3)
	require.ErrorContains(t, err, "3 adds were answered, but the counters make 2")
}
