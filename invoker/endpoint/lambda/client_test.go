package lambda

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"platform/invoker/endpoint"
	"platform/invoker/endpoint/lambda/lambdatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const arn = "arn:aws:lambda:eu-central-1:123456789012:function:greeter:1"

func functionOf(t *testing.T, arn string) *endpoint.Function {
	a, err := endpoint.ParseFunction(arn)
	require.NoError(t, err)
	return a.Function
}

func request(t *testing.T, body string) *http.Request {
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Opaque: "/invoke/S/h"}, Header: http.Header{"content-type": {"x/y"}, "user-agent": nil}}
	if body != "" {
		r.Body = io.NopCloser(strings.NewReader(body))
	}
	return r.WithContext(t.Context())
}

// echo responds with the payload it received.
func echo(c lambdatest.Call) lambdatest.Response {
	payload, _ := json.Marshal(map[string]any{
		"statusCode": 200, "headers": map[string]string{"x-restate-server": "fake/1"}, "isBase64Encoded": true,
		"body": base64.StdEncoding.EncodeToString(c.Payload),
	})
	return lambdatest.Response{Payload: payload}
}

func TestFunctionPayload(t *testing.T) {
	s := lambdatest.Start(t)
	s.Handle(arn, echo)
	resp, err := New(DefaultConfig()).Invoke(t.Context(), functionOf(t, arn), request(t, "\x00body"), &counted{})
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, "fake/1", resp.Header.Get("X-Restate-Server"))
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"path":"/invoke/S/h","httpMethod":"POST","headers":{"content-type":"x/y"},"body":"AGJvZHk=","isBase64Encoded":true}`, string(got))

	r := request(t, "")
	r.Method, r.URL.Opaque = http.MethodGet, "/discover"
	resp, err = New(DefaultConfig()).Invoke(t.Context(), functionOf(t, arn), r, &counted{})
	require.NoError(t, err)
	got, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"path":"/discover","httpMethod":"GET","headers":{"content-type":"x/y"},"isBase64Encoded":false}`, string(got))
}

func TestCredentials(t *testing.T) {
	s := lambdatest.Start(t)
	calls := make(chan lambdatest.Call, 3)
	const far = "arn:aws-us-gov:lambda:us-gov-west-1:123456789012:function:greeter:live"
	for _, name := range []string{arn, far} {
		s.Handle(name, func(c lambdatest.Call) lambdatest.Response {
			calls <- c
			return echo(c)
		})
	}
	cfg := DefaultConfig()
	cfg.ExternalID = "their-id"
	c := New(cfg)
	invoke := func(f *endpoint.Function) lambdatest.Call {
		_, err := c.Invoke(t.Context(), f, request(t, "x"), &counted{})
		require.NoError(t, err)
		return <-calls
	}
	got := invoke(functionOf(t, arn))
	require.Equal(t, lambdatest.AccessKey, got.AccessKey)
	require.Equal(t, "eu-central-1", got.Region)
	require.Empty(t, s.Roles())

	f := functionOf(t, far)
	f.AssumeRoleARN = "arn:aws:iam::123456789012:role/r"
	for range 2 {
		got = invoke(f)
		require.Equal(t, lambdatest.RoleAccessKey, got.AccessKey)
		require.Equal(t, "us-gov-west-1", got.Region)
	}
	require.Equal(t, []string{f.AssumeRoleARN + " their-id"}, s.Roles(), "once for both")
}

