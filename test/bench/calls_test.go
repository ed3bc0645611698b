package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// newCaller returns the first call generator of a step.
func newCaller(t *testing.T, text string) callGenerator {
	s, err := parseStep(text)
	require.NoError(t, err)
	return s.newCalls(s, "platform", 0)
}

func TestEchoChecksResponse(t *testing.T) {
	c := newCaller(t, "echo/2")
	path, body := c.next()
	require.Equal(t, "/platform/call/Bench/echo", path)
	require.Equal(t, `"0-1...........................`+`"`, string(body))
	require.NoError(t, c.check(http.StatusOK, append([]byte(nil), body...)))
	first := string(body)
	_, body = c.next()
	require.NotEqual(t, first, string(body))
	require.Error(t, c.check(http.StatusOK, []byte(first)), "response to another call")
	require.Error(t, c.check(http.StatusInternalServerError, body))
}

func TestSumsAreChecked(t *testing.T) {
	for _, name := range []string{"steps", "fanout"} {
		c := newCaller(t, name+":10/1")
		path, body := c.next()
		require.Equal(t, "/platform/call/Bench/"+name, path)
		require.Equal(t, "10", string(body))
		require.NoError(t, c.check(http.StatusOK, []byte("45")))
		require.Error(t, c.check(http.StatusOK, []byte("44")))
		require.Error(t, c.check(http.StatusNotFound, []byte("45")))
	}
}

func TestCountersMustIncrease(t *testing.T) {
	c := newCaller(t, "counter:2/1")
	add := func(key, resp string) error {
		path, _ := c.next()
		require.Equal(t, "/platform/call/Counter/"+key+"/add", path)
		return c.check(http.StatusOK, []byte(resp))
	}
	require.NoError(t, add("key-1", "5"))
	require.NoError(t, add("key-0", "1"))
	require.NoError(t, add("key-1", "7"))
	require.ErrorContains(t, add("key-0", "1"), "1 after 1")
	require.Error(t, add("key-1", "many"))
}

func TestSendsMustBeAccepted(t *testing.T) {
	const right = `{"invocationId":"inv_1abc","status":"Accepted"}`
	for _, name := range []string{"send", "sleep", "timers"} {
		c := newCaller(t, name)
		c.next()
		require.NoError(t, c.check(http.StatusAccepted, []byte(right)))
		require.ErrorIs(t, c.check(http.StatusOK, []byte(right)), errNotAccepted)
		require.ErrorIs(t, c.check(http.StatusAccepted, []byte(`{"invocationId":"inv_1abc","status":"PreviouslyAccepted"}`)), errNotAccepted)
		require.ErrorIs(t, c.check(http.StatusAccepted, []byte(`{"status":"Accepted"}`)), errNotAccepted)
	}
}
