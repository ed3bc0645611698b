package invoker

import (
	"net/http"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"platform/internal/ids"
	"platform/invoker/endpoint"
	"platform/invoker/identity"
	"platform/invoker/protocol"
	"platform/metadata"
)

// route is the data for reaching a deployment that all its attempts share.
type route struct {
	deployment *metadata.Deployment
	addr       *endpoint.Address
	own        map[string]bool // header names set by the deployment
	headers    [protocol.V7 + 1]http.Header
	signer     *identity.Signer // nil: requests are not signed
}

// add sets a header of one request unless the deployment has set it for all.
func (r *route) add(h http.Header, name, value string) {
	if !r.own[name] {
		h[name] = []string{value}
	}
}

// sign signs the request if configured: see package identity.
func (r *route) sign(h http.Header, path, key string) {
	if r.signer != nil {
		r.add(h, identity.SchemeHeader, identity.Scheme)
		r.add(h, identity.TokenHeader, r.signer.Token(path, key))
	}
}

// maxRoutes bounds the cached routes.
const maxRoutes = 4096

// routes caches the routes of deployments.
type routes struct {
	headers map[string]string // of the server, for all deployments
	signer  *identity.Signer

	mu   sync.RWMutex // covers byID
	byID map[ids.Deployment]*route
}

// get returns the route of a deployment, recreated when the registry has a new version of
// it.
func (r *routes) get(d *metadata.Deployment) (*route, error) {
	r.mu.RLock()
	known := r.byID[d.ID]
	r.mu.RUnlock()
	if known != nil && known.deployment == d {
		return known, nil
	}
	made, err := r.make(d)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil || len(r.byID) >= maxRoutes { // mostly of deployments that are gone
		r.byID = map[ids.Deployment]*route{}
	}
	r.byID[d.ID] = made
	return made, nil
}

func (r *routes) make(d *metadata.Deployment) (*route, error) {
	addr, err := addressOf(d)
	if err != nil {
		return nil, err
	}
	made := &route{deployment: d, addr: addr, own: map[string]bool{}, signer: r.signer}
	for v := protocol.V5; v <= protocol.V7; v++ {
		h := http.Header{
			"content-type": {v.ContentType()},
			"accept":       {v.ContentType()},
			"user-agent":   nil, // suppresses the library's default
		}
		setHeaders(h, r.headers, nil)
		setHeaders(h, d.AdditionalHeaders, made.own)
		made.headers[v] = h
	}
	return made, nil
}

func addressOf(d *metadata.Deployment) (*endpoint.Address, error) {
	if !d.Function() {
		return endpoint.ParseAddress(d.URI, d.HTTP11)
	}
	addr, err := endpoint.ParseFunction(d.ARN)
	if err != nil {
		return nil, err
	}
	addr.Function.AssumeRoleARN = d.AssumeRoleARN
	addr.Function.Compress = d.Compression == metadata.Zstd
	return addr, nil
}

// setHeaders adds configured headers, and records their names in own if that is not nil.
// Hop-by-hop headers and malformed ones are omitted: the transport would reject the whole
// request.
func setHeaders(h http.Header, configured map[string]string, own map[string]bool) {
	for name, value := range configured {
		name = strings.ToLower(name)
		if hopByHop[name] || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			continue
		}
		h[name] = []string{value}
		if own != nil {
			own[name] = true
		}
	}
}

var hopByHop = map[string]bool{
	"connection": true, "keep-alive": true, "proxy-connection": true, "transfer-encoding": true, "te": true,
	"trailer": true, "upgrade": true, "host": true, "content-length": true, "expect": true,
}