func TestCompression(t *testing.T) {
	s := lambdatest.Start(t)
	large := strings.Repeat("0123456789", 1000)
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	decoder, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer decoder.Close()
	events := make(chan map[string]any, 1)
	s.Handle(arn, func(c lambdatest.Call) lambdatest.Response {
		var e map[string]any
		_ = json.Unmarshal(c.Payload, &e)
		events <- e
		payload, _ := json.Marshal(map[string]any{
			"statusCode": 200, "headers": map[string]string{"Content-Encoding": "zstd"}, "isBase64Encoded": true,
			"body": base64.StdEncoding.EncodeToString(encoder.EncodeAll([]byte(large), nil)),
		})
		return lambdatest.Response{Payload: payload}
	})
	cfg := DefaultConfig()
	cfg.CompressFrom = 5000
	c := New(cfg)
	for _, compress := range []bool{true, false} {
		for _, body := range []string{large, "small"} {
			f := functionOf(t, arn)
			f.Compress = compress
			resp, err := c.Invoke(t.Context(), f, request(t, body), &counted{})
			require.NoError(t, err)
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, large, string(got))

			e := <-events
			headers := e["headers"].(map[string]any)
			sent, err := base64.StdEncoding.DecodeString(e["body"].(string))
			require.NoError(t, err)
			if compress && body == large {
				require.Equal(t, "zstd", headers["content-encoding"])
				sent, err = decoder.DecodeAll(sent, nil)
				require.NoError(t, err)
			} else {
				require.NotContains(t, headers, "content-encoding")
			}
			require.Equal(t, body, string(sent))
			require.Equal(t, compress, headers["accept-encoding"] == "zstd")
		}
	}
	cfg.maxResponse = 5000
	_, err = New(cfg).Invoke(t.Context(), functionOf(t, arn), request(t, "x"), &counted{})
	require.ErrorIs(t, err, endpoint.ErrFunctionResponse, "a small answer must not become a large one")
	<-events
}

