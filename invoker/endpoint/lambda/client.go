package lambda

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	api "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"platform/invoker/endpoint"
)

// Config configures a Client.
type Config struct {
	Profile        string                                // profile in the shared AWS files; empty for the default
	ExternalID     string                                // external ID for assuming roles; may be empty
	CompressFrom   int                                   // size in bytes from which requests are compressed
	maxResponse    int                                   // maximum size in bytes of a decompressed response
	ConnectTimeout time.Duration                         // timeout of connections to the AWS API
	IdleTimeout    time.Duration                         // after which an idle connection is closed
	Proxy          func(*http.Request) (*url.URL, error) // nil for no proxy
}

// DefaultConfig returns the default settings.
func DefaultConfig() Config {
	return Config{CompressFrom: 4 << 20, maxResponse: 64 << 20, ConnectTimeout: 10 * time.Second, IdleTimeout: time.Minute}
}

// roleSessionName identifies the session of assumed roles.
const roleSessionName = "platform-server"

// maxIdleConnections is the maximum number of idle connections to the AWS API.
const maxIdleConnections = 128

// maxAPIs is the number of API clients that are kept; they share their connections.
const maxAPIs = 1024

// Client invokes functions. It is safe for concurrent use.
type Client struct {
	cfg   Config
	codec codec

	mu   sync.Mutex // covers the fields below
	base *aws.Config
	apis map[clientKey]*api.Client
}

// clientKey identifies an API client: functions of a region invoked with a role share one.
type clientKey struct{ region, role string }

var _ endpoint.Functions = (*Client)(nil)

// New returns a client. It loads credentials on the first invocation.
func New(cfg Config) *Client {
	c := &Client{cfg: cfg, apis: map[clientKey]*api.Client{}}
	c.codec.init(cfg.CompressFrom, cfg.maxResponse)
	return c
}

// Invoke implements endpoint.Functions.
func (c *Client) Invoke(ctx context.Context, f *endpoint.Function, r *http.Request, m endpoint.Memory) (*http.Response, error) {
	held := &holding{memory: m, limit: maxPayload(c.cfg.maxResponse)}
	resp, err := c.invoke(ctx, f, r, held)
	if err != nil {
		held.reduce(0)
	}
	return resp, err
}

// maxPayload returns the maximum size of the payload for a body: base64, with room for headers.
func maxPayload(body int) int { return body/3*4 + 1<<20 }

func (c *Client) invoke(ctx context.Context, f *endpoint.Function, r *http.Request, held *holding) (*http.Response, error) {
	payload, err := c.codec.request(f, r)
	if err != nil {
		return nil, err
	}
	functions, err := c.api(ctx, f)
	if err != nil {
		return nil, err
	}
	out, err := functions.Invoke(ctx, &api.InvokeInput{FunctionName: &f.ARN, Payload: payload}, func(o *api.Options) {
		o.HTTPClient = &receiver{o.HTTPClient, held}
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return convertError(err)
	case out.FunctionError != nil:
		return nil, functionError(out.Payload)
	}
	return c.codec.response(ctx, out.Payload, held)
}

// api returns the API client for a function, creating it on first use.
func (c *Client) api(ctx context.Context, f *endpoint.Function) (*api.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := clientKey{f.Region, f.AssumeRoleARN}
	if client := c.apis[key]; client != nil {
		return client, nil
	}
	if c.base == nil {
		base, err := c.load(ctx)
		if err != nil {
			return nil, fmt.Errorf("load AWS configuration: %w", err)
		}
		c.base = base
	}
	cfg := c.base.Copy()
	cfg.Region = key.region
	if key.role != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), key.role, c.assume))
	}
	client := api.NewFromConfig(cfg, func(o *api.Options) { o.Retryer = aws.NopRetryer{} })
	if len(c.apis) >= maxAPIs { // mostly of deployments that are gone
		clear(c.apis)
	}
	c.apis[key] = client
	return client, nil
}

func (c *Client) load(ctx context.Context) (*aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.Proxy, t.MaxIdleConns, t.MaxIdleConnsPerHost = c.cfg.Proxy, 0, maxIdleConnections
		t.IdleConnTimeout = c.cfg.IdleTimeout
	})
	client = client.WithDialerOptions(func(d *net.Dialer) { d.Timeout = c.cfg.ConnectTimeout })
	options := []func(*awsconfig.LoadOptions) error{awsconfig.WithHTTPClient(client)}
	if c.cfg.Profile != "" {
		options = append(options, awsconfig.WithSharedConfigProfile(c.cfg.Profile))
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
	return &cfg, err
}

func (c *Client) assume(o *stscreds.AssumeRoleOptions) {
	o.RoleSessionName = roleSessionName
	if c.cfg.ExternalID != "" {
		o.ExternalID = &c.cfg.ExternalID
	}
}

// convertError converts an error of the AWS API into a response if HTTP has a status for it.
// Otherwise it strips request IDs from the error, so that repeated errors are equal.
func convertError(err error) (*http.Response, error) {
	if throttled, ok := errors.AsType[*types.TooManyRequestsException](err); ok {
		resp := newResponse(http.StatusTooManyRequests, []byte(throttled.ErrorMessage()))
		if after := throttled.RetryAfterSeconds; after != nil {
			resp.Header.Set("Retry-After", *after)
		}
		return resp, nil
	}
	if tooLarge, ok := errors.AsType[*types.RequestTooLargeException](err); ok {
		return newResponse(http.StatusRequestEntityTooLarge, []byte(tooLarge.ErrorMessage())), nil
	}
	if errors.Is(err, errTooLarge) {
		return nil, errTooLarge
	}
	if apiErr, ok := errors.AsType[smithy.APIError](err); ok {
		return nil, fmt.Errorf("invoke function: %s: %s", apiErr.ErrorCode(), strings.TrimSpace(apiErr.ErrorMessage()))
	}
	if operation, ok := errors.AsType[*smithy.OperationError](err); ok {
		err = operation.Err
	}
	return nil, fmt.Errorf("invoke function: %w", err)
}
