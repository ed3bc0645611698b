package httpserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Requests that cannot be parsed never reach the handler; net/http answers them in plain text.
func TestRequestsThatCannotBeParsedGetAReason(t *testing.T) {
	format := func(status int, code, message string) (http.Header, []byte) {
		return http.Header{"X-Source": {"here"}}, fmt.Appendf(nil, "%d|%s|%s", status, code, message)
	}
	for name, tc := range map[string]struct {
		request string
		status  int
		reason  string
	}{
		"escape in the path":  {"GET /Counter/50%/add HTTP/1.1\r\nHost: a\r\n\r\n", 400, "the request is not valid HTTP/1.1: its request line or a header is malformed; % in the path must be followed by two hexadecimal digits, and is itself written %25"},
		"no host":             {"GET /a/b HTTP/1.1\r\n\r\n", 400, "the request is not valid HTTP/1.1: missing required Host header"},
		"bad header":          {"GET /a/b HTTP/1.1\r\nHost: a\r\nb c: d\r\n\r\n", 400, "the request is not valid HTTP/1.1: invalid header name"},
		"long header":         {"GET /a/b HTTP/1.1\r\nHost: a\r\nb: " + strings.Repeat("c", 2*parsedHeader), 431, "the request line and the headers have more than 65536 bytes"},
		"transfer encoding":   {"GET /a/b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "the transfer encoding of the request is not supported"},
		"expectation":         {"GET /a/b HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n", 417, "the only supported value of the header Expect is 100-continue"},
		"version of protocol": {"GET /a/b HTTP/2.5\r\nHost: a\r\n\r\n", 505, "the request is not valid HTTP/1.1: unsupported protocol version"},
	} {
		t.Run(name, func(t *testing.T) {
			for want, problem := range map[string]Problem{
				fmt.Sprintf("%d||%s", tc.status, tc.reason):                     format,
				fmt.Sprintf(`{"message":"%s","platform_code":null}`, tc.reason): nil,
			} {
				addr, stop := start(t, Config{Handler: http.NotFoundHandler(), DrainTimeout: constant(time.Second), Problem: problem})
				conn, err := net.Dial("tcp", addr)
				require.NoError(t, err)
				require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
				_, err = io.WriteString(conn, tc.request)
				require.NoError(t, err)
				answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
				require.NoError(t, err)
				body, err := io.ReadAll(answer.Body)
				require.NoError(t, err)
				require.Equal(t, want, string(body))
				require.Equal(t, tc.status, answer.StatusCode)
				require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
				require.Equal(t, problem != nil, answer.Header.Get("X-Source") == "here")
				require.True(t, answer.Close)
				conn.Close()
				stop()
			}
		})
	}
}

// Handlers may respond with the same headers and text.
func TestResponsesOfHandlersAreNotReplaced(t *testing.T) {
	addr, stop := start(t, Config{DrainTimeout: constant(time.Second), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		http.Error(w, "400 Bad Request", http.StatusBadRequest)
	})})
	defer stop()
	answer, err := http.Get("http://" + addr)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "400 Bad Request\n", string(body))
	require.Nil(t, explainRejection([]byte("HTTP/1.1 400 Bad Request\r\nDate: x"+string(plainRejection)), adminProblem))
	require.Nil(t, explainRejection([]byte("HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nX-A: b\r\nDate: x\r\nContent-Length: 0\r\n\r\n"), adminProblem))
	require.Nil(t, explainRejection([]byte("HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nDate: x\r\nContent-Length: 1\r\n\r\n1"), adminProblem))
	require.Nil(t, explainRejection([]byte("HTTP/1.1 200 OK"+string(plainRejection)), adminProblem))
}

// The body is longer than what crypto/tls reads as a record header: a reset would destroy the response.
func TestRequestsWithoutTLSAreToldThatThePortRequiresIt(t *testing.T) {
	addr, stop := start(t, Config{Handler: http.NotFoundHandler(), DrainTimeout: constant(time.Second), TLS: withCertificate()})
	defer stop()
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodPatch} {
		for _, body := range []string{"", strings.Repeat("x", maxRefusedInput/2)} {
			request, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+"/Counter/ada/add", strings.NewReader(body))
			require.NoError(t, err)
			answer, err := http.DefaultClient.Do(request)
			require.NoError(t, err, method)
			text, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, http.StatusBadRequest, answer.StatusCode)
			require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
			require.JSONEq(t, `{"message": "`+RequiresTLS+`", "platform_code": null}`, string(text))
		}
	}
}
