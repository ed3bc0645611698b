package admin

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// endpoint checks which endpoint a registration is about.
func (b *registration) endpoint() (Endpoint, error) {
	switch {
	case b.URI == nil && b.ARN == nil:
		return Endpoint{}, &failure{status: http.StatusUnprocessableEntity, message: "the field 'uri' is required: the address of the endpoint"}
	case b.URI != nil && b.ARN != nil:
		return Endpoint{}, badRequest("the fields 'uri' and 'arn' exclude each other")
	case b.ARN != nil:
		return Endpoint{}, invalidField("arn", errors.New("this server does not invoke functions; register an HTTP endpoint with 'uri'"))
	case b.AssumeRoleARN != nil:
		return Endpoint{}, invalidField("assume_role_arn", errors.New("it belongs to 'arn', not to 'uri'"))
	case len(b.Auth) > 0 && string(b.Auth) != "null":
		return Endpoint{}, invalidField("auth", errors.New("this server does not sign requests with identity tokens; use 'additional_headers'"))
	}
	uri, err := normalizeURI(*b.URI)
	if err != nil {
		return Endpoint{}, invalidField("uri", err)
	}
	headers, err := normalizeHeaders(b.AdditionalHeaders)
	if err != nil {
		return Endpoint{}, invalidField("additional_headers", err)
	}
	return Endpoint{URI: uri, HTTP11: b.UseHTTP11, AdditionalHeaders: headers}, nil
}

// normalizeURI gives equal addresses equal texts: scheme and host in lower case,
// no default port, a trailing slash.
func normalizeURI(text string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the text of the address once more
		}
		return "", err
	}
	switch u.Scheme { // url.Parse makes it lower case
	case "http", "https":
	case "":
		return "", fmt.Errorf("%q is not absolute, expected an address such as http://localhost:9080", text)
	default:
		return "", fmt.Errorf("the scheme %q is neither http nor https", u.Scheme)
	}
	u.Host = strings.ToLower(u.Host)
	switch {
	case u.Hostname() == "" || !httpguts.ValidHostHeader(u.Host):
		return "", fmt.Errorf("%q is not absolute, it has no host", text)
	case u.Fragment != "":
		return "", errors.New("a fragment has no meaning here")
	case u.User != nil:
		return "", errors.New("user and password do not belong there; use 'additional_headers' for authentication")
	}
	if port := u.Port(); port == "" || (u.Scheme == "http" && port == "80") || (u.Scheme == "https" && port == "443") {
		u.Host = strings.TrimSuffix(strings.TrimSuffix(u.Host, port), ":")
	}
	escaped := strings.TrimRight(u.EscapedPath(), "/") + "/"
	if u.Path, err = url.PathUnescape(escaped); err != nil {
		return "", err
	}
	u.RawPath = escaped
	return u.String(), nil
}

// connectionHeaders are made by the HTTP client and cannot be set from outside.
var connectionHeaders = []string{
	"connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}

// normalizeHeaders puts names in lower case and refuses what no request can carry.
func normalizeHeaders(headers map[string]string) (map[string]string, error) {
	if len(headers) == 0 {
		return nil, nil
	}
	normalized := make(map[string]string, len(headers))
	for name, value := range headers {
		lower := strings.ToLower(name)
		_, twice := normalized[lower]
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return nil, fmt.Errorf("%q is not a header name", name)
		case slices.Contains(connectionHeaders, lower):
			return nil, fmt.Errorf("the header %s is set by the server itself", lower)
		case !httpguts.ValidHeaderFieldValue(value):
			return nil, fmt.Errorf("the value of %s contains characters that a header cannot carry", lower)
		case twice:
			return nil, fmt.Errorf("the header %s is given twice", lower)
		}
		normalized[lower] = value
	}
	return normalized, nil
}
