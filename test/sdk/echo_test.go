package sdk

import (
	"bytes"
	"strings"

	"github.com/stretchr/testify/require"

	"platform/test/sdk/contract"
)

var echoCases = []testCase{
	{"json comes back unchanged", func(e *env) {
		in := contract.Message{Text: "größe ✓ \"quoted\"", Number: 1<<53 - 1, Tags: map[string]string{"a": "1", "": "empty"}}
		var out contract.Message
		answer := e.call(e.path("Echo", "json"), in, &out)
		require.Equal(e, in, out)
		require.Equal(e, "application/json", answer.Header.Get("content-type"))
	}},
	{"bytes come back unchanged", func(e *env) {
		body := []byte{0, 1, 2, 0xff, 0xfe, '\n', 0}
		answer, err := e.server.Client.Call(e.bounded(), e.path("Echo", "bytes"), body, "content-type", "application/octet-stream")
		require.NoError(e, err)
		require.Equal(e, 200, answer.Status, "%s", answer.Body)
		require.Equal(e, body, answer.Body)
	}},
	{"a megabyte comes back unchanged", func(e *env) {
		body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		answer, err := e.server.Client.Call(e.bounded(), e.path("Echo", "bytes"), body, "content-type", "application/octet-stream")
		require.NoError(e, err)
		require.Equal(e, 200, answer.Status)
		require.True(e, bytes.Equal(body, answer.Body))
	}},
	{"nothing in, nothing out", func(e *env) {
		answer := e.try(e.path("Echo", "nothing"), nil)
		require.Equal(e, 200, answer.Status, "%s", answer.Body)
		require.Empty(e, answer.Body)
	}},
	{"headers reach the handler", func(e *env) {
		var out string
		e.call(e.path("Echo", "header"), "x-case", &out, "X-Case", "one two")
		require.Equal(e, "one two", out)
	}},
	{"the classic path and the alias reach the same handler", func(e *env) {
		for _, path := range []string{"", "restate/call/"} {
			answer, err := e.server.Client.Post(e.bounded(), path+e.path("Echo", "json"), e.encode(contract.Message{Text: "x"}))
			require.NoError(e, err)
			require.Equal(e, 200, answer.Status, "%s", answer.Body)
			require.True(e, strings.Contains(string(answer.Body), `"text":"x"`), "%s", answer.Body)
		}
	}},
}