func TestErrorsOfTheAPI(t *testing.T) {
	s := lambdatest.Start(t)
	for kind, c := range map[string]struct {
		answer lambdatest.Response
		status int
		want   string
	}{
		"busy":  {lambdatest.Response{Status: 429, Kind: "TooManyRequestsException", After: "7", Payload: []byte(`{"message":"Rate Exceeded."}`)}, 429, "Rate Exceeded."},
		"large": {lambdatest.Response{Status: 413, Kind: "RequestTooLargeException", Payload: []byte(`{"message":"too large"}`)}, 413, "too large"},
		"denied": {lambdatest.Response{Status: 403, Kind: "AccessDeniedException", Payload: []byte(`{"Message":"not yours"}`)}, 0,
			"invoke function: AccessDeniedException: not yours"},
		"broken": {lambdatest.Response{Status: 500, Kind: "ServiceException", Payload: []byte(`{"Message":"ours"}`)}, 0, "invoke function: ServiceException: ours"},
	} {
		t.Run(kind, func(t *testing.T) {
			calls := 0
			s.Handle(arn, func(lambdatest.Call) lambdatest.Response {
				calls++
				return c.answer
			})
			resp, err := New(DefaultConfig()).Invoke(t.Context(), functionOf(t, arn), request(t, "x"), &counted{})
			require.Equal(t, 1, calls, "repeating is up to the invoker")
			if c.status == 0 {
				require.EqualError(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.status, resp.StatusCode)
			require.Equal(t, c.answer.After, resp.Header.Get("Retry-After"))
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
		})
	}
	_, err := New(DefaultConfig()).Invoke(t.Context(), functionOf(t, strings.Replace(arn, "greeter", "nobody", 1)), request(t, "x"), &counted{})
	require.ErrorContains(t, err, "ResourceNotFoundException: Function not found")
}

func TestErrorsOfFunctions(t *testing.T) {
	s := lambdatest.Start(t)
	for message, want := range map[string]string{
		`{"errorType":"Runtime.ExitError","errorMessage":"RequestId: 01234567-89ab-cdef-0123-456789abcdef Error: Runtime exited"}`: "the function failed: Runtime.ExitError: Runtime exited",
		`{"errorMessage":"2026-01-02T03:04:05.678Z 01234567-89ab-cdef-0123-456789abcdef Task timed out after 3.00 seconds"}`:       "the function failed: Task timed out after 3.00 seconds",
		`?`: "the function failed: its error message is unreadable",
	} {
		s.Handle(arn, func(lambdatest.Call) lambdatest.Response {
			return lambdatest.Response{Function: "Unhandled", Payload: []byte(message)}
		})
		_, err := New(DefaultConfig()).Invoke(t.Context(), functionOf(t, arn), request(t, "x"), &counted{})
		require.EqualError(t, err, want)
		require.ErrorAs(t, err, new(*endpoint.FunctionError))
	}
}

// read decodes the result of a function and reads its body. All memory must be released then.
func read(t *testing.T, c *Client, payload []byte) ([]byte, error) {
	m := &counted{}
	held := &holding{memory: m, limit: maxPayload(c.cfg.maxResponse)}
	require.NoError(t, held.add(len(payload)))
	resp, err := c.codec.response(t.Context(), payload, held)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(resp.Body)
	require.Zero(t, m.held)
	return b, err
}

func TestInvalidFunctionResults(t *testing.T) {
	c := New(DefaultConfig())
	for _, payload := range []string{``, `null`, `"hello"`, `{}`, `{"statusCode":"200"}`, `{"statusCode":100}`, `{"statusCode":200,"body":"?","isBase64Encoded":true}`,
		`{"statusCode":200,"headers":{"content-encoding":"br"}}`, `{"statusCode":200,"body":"x","headers":{"content-encoding":"zstd"}}`} {
		_, err := read(t, c, []byte(payload))
		require.ErrorIs(t, err, endpoint.ErrFunctionResponse, payload)
	}
	got, err := read(t, c, []byte(`{"statusCode":404,"body":"plain"}`))
	require.NoError(t, err)
	require.Equal(t, "plain", string(got))
}

func TestUnreachableAPI(t *testing.T) {
	s := lambdatest.Start(t)
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	_, err := New(DefaultConfig()).Invoke(t.Context(), functionOf(t, arn), request(t, "x"), &counted{})
	require.ErrorContains(t, err, "connection refused")

	t.Setenv("AWS_ENDPOINT_URL", s.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	_, err = New(DefaultConfig()).Invoke(t.Context(), functionOf(t, arn), request(t, "x"), &counted{})
	require.ErrorContains(t, err, "credentials")
}

func TestCancellation(t *testing.T) {
	s := lambdatest.Start(t)
	begun, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	s.Handle(arn, func(c lambdatest.Call) lambdatest.Response {
		close(begun)
		<-release
		return echo(c)
	})
	a, err := endpoint.ParseFunction(arn)
	require.NoError(t, err)
	cfg := endpoint.DefaultConfig()
	cfg.Functions = New(DefaultConfig())
	client := endpoint.NewClient(cfg)
	l := &ends{request: &endpoint.Request{Address: a, Method: http.MethodPost, Path: a.Path("/invoke/S/h"), Header: http.Header{}}, err: make(chan error, 1)}
	client.Open(l).CloseWrite()
	<-begun
	done := make(chan struct{})
	go func() {
		client.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		require.Fail(t, "waits for the function")
	}
	require.Error(t, <-l.err)
}

// ends is a receiver that observes only the end of the stream.
type ends struct {
	request *endpoint.Request
	err     chan error
}

func (e *ends) Begin() *endpoint.Request { return e.request }
func (e *ends) Response(endpoint.Head)   {}
func (e *ends) Data([]byte)              {}
func (e *ends) End(err error)            { e.err <- err }

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"statusCode":200,"headers":{"content-encoding":"zstd"},"body":"KLUv/QQAAQAAYQAAAA==","isBase64Encoded":true}`))
	c := New(DefaultConfig())
	f.Fuzz(func(t *testing.T, payload []byte) {
		b, err := read(t, c, payload)
		require.True(t, err == nil || errors.Is(err, endpoint.ErrFunctionResponse), err)
		require.LessOrEqual(t, len(b), DefaultConfig().maxResponse)
		require.Error(t, functionError(payload))
	})
}
