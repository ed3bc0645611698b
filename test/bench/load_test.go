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

// fakeServer is an ingress that responds immediately, and the endpoint's counts.
type fakeServer struct {
	respond func(call int64, body string) (status int, answer string)

	mu    sync.Mutex // covers the fields below
	calls int64
	extra int64 // unexpected executions
	lost  int64 // missing executions
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Path == "/counts" {
		done := f.calls + f.extra - f.lost
		_ = json.NewEncoder(w).Encode(executionCounts{Done: map[string]int64{"echo": done, "add": done}, Latest: time.Now()})
		return
	}
	f.calls++
	status, resp := f.respond(f.calls, string(body))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, resp)
}

// newLoad returns a load of the step on the fake server.
func (f *fakeServer) newLoad(t *testing.T, text string) *load {
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	s, err := parseStep(text)
	require.NoError(t, err)
	return newLoad(s, &testbed{host: strings.TrimPrefix(server.URL, "http://"), prefix: "platform", counts: server.URL + "/counts"})
}

// runAndVerify makes a number of calls and verifies them.
func runAndVerify(t *testing.T, l *load, calls int64) (string, error) {
	l.measureFrom = time.Now()
	l.remaining.Store(calls)
	c, err := dial(t.Context(), l.testbed.host, l.step.contentType())
	require.NoError(t, err)
	defer c.close()
	err = l.runWorker(c, l.step.newCalls(l.step, l.testbed.prefix, 0), func() bool { return l.remaining.Add(-1) >= 0 })
	if err != nil {
		return "", err
	}
	seen, err := l.testbed.executionCounts(t.Context(), false)
	require.NoError(t, err)
	return l.verify(t.Context(), l.newOutcome(time.Second, processUsage{}, processUsage{}, seen))
}

func echoResponse(_ int64, body string) (int, string) { return http.StatusOK, body }

func TestCorrectResponsesPass(t *testing.T) {
	l := (&fakeServer{respond: echoResponse}).newLoad(t, "echo")
	note, err := runAndVerify(t, l, 20)
	require.NoError(t, err)
	require.Empty(t, note)
	require.Len(t, l.latencies, 20)
}

func TestOneWrongResponseFails(t *testing.T) {
	l := (&fakeServer{respond: func(call int64, body string) (int, string) {
		if call == 7 {
			return http.StatusOK, `"something else"`
		}
		return http.StatusOK, body
	}}).newLoad(t, "echo")
	_, err := runAndVerify(t, l, 20)
	require.ErrorContains(t, err, `wrong response: echo of "0-7`)
}

func TestAnErrorStatusFails(t *testing.T) {
	l := (&fakeServer{respond: func(int64, string) (int, string) { return http.StatusServiceUnavailable, "" }}).newLoad(t, "echo")
	_, err := runAndVerify(t, l, 1)
	require.ErrorContains(t, err, "status 503")
}

func TestMissingExecutionFails(t *testing.T) {
	l := (&fakeServer{respond: echoResponse, lost: 1}).newLoad(t, "echo")
	_, err := runAndVerify(t, l, 20)
	require.ErrorContains(t, err, "20 operations require 20 executions of echo; there were 19")
}

func TestRepeatedExecutions(t *testing.T) {
	l := (&fakeServer{respond: echoResponse, extra: 2}).newLoad(t, "echo")
	note, err := runAndVerify(t, l, 5)
	require.NoError(t, err)
	require.Equal(t, "2 executions repeated", note)

	l = (&fakeServer{extra: 2, respond: func(int64, string) (int, string) {
		return http.StatusAccepted, `{"invocationId":"inv_1","status":"Accepted"}`
	}}).newLoad(t, "send:5")
	_, err = runAndVerify(t, l, 5)
	require.ErrorContains(t, err, "5 sends were executed 7 times")
}

func TestLostAddFails(t *testing.T) {
	value := 0
	l := (&fakeServer{respond: func(call int64, body string) (int, string) {
		if body == "1" {
			value++
			return http.StatusOK, strconv.Itoa(value)
		}
		return http.StatusOK, strconv.Itoa(value - 1) // the read at the end
	}}).newLoad(t, "counter:1")
	_, err := runAndVerify(t, l, 3)
	require.ErrorContains(t, err, "3 adds were acknowledged, but the counters total 2")
}

func TestSendsStartAtEqualIntervals(t *testing.T) {
	s, err := parseStep("send:5/2")
	require.NoError(t, err)
	begin := time.Now()
	l := &load{step: s, measureFrom: begin, spread: 10 * time.Second}
	for i, want := range []time.Duration{0, 2 * time.Second, 4 * time.Second, 6 * time.Second, 8 * time.Second} {
		require.Equal(t, want, l.sendTime(int64(4-i)).Sub(begin))
	}
	l.spread = 0
	require.Equal(t, begin, l.sendTime(0))
}
