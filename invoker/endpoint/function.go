package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
)

// Function is an endpoint that is invoked through a cloud's API instead of a connection.
type Function struct {
	ARN           string // with a version or an alias
	Region        string
	AssumeRoleARN string // of a role to assume before invoking; may be empty
	Compress      bool   // the function accepts zstd
}

// Functions invokes functions. It may be called concurrently.
type Functions interface {
	// Invoke sends a request, whose path is the opaque part of the URL, and returns the
	// response when the function has ended. It reads the whole body. Errors of the cloud
	// that correspond to an HTTP status of an endpoint are returned as such a response.
	// It holds memory for the response until that has been read to its end or failed.
	Invoke(ctx context.Context, f *Function, r *http.Request, m Memory) (*http.Response, error)
}

// Memory is the memory for the response of a function, which is received as a whole before
// its body is delivered. A Receiver may implement it.
type Memory interface {
	// Hold waits until n more bytes may be held. After an error the response is dropped.
	Hold(n int) error
	// Release reports that n bytes are no longer held.
	Release(n int)
}

// unboundedMemory is the memory of receivers that do not bound it.
type unboundedMemory struct{}

func (unboundedMemory) Hold(int) error { return nil }
func (unboundedMemory) Release(int)    {}

// The groups of functionARN are the region, the name and the version. The region becomes
// part of a host name, so its characters are restricted.
var functionARN = regexp.MustCompile(`^arn:aws[a-z-]*:lambda:([a-z]{2}[a-z0-9-]{1,30}):[0-9]{12}:function:([a-zA-Z0-9_-]{1,140}):([$a-zA-Z0-9_-]{1,128})$`)

// ErrFunctions means that the client is not configured to invoke functions.
var ErrFunctions = errors.New("functions cannot be invoked by this client")

// ErrFunctionResponse is wrapped by errors of Functions about responses that no service
// sends.
var ErrFunctionResponse = errors.New("the function does not respond like a service")

// FunctionError means that a function ended without a response.
type FunctionError struct {
	Type    string // such as Runtime.ExitError; may be empty
	Message string
}

func (e *FunctionError) Error() string {
	if e.Type == "" {
		return "the function failed: " + e.Message
	}
	return "the function failed: " + e.Type + ": " + e.Message
}

// ParseFunction returns the address of the function with an ARN. Compress and AssumeRoleARN
// of its Function may be set before it is used.
func ParseFunction(arn string) (*Address, error) {
	parts := functionARN.FindStringSubmatch(arn)
	if parts == nil {
		return nil, fmt.Errorf("%w: %q is not the ARN of a function with its version", errAddress, arn)
	}
	f := &Function{ARN: arn, Region: parts[1]}
	return &Address{Scheme: "lambda", Authority: parts[2] + ":" + parts[3], Function: f, key: arn}, nil
}

func (c *Client) invoke(f *Function, r *http.Request, m Memory) (*http.Response, error) {
	if c.cfg.Functions == nil {
		return nil, ErrFunctions
	}
	if err := c.cfg.Egress.CheckFunction(f.ARN, f.AssumeRoleARN); err != nil {
		return nil, err
	}
	return c.cfg.Functions.Invoke(r.Context(), f, r, m)
}
