package discovery

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/invoker/endpoint"
	"platform/invoker/endpoint/lambda"
	"platform/invoker/endpoint/lambda/lambdatest"
	"platform/metadata"
)

const arn = "arn:aws:lambda:eu-central-1:123456789012:function:services:1"

func withFunctions(t *testing.T) *Discoverer {
	cfg := endpoint.DefaultConfig()
	cfg.Functions = lambda.New(lambda.DefaultConfig())
	client := endpoint.NewClient(cfg)
	t.Cleanup(client.Close)
	return New(client, quick())
}

func manifestReply(t *testing.T, manifest string) lambdatest.Response {
	payload, err := json.Marshal(map[string]any{
		"statusCode": 200, "headers": map[string]string{"content-type": v4, "x-restate-server": "sdk/1"}, "body": manifest,
	})
	require.NoError(t, err)
	return lambdatest.Response{Payload: payload}
}

func TestFunctions(t *testing.T) {
	cloud := lambdatest.Start(t)
	manifest := strings.Replace(manifestOf(`{"name":"S","ty":"SERVICE","handlers":[{"name":"h"}]}`),
		`"BIDI_STREAM"`, `"REQUEST_RESPONSE","lambdaCompression":"zstd"`, 1)
	var path, accept string
	cloud.Handle(arn, func(c lambdatest.Call) lambdatest.Response {
		var e struct {
			Path    string            `json:"path"`
			Headers map[string]string `json:"headers"`
		}
		_ = json.Unmarshal(c.Payload, &e)
		path, accept = e.Path, e.Headers["accept"]
		return manifestReply(t, manifest)
	})
	const role = "arn:aws:iam::123456789012:role/r"
	d, err := withFunctions(t).Discover(t.Context(), Request{ARN: arn, AssumeRoleARN: role})
	require.NoError(t, err)
	require.Equal(t, "/discover", path)
	require.Equal(t, acceptAll, accept)
	require.Equal(t, arn, d.ARN)
	require.Equal(t, role, d.AssumeRoleARN)
	require.Equal(t, metadata.Zstd, d.Compression)
	require.Equal(t, "sdk/1", d.SDKVersion)
	require.Empty(t, d.URI)
	require.False(t, d.Bidirectional)
	require.Len(t, d.Services, 1)
	require.Equal(t, []string{role}, cloud.Roles())

	s := serve(t, answering(v4, manifest), nil)
	d, err = newDiscoverer(t, quick()).Discover(t.Context(), Request{URI: s.URL})
	require.NoError(t, err)
	require.Empty(t, d.Compression, "it has a meaning for functions only")
}

func TestInvalidFunctions(t *testing.T) {
	cloud := lambdatest.Start(t)
	for name, c := range map[string]struct {
		answer  lambdatest.Response
		code    errcode.Code
		message string
		calls   int
	}{
		"bidirectional": {manifestReply(t, manifestOf("")), errcode.META0015, "request-response mode", 1},
		"no service":    {lambdatest.Response{Payload: []byte(`"hello"`)}, errcode.META0013, "does not respond like a service", 1},
		"crash":         {lambdatest.Response{Function: "Unhandled", Payload: []byte(`{"errorMessage":"oops"}`)}, errcode.META0003, "the function failed: oops", 3},
		"denied":        {lambdatest.Response{Status: 403, Kind: "AccessDeniedException", Payload: []byte(`{"Message":"no"}`)}, errcode.META0003, "AccessDeniedException: no", 3},
		"busy":          {lambdatest.Response{Status: 429, Kind: "TooManyRequestsException", Payload: []byte(`{}`)}, errcode.META0003, "status 429", 3},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			cloud.Handle(arn, func(lambdatest.Call) lambdatest.Response {
				calls++
				return c.answer
			})
			_, err := withFunctions(t).Discover(t.Context(), Request{ARN: arn})
			code, _ := errcode.Of(err)
			require.Equal(t, c.code, code, "%v", err)
			require.ErrorContains(t, err, c.message)
			require.Equal(t, c.calls, calls)
		})
	}
	_, err := newDiscoverer(t, quick()).Discover(t.Context(), Request{ARN: arn})
	require.ErrorIs(t, err, endpoint.ErrFunctions)
	_, err = newDiscoverer(t, quick()).Discover(t.Context(), Request{ARN: "arn:aws:lambda:eu"})
	require.ErrorContains(t, err, "field 'arn' is invalid")
}
