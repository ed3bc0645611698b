package discovery

import (
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"time"

	"platform/internal/errcode"
	"platform/invoker/protocol"
	"platform/metadata"
)

var (
	serviceName = regexp.MustCompile(`^([a-zA-Z]|_[a-zA-Z0-9])[a-zA-Z0-9._-]*$`)
	handlerName = regexp.MustCompile(`^([a-zA-Z]|_[a-zA-Z0-9])[a-zA-Z0-9_]*$`)
)

// IsServiceName reports whether a service can have the name.
func IsServiceName(name string) bool { return serviceName.MatchString(name) }

// deployment converts a discovery response to a deployment.
func (d *Discoverer) deployment(a *manifestResponse) (*metadata.Deployment, error) {
	contentType := a.head.Header.Get("Content-Type")
	if !knownMediaType(contentType) {
		return nil, errcode.New(errcode.META0013, "the discovery response has the content type %q, which is not that of an endpoint manifest", contentType)
	}
	m, err := parseManifest(a.body)
	if err != nil {
		return nil, err
	}
	bidirectional, err := d.checkProtocol(m, a)
	if err != nil {
		return nil, err
	}
	dep := &metadata.Deployment{
		HTTP11:        a.head.HTTP1,
		Bidirectional: bidirectional,
		MinProtocol:   int32(m.MinProtocolVersion),
		MaxProtocol:   int32(m.MaxProtocolVersion),
		SDKVersion:    a.head.Header.Get("X-Restate-Server"),
	}
	if a.function && m.LambdaCompression == "zstd" {
		dep.Compression = metadata.Zstd
	}
	for i := range m.Services {
		service, err := convertService(&m.Services[i])
		if err != nil {
			return nil, err
		}
		dep.Services = append(dep.Services, service)
	}
	slices.SortFunc(dep.Services, func(a, b *metadata.Service) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(dep.Services); i++ {
		if name := dep.Services[i].Name; name == dep.Services[i-1].Name {
			return nil, errcode.New(errcode.META0013, "the endpoint announces service %s twice", name)
		}
	}
	return dep, nil
}

func (d *Discoverer) checkProtocol(m *manifest, a *manifestResponse) (bidirectional bool, _ error) {
	switch m.ProtocolMode {
	case "BIDI_STREAM":
		bidirectional = true
	case "REQUEST_RESPONSE":
	case "":
		return false, errcode.New(errcode.META0013, "the discovery response lacks protocolMode")
	default:
		return false, errcode.New(errcode.META0013, "the discovery response has an unknown protocolMode %q", m.ProtocolMode)
	}
	low, high := m.MinProtocolVersion, m.MaxProtocolVersion
	if low < 1 || high < 1 || low > math.MaxInt32 || high > math.MaxInt32 || low > high {
		return false, errcode.New(errcode.META0013, "the discovery response has invalid protocol versions, %d to %d", low, high)
	}
	offered := protocol.Range{Min: int32(low), Max: int32(high)}
	if _, err := protocol.Choose(d.versions(), offered); err != nil {
		return false, errcode.New(errcode.META0012,
			"the endpoint supports service protocol %s, this server %s; upgrade the older one", offered, d.versions())
	}
	if bidirectional && a.function {
		return false, errcode.New(errcode.META0015,
			"the function announces bidirectional streaming, which Lambda does not support; configure the SDK for request-response mode")
	}
	if bidirectional && a.head.HTTP10 {
		return false, errcode.New(errcode.META0015, "the endpoint announces bidirectional streaming but responded with HTTP/1.0")
	}
	// Over HTTP/1.1 the request is completed before the response is read, even if the
	// endpoint supports streaming: intermediaries may not.
	return bidirectional && !a.head.HTTP1, nil
}

func convertService(m *serviceManifest) (*metadata.Service, error) {
	if !IsServiceName(m.Name) {
		return nil, invalid("service name %q is malformed", m.Name)
	}
	if err := metadata.CheckServiceName(m.Name); err != nil {
		return nil, err
	}
	s := &metadata.Service{Name: m.Name, Documentation: m.Documentation, Metadata: m.Metadata}
	switch m.Type {
	case "SERVICE":
		s.Type = metadata.PlainService
	case "VIRTUAL_OBJECT":
		s.Type = metadata.VirtualObject
	case "WORKFLOW":
		s.Type = metadata.Workflow
	default:
		return nil, invalid("service %s has an unknown type %q", m.Name, m.Type)
	}
	var err error
	if s.Options, err = convertOptions(&m.optionsManifest, "service "+m.Name); err != nil {
		return nil, err
	}
	for i := range m.Handlers {
		h, err := convertHandler(s, &m.Handlers[i])
		if err != nil {
			return nil, err
		}
		s.Handlers = append(s.Handlers, h)
	}
	slices.SortFunc(s.Handlers, func(a, b *metadata.Handler) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(s.Handlers); i++ {
		if name := s.Handlers[i].Name; name == s.Handlers[i-1].Name {
			return nil, errcode.New(errcode.META0013, "service %s announces handler %s twice", s.Name, name)
		}
	}
	return s, nil
}

func convertOptions(m *optionsManifest, of string) (metadata.Options, error) {
	o := metadata.Options{
		InactivityTimeout:    m.InactivityTimeout.duration(),
		AbortTimeout:         m.AbortTimeout.duration(),
		JournalRetention:     m.JournalRetention.duration(),
		IdempotencyRetention: m.IdempotencyRetention.duration(),
		EnableLazyState:      m.EnableLazyState,
		Retry: metadata.RetryOptions{
			InitialInterval: m.RetryInitialInterval.duration(),
			MaxInterval:     m.RetryMaxInterval.duration(),
			Factor:          m.RetryFactor,
		},
	}
	if m.IngressPrivate != nil {
		public := !*m.IngressPrivate
		o.Public = &public
	}
	if n := m.RetryMaxAttempts; n != nil {
		if *n < 0 {
			return o, invalid("%s: retryPolicyMaxAttempts is negative", of)
		}
		attempts := int(min(*n, math.MaxInt32))
		o.Retry.MaxAttempts = &attempts
	}
	if f := m.RetryFactor; f != nil && *f < 0 {
		return o, invalid("%s: retryPolicyExponentiationFactor is negative", of)
	}
	if after := m.RetryOnMaxAttempts; after != nil {
		var then metadata.OnMaxAttempts
		switch *after {
		case "PAUSE":
			then = metadata.Pause
		case "KILL":
			then = metadata.Kill
		default:
			return o, invalid("%s: retryPolicyOnMaxAttempts is %q, must be PAUSE or KILL", of, *after)
		}
		o.Retry.OnMaxAttempts = &then
	}
	return o, nil
}

// maxDuration is the maximum stored duration; longer ones are truncated to it.
const maxDuration = 100 * 365 * 24 * time.Hour

// millis is a duration in a manifest, in non-negative whole milliseconds.
type millis uint64

// UnmarshalJSON decodes a non-negative integer.
func (m *millis) UnmarshalJSON(b []byte) error {
	var n uint64
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	*m = millis(n)
	return nil
}

func (m *millis) duration() *time.Duration {
	if m == nil {
		return nil
	}
	d := time.Duration(min(uint64(*m), uint64(maxDuration/time.Millisecond))) * time.Millisecond
	return &d
}
