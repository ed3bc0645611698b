package admin

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"platform/invoker/discovery"
)

// endpoint checks which endpoint a registration is about.
func (b *registration) endpoint() (discovery.Request, error) {
	var none discovery.Request
	switch {
	case b.URI == nil && b.ARN == nil:
		return none, &failure{status: http.StatusUnprocessableEntity, message: "the field 'uri' is required: the address of the endpoint"}
	case b.URI != nil && b.ARN != nil:
		return none, badRequest("the fields 'uri' and 'arn' exclude each other")
	case b.ARN != nil:
		return none, invalidField("arn", errors.New("this server does not invoke functions; register an HTTP endpoint with 'uri'"))
	case b.AssumeRoleARN != nil:
		return none, invalidField("assume_role_arn", errors.New("it belongs to 'arn', not to 'uri'"))
	case len(b.Auth) > 0 && string(b.Auth) != "null":
		return none, invalidField("auth", errors.New("this server does not sign requests with identity tokens; use 'additional_headers'"))
	}
	uri, err := discovery.NormalizeURI(strings.TrimSpace(*b.URI))
	if err != nil {
		return none, err
	}
	headers, err := lowerCase(b.AdditionalHeaders)
	if err != nil {
		return none, invalidField("additional_headers", err)
	}
	return discovery.Request{URI: uri, UseHTTP11: b.UseHTTP11, AdditionalHeaders: headers}, nil
}

// lowerCase makes the names of headers comparable.
func lowerCase(headers map[string]string) (map[string]string, error) {
	if len(headers) == 0 {
		return nil, nil
	}
	lower := make(map[string]string, len(headers))
	for name, value := range headers {
		name = strings.ToLower(name)
		if _, twice := lower[name]; twice {
			return nil, fmt.Errorf("the header %s is given twice", name)
		}
		lower[name] = value
	}
	return lower, nil
}
