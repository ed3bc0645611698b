package deployments

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"platform/admin/rest"
	"platform/invoker/discovery"
	"platform/metadata"
)

// location is the address of a deployment and the options to reach it, as given in a request body.
// Nil fields were not given.
type location struct {
	URI               *string
	UseHTTP11         *bool
	ARN               *string
	AssumeRoleARN     *string
	AdditionalHeaders map[string]string
}

// given reports whether any field was given.
func (l *location) given() bool {
	return l.URI != nil || l.UseHTTP11 != nil || l.ARN != nil || l.AssumeRoleARN != nil || l.AdditionalHeaders != nil
}

// apply copies the given fields to a discovery request. It does not check that they match the kind
// of deployment; see checkKind.
func (l *location) apply(to *discovery.Request) (err error) {
	if l.URI != nil {
		if to.URI, err = discovery.NormalizeURI(strings.TrimSpace(*l.URI)); err != nil {
			return err
		}
	}
	if l.ARN != nil {
		if to.ARN, err = discovery.NormalizeARN(*l.ARN); err != nil {
			return err
		}
	}
	if l.UseHTTP11 != nil {
		to.UseHTTP11 = *l.UseHTTP11
	}
	if l.AssumeRoleARN != nil {
		to.AssumeRoleARN = strings.TrimSpace(*l.AssumeRoleARN)
	}
	if l.AdditionalHeaders != nil {
		if to.AdditionalHeaders, err = lowerCase(l.AdditionalHeaders); err != nil {
			return rest.InvalidField("additional_headers", err)
		}
		if err := discovery.CheckHeaders(to.AdditionalHeaders); err != nil {
			return err
		}
	}
	return nil
}

// checkKind returns an error if a field does not apply to the kind of deployment: a function or an
// HTTP endpoint.
func (l *location) checkKind(function bool) error {
	switch {
	case function && l.URI != nil:
		return rest.InvalidField("uri", errors.New("the deployment is a function, it has an 'arn'"))
	case function && l.UseHTTP11 != nil && *l.UseHTTP11:
		return rest.InvalidField("use_http_11", errors.New("it belongs to 'uri', not to 'arn'"))
	case !function && l.ARN != nil:
		return rest.InvalidField("arn", errors.New("the deployment is an HTTP endpoint, it has a 'uri'"))
	case !function && l.AssumeRoleARN != nil:
		return rest.InvalidField("assume_role_arn", errors.New("it belongs to 'arn', not to 'uri'"))
	}
	return nil
}

// endpoint validates the address of a registration and returns the discovery request for it.
func (b *registration) endpoint() (r discovery.Request, err error) {
	switch {
	case b.URI == nil && b.ARN == nil:
		return r, rest.Unprocessable("the field 'uri' is required: the address of the endpoint; or 'arn' for a function")
	case b.URI != nil && b.ARN != nil:
		return r, rest.BadRequest("the fields 'uri' and 'arn' exclude each other")
	case len(b.Auth) > 0 && string(b.Auth) != "null":
		return r, rest.InvalidField("auth", errors.New("this server does not sign requests with identity tokens; use 'additional_headers'"))
	}
	where := location{b.URI, b.UseHTTP11, b.ARN, b.AssumeRoleARN, b.AdditionalHeaders}
	if err := where.checkKind(b.ARN != nil); err != nil {
		return r, err
	}
	return r, where.apply(&r)
}

// memberAt says which address of a node of the cluster a URI has; empty if none.
func (s *Server) memberAt(uri string) string {
	at := authority(uri)
	if at == "" {
		return ""
	}
	for _, n := range s.registry.Nodes() {
		switch {
		case n.Removed:
		case authority(n.IngressAddress) == at:
			return "the ingress of node " + n.Name
		case authority(n.AdminAddress) == at:
			return "the admin API of node " + n.Name
		case authority(n.FabricAddress) == at:
			return "the node port of node " + n.Name
		}
	}
	return ""
}

// authority returns the host and port of an address; empty if it has none.
func authority(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// requestOf returns the discovery request for a registered deployment.
func requestOf(d *metadata.Deployment) discovery.Request {
	return discovery.Request{
		URI: d.URI, UseHTTP11: d.HTTP11, ARN: d.ARN, AssumeRoleARN: d.AssumeRoleARN, AdditionalHeaders: d.AdditionalHeaders,
	}
}

// addressOf returns the URI or ARN of a discovery request.
func addressOf(r discovery.Request) string {
	if r.ARN != "" {
		return r.ARN
	}
	return r.URI
}

// lowerCase returns headers with lower-case names. It returns an error for duplicate names and for
// the placeholder of hidden values.
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
		if value == hiddenValue {
			return nil, fmt.Errorf("the value of the header %s is what stands for a hidden one; send the value itself, or omit the field to keep all headers", name)
		}
		lower[name] = value
	}
	return lower, nil
}
