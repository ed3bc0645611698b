package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
)

// Function is an endpoint that is invoked through a cloud's API rather than
// connected to.
type Function struct {
	ARN           string // with the version or an alias
	Region        string
	AssumeRoleARN string // of a role to take before invoking; may be empty
	Compress      bool   // the function takes zstd
}

// Functions invokes functions. It may be called concurrently.
type Functions interface {
	// Invoke sends a request, of which the opaque part of the URL is the path, and
	// returns the response when the function has ended. It reads the body to its end.
	// Errors of the cloud that are like a status of an endpoint become one.
	Invoke(ctx context.Context, f *Function, r *http.Request) (*http.Response, error)
}

// functionARN has the region, the name and the version as groups. The region becomes
// part of a host name, so nothing else may be in it.
var functionARN = regexp.MustCompile(`^arn:aws[a-z-]*:lambda:([a-z]{2}[a-z0-9-]{1,30}):[0-9]{12}:function:([a-zA-Z0-9_-]{1,140}):([$a-zA-Z0-9_-]{1,128})$`)

// ErrFunctions says that the client has not been told how to invoke functions.
var ErrFunctions = errors.New("functions cannot be invoked by this client")

// ErrFunctionAnswer is wrapped by errors of Functions about answers that no service
// gives.
var ErrFunctionAnswer = errors.New("the function does not answer like a service")

// FunctionError says that a function ended without an answer, of its own accord or
// the cloud's.
type FunctionError struct {
	Type    string // such as Runtime.ExitError; may be empty
	Message string
}

// Error is the message after the type.
func (e *FunctionError) Error() string {
	if e.Type == "" {
		return "the function failed: " + e.Message
	}
	return "the function failed: " + e.Type + ": " + e.Message
}

// ParseFunction reads the ARN of a function: its address. Compress and
// AssumeRoleARN of the result's function may be set before it is used.
func ParseFunction(arn string) (*Address, error) {
	parts := functionARN.FindStringSubmatch(arn)
	if parts == nil {
		return nil, fmt.Errorf("%w: %q is not the ARN of a function with its version", ErrAddress, arn)
	}
	f := &Function{ARN: arn, Region: parts[1]}
	return &Address{Scheme: "lambda", Authority: parts[2] + ":" + parts[3], Function: f, key: arn}, nil
}

func (c *Client) invoke(f *Function, r *http.Request) (*http.Response, error) {
	if c.cfg.Functions == nil {
		return nil, ErrFunctions
	}
	return c.cfg.Functions.Invoke(r.Context(), f, r)
}
