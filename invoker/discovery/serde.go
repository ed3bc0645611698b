package discovery

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"platform/internal/errcode"
	"platform/invoker/endpoint"
	"platform/invoker/identity"
	"platform/metadata"
)

// Conversion is a request to an endpoint to convert a value between the format of a serializer of a
// service and JSON.
type Conversion struct {
	Deployment *metadata.Deployment
	Service    string
	Encode     bool // from JSON to the format; otherwise to JSON
	Serde      string
	Body       []byte
}

// Converted is the response of an endpoint to a Conversion.
type Converted struct {
	Status      int
	ContentType string
	Body        []byte // at most Config.maxBody
}

// Convert sends a conversion to the endpoint of a deployment. Errors have code META0003 if it
// cannot be reached and META0013 if its response is too large.
func (d *Discoverer) Convert(ctx context.Context, c Conversion) (Converted, error) {
	addr, _, err := addressOf(&Request{
		URI: c.Deployment.URI, ARN: c.Deployment.ARN, AssumeRoleARN: c.Deployment.AssumeRoleARN, UseHTTP11: c.Deployment.HTTP11,
	})
	if err != nil {
		return Converted{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.timeout)
	defer cancel()
	unreachable := func(err error) (Converted, error) {
		_, _, err = d.unreachable(ctx, addr, err)
		return Converted{}, err
	}
	if addr.Scheme == "https" && !addr.HTTP11 {
		negotiated, err := d.client.Negotiate(ctx, addr)
		if err != nil {
			return unreachable(err)
		}
		addr = negotiated
	}
	response := &collector{request: d.conversion(addr, &c), limit: d.cfg.maxBody, done: make(chan struct{})}
	stream := d.client.Open(response)
	stream.Write(c.Body)
	stream.CloseWrite()
	if err := d.wait(ctx, addr, response.done); err != nil {
		stream.Reset()
		return unreachable(err)
	}
	switch {
	case response.tooLarge:
		stream.Reset()
		return Converted{}, errcode.New(errcode.META0013, "the response of %s is larger than %d bytes", addr.Authority, d.cfg.maxBody)
	case response.err != nil:
		return unreachable(response.err)
	}
	return Converted{response.head.Status, response.head.Header.Get("Content-Type"), response.body}, nil
}

func (d *Discoverer) conversion(addr *endpoint.Address, c *Conversion) *endpoint.Request {
	operation := "decode"
	if c.Encode {
		operation = "encode"
	}
	path := "/serdes/" + c.Service + "/" + operation + "/" + url.PathEscape(c.Serde)
	h := http.Header{"content-type": {"application/octet-stream"}, "user-agent": nil}
	if s := d.cfg.Identity; s != nil {
		h[identity.SchemeHeader] = []string{identity.Scheme}
		h[identity.TokenHeader] = []string{s.Token(path, "")}
	}
	for _, headers := range []map[string]string{d.cfg.AdditionalHeaders, c.Deployment.AdditionalHeaders} {
		for name, value := range headers {
			h[strings.ToLower(name)] = []string{value}
		}
	}
	return &endpoint.Request{Address: addr, Method: http.MethodPost, Path: addr.Path(path), Header: h}
}
