package invoker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/restatedev/sdk-go/server"
	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/invoker/discovery"
	"platform/invoker/endpoint/lambda"
	"platform/invoker/endpoint/lambda/lambdatest"
	"platform/metadata"
)

const testARN = "arn:aws:lambda:eu-central-1:123456789012:function:services:1"

// serveFunction serves the services as a function, as users of the Go SDK do.
func serveFunction(t *testing.T, keys ...string) lambdatest.Function {
	services := newSDK()
	if len(keys) > 0 {
		services.WithIdentityV1(keys...)
	}
	handle, err := services.LambdaHandler()
	require.NoError(t, err)
	return lambdatest.Adapt(func(r server.LambdaRequest) (server.LambdaResponse, error) {
		return handle(context.Background(), r)
	})
}

func withFunctions() Config {
	cfg := quickConfig()
	cfg.Endpoint.Functions = lambda.New(lambda.DefaultConfig())
	return cfg
}

func TestGoSDKAsAFunction(t *testing.T) {
	cloud := lambdatest.Start(t)
	cfg := withFunctions()
	cfg.Identity = newSigner(t)
	cloud.Handle(testARN, serveFunction(t, cfg.Identity.KeyID()))
	b := withDeployment(t, cfg, discovery.Request{ARN: testARN, AssumeRoleARN: "arn:aws:iam::123456789012:role/r"}, func(d *metadata.Deployment) {
		require.Equal(t, testARN, d.ARN)
		require.Empty(t, d.URI)
		require.Empty(t, d.Compression)
		require.False(t, d.Bidirectional)
		require.False(t, d.HTTP11)
	})
	for n, c := range []struct{ handler, input, want string }{
		{"Greet", `"you"`, `"Hello you"`}, {"Steps", `5`, `10`}, {"Nap", `20`, `"rested"`}, {"Count", `"k"`, `42`}, {"Count", `"k"`, `84`},
	} {
		_, ended := b.shard.call(greet(c.handler), byte(n+1), c.input)
		r := receive(t, ended)
		require.Nil(t, r.Failure)
		require.Equal(t, c.want, string(r.Value))
	}
	require.Equal(t, []string{"arn:aws:iam::123456789012:role/r"}, cloud.Roles())
}

// TestFailedFunctions covers the failures that other endpoints do not have. Each time the next
// attempt succeeds.
func TestFailedFunctions(t *testing.T) {
	cloud := lambdatest.Start(t)
	services := serveFunction(t)
	for name, c := range map[string]struct {
		answer  lambdatest.Response
		code    errcode.Code
		message string
	}{
		"throttled": {lambdatest.Response{Status: 429, Kind: "TooManyRequestsException", Payload: []byte(`{"message":"Rate Exceeded."}`)}, errcode.RT0023, "Rate Exceeded."},
		"too large": {lambdatest.Response{Status: 413, Kind: "RequestTooLargeException", Payload: []byte(`{"message":"6 MB"}`)}, errcode.RT0019, "6 MB"},
		"denied":    {lambdatest.Response{Status: 403, Kind: "AccessDeniedException", Payload: []byte(`{"Message":"no"}`)}, errcode.RT0010, "AccessDeniedException: no"},
		"crashed":   {lambdatest.Response{Function: "Unhandled", Payload: []byte(`{"errorType":"Runtime.ExitError","errorMessage":"signal: killed"}`)}, errcode.RT0007, "Runtime.ExitError: signal: killed"},
		"no answer": {lambdatest.Response{Payload: []byte(`"hello"`)}, errcode.RT0012, "does not respond like a service"},
		"status":    {lambdatest.Response{Payload: []byte(`{"statusCode":500,"body":"oops"}`)}, errcode.RT0012, "status 500: oops"},
		"cut off":   {lambdatest.Response{Payload: outcome(t, "0401000000000008 7206")}, errcode.RT0010, "middle of a message"},
	} {
		t.Run(name, func(t *testing.T) {
			cloud.Handle(testARN, services)
			cfg := withFunctions()
			cfg.Defaults.Retry.InitialInterval, cfg.Defaults.Retry.MaxInterval = 50*time.Millisecond, 50*time.Millisecond
			b := withDeployment(t, cfg, discovery.Request{ARN: testARN}, nil)
			cloud.Handle(testARN, func(lambdatest.Call) lambdatest.Response { return c.answer })
			id, ended := b.shard.call(greet("Greet"), 1, `"you"`)
			f := lastFailure(t, b, id)
			require.Equal(t, string(c.code), f.ErrorCode, f.Message)
			require.Contains(t, f.Message, c.message)
			cloud.Handle(testARN, services)
			require.Equal(t, `"Hello you"`, string(receive(t, ended).Value))
		})
	}
}

// outcome is a successful response of a function with messages in hex.
func outcome(t *testing.T, messages string) []byte {
	payload, err := json.Marshal(map[string]any{
		"statusCode": 200, "headers": map[string]string{"content-type": "application/vnd.restate.invocation.v6"},
		"body": base64.StdEncoding.EncodeToString(unhex(t, messages)), "isBase64Encoded": true,
	})
	require.NoError(t, err)
	return payload
}

func TestSlowFunction(t *testing.T) {
	cloud := lambdatest.Start(t)
	services := serveFunction(t)
	cloud.Handle(testARN, services)
	cfg := withFunctions()
	cfg.Defaults.InactivityTimeout, cfg.Defaults.AbortTimeout = 20*time.Millisecond, 50*time.Millisecond
	b := withDeployment(t, cfg, discovery.Request{ARN: testARN}, nil)
	release := make(chan struct{})
	cloud.Handle(testARN, func(c lambdatest.Call) lambdatest.Response {
		<-release
		return services(c)
	})
	id, ended := b.shard.call(greet("Greet"), 1, `"you"`)
	require.Equal(t, string(errcode.RT0001), lastFailure(t, b, id).ErrorCode)
	close(release)
	require.Equal(t, `"Hello you"`, string(receive(t, ended).Value))
}
