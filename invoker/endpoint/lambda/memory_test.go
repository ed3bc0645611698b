package lambda

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"platform/invoker/endpoint"
	"platform/invoker/endpoint/lambda/lambdatest"
)

// counted is a memory that counts what is held.
type counted struct {
	held, most int
	limit      int // 0: none
}

var errFull = errors.New("no memory")

func (c *counted) Hold(n int) error {
	if c.limit > 0 && c.held+n > c.limit {
		return errFull
	}
	c.held += n
	c.most = max(c.most, c.held)
	return nil
}

func (c *counted) Release(n int) { c.held -= n }

// answerOf returns the payload of a response with a body.
func answerOf(t *testing.T, body []byte, headers map[string]string) []byte {
	payload, err := json.Marshal(map[string]any{
		"statusCode": 200, "headers": headers, "isBase64Encoded": true, "body": base64.StdEncoding.EncodeToString(body),
	})
	require.NoError(t, err)
	return payload
}

func TestResponsesAreHeldUntilTheyAreRead(t *testing.T) {
	s := lambdatest.Start(t)
	body := []byte(strings.Repeat("0123456789abcdef", 1<<16))
	encoder, err := zstd.NewWriter(nil, zstd.WithWindowSize(256<<10))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		payload []byte
		held    int // at the beginning of the body
	}{
		"plain":      {answerOf(t, body, nil), len(body)},
		"compressed": {answerOf(t, encoder.EncodeAll(body, nil), map[string]string{"Content-Encoding": "zstd"}), 256 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			s.Handle(arn, func(lambdatest.Call) lambdatest.Response { return lambdatest.Response{Payload: c.payload} })
			m := &counted{}
			resp, err := New(DefaultConfig()).Invoke(t.Context(), functionOf(t, arn), request(t, "x"), m)
			require.NoError(t, err)
			require.GreaterOrEqual(t, m.most, len(c.payload))
			require.GreaterOrEqual(t, m.held, c.held)
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, string(body), string(got))
			require.Zero(t, m.held)
		})
	}
}

// TestResponsesThatFailHoldNothing covers every place at which the response is given up.
func TestResponsesThatFailHoldNothing(t *testing.T) {
	large := answerOf(t, make([]byte, 4<<20), nil)
	compressed := func(size int, options ...zstd.EOption) []byte {
		encoder, err := zstd.NewWriter(nil, options...)
		require.NoError(t, err)
		return answerOf(t, encoder.EncodeAll(make([]byte, size), nil), map[string]string{"Content-Encoding": "zstd"})
	}
	for name, c := range map[string]struct {
		status  int
		header  http.Header
		payload []byte
		chunked bool
		memory  counted
		want    error
		text    string
	}{
		"no memory":                 {payload: large, memory: counted{limit: 1 << 20}, want: errFull},
		"no memory, unknown length": {payload: large, chunked: true, memory: counted{limit: 1 << 20}, want: errFull},
		"too large":                 {payload: large, want: errTooLarge},
		"too large, unknown length": {payload: large, chunked: true, want: errTooLarge},
		"too large decompressed":    {payload: compressed(8<<20, zstd.WithWindowSize(64<<10)), want: errTooLarge},
		"too large window":          {payload: compressed(8 << 20), want: errTooLarge},
		"not a response":            {payload: []byte(`"hello"`), want: endpoint.ErrFunctionResponse},
		"no window":                 {payload: compressed(1 << 20), memory: counted{limit: 64 << 10}, want: errFull},
		"crash":                     {header: http.Header{"X-Amz-Function-Error": {"Unhandled"}}, payload: []byte(`{"errorMessage":"oops"}`), text: "oops"},
		"long error":                {status: 500, payload: append([]byte(`{"Message":"`), make([]byte, 4<<20)...), text: "decode response body"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				for name, values := range c.header {
					w.Header().Set(name, values[0])
				}
				if c.status != 0 {
					w.WriteHeader(c.status)
				}
				if c.chunked {
					w.(http.Flusher).Flush()
				}
				_, _ = w.Write(c.payload)
			}))
			defer server.Close()
			for name, value := range (&lambdatest.Server{URL: server.URL}).Environ() {
				t.Setenv(name, value)
			}
			cfg := DefaultConfig()
			cfg.maxResponse = 2 << 20
			m := c.memory
			resp, err := New(cfg).Invoke(t.Context(), functionOf(t, arn), request(t, "x"), &m)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
			}
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
			require.ErrorContains(t, err, c.text)
			require.Zero(t, m.held)
		})
	}
}
