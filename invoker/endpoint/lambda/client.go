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

// Config are the settings of a Client.
type Config struct {
	Profile        string                                // of the shared AWS files; empty: the default one
	ExternalID     string                                // told when roles are assumed; may be empty
	CompressFrom   int                                   // bytes of a request from which it is compressed
	MaxResponse    int                                   // bytes of a response, decompressed
	ConnectTimeout time.Duration                         // to the cloud's API
	IdleTimeout    time.Duration                         // after which an unused connection to it is closed
	Proxy          func(*http.Request) (*url.URL, error) // nil: none
}

// DefaultConfig compresses requests of 4 MiB and more.
func DefaultConfig() Config {
	return Config{CompressFrom: 4 << 20, MaxResponse: 64 << 20, ConnectTimeout: 10 * time.Second, IdleTimeout: time.Minute}
}

// session is the name under which roles are taken.
const session = "platform-server"

// connections is how many unused connections to the API are kept.
const connections = 128

// Client invokes functions. It may be used concurrently.
type Client struct {
	cfg   Config
	codec codec

	mu   sync.Mutex // guards the fields below
	base *aws.Config
	apis map[identity]*api.Client
}

// identity is what the connections to the API differ in.
type identity struct{ region, role string }

var _ endpoint.Functions = (*Client)(nil)

// New returns a client, which looks for credentials when it needs them.
func New(cfg Config) *Client {
	c := &Client{cfg: cfg, apis: map[identity]*api.Client{}}
	c.codec.init(cfg.CompressFrom, cfg.MaxResponse)
	return c
}

// Invoke implements endpoint.Functions.
func (c *Client) Invoke(ctx context.Context, f *endpoint.Function, r *http.Request) (*http.Response, error) {
	payload, err := c.codec.request(f, r)
	if err != nil {
		return nil, err
	}
	functions, err := c.api(ctx, f)
	if err != nil {
		return nil, err
	}
	out, err := functions.Invoke(ctx, &api.InvokeInput{FunctionName: &f.ARN, Payload: payload})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return failed(err)
	case out.FunctionError != nil:
		return nil, functionError(out.Payload)
	}
	return c.codec.response(out.Payload)
}

// api is the way to a function.
func (c *Client) api(ctx context.Context, f *endpoint.Function) (*api.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	as := identity{f.Region, f.AssumeRoleARN}
	if known := c.apis[as]; known != nil {
		return known, nil
	}
	if c.base == nil {
		base, err := c.load(ctx)
		if err != nil {
			return nil, fmt.Errorf("load AWS configuration: %w", err)
		}
		c.base = base
	}
	cfg := c.base.Copy()
	cfg.Region = as.region
	if as.role != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), as.role, c.assume))
	}
	made := api.NewFromConfig(cfg, func(o *api.Options) { o.Retryer = aws.NopRetryer{} })
	c.apis[as] = made
	return made, nil
}

func (c *Client) load(ctx context.Context) (*aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.Proxy, t.MaxIdleConns, t.MaxIdleConnsPerHost = c.cfg.Proxy, 0, connections
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
	o.RoleSessionName = session
	if c.cfg.ExternalID != "" {
		o.ExternalID = &c.cfg.ExternalID
	}
}

// failed turns an error of the API into a response where an endpoint has a status
// for it. Otherwise it leaves out of the error what differs each time.
func failed(err error) (*http.Response, error) {
	if busy, ok := errors.AsType[*types.TooManyRequestsException](err); ok {
		resp := answer(http.StatusTooManyRequests, []byte(busy.ErrorMessage()))
		if after := busy.RetryAfterSeconds; after != nil {
			resp.Header.Set("Retry-After", *after)
		}
		return resp, nil
	}
	if large, ok := errors.AsType[*types.RequestTooLargeException](err); ok {
		return answer(http.StatusRequestEntityTooLarge, []byte(large.ErrorMessage())), nil
	}
	if refused, ok := errors.AsType[smithy.APIError](err); ok {
		return nil, fmt.Errorf("invoke function: %s: %s", refused.ErrorCode(), strings.TrimSpace(refused.ErrorMessage()))
	}
	if operation, ok := errors.AsType[*smithy.OperationError](err); ok {
		err = operation.Err
	}
	return nil, fmt.Errorf("invoke function: %w", err)
}
