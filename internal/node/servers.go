package node

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"platform/ingress"
	"platform/internal/access"
	"platform/internal/config"
	"platform/internal/egress"
	"platform/internal/units"
	"platform/internal/version"
	"platform/invoker"
	"platform/invoker/endpoint"
	"platform/invoker/endpoint/lambda"
	"platform/metadata"
)

func (n *Node) ingressServer() *ingress.Server {
	c := &n.cfg.Ingress
	return ingress.New(ingress.Config{
		TLS:                serverTLS(n.keys.listeners.ingress, &c.TLS),
		ForwardHeaders:     canonical(c.ForwardHeaders),
		RequestSizeLimit:   int64(c.RequestSizeLimit),
		ConcurrentRequests: int64(c.ConcurrentAPIRequestsLimit),
		MaxConnections:     n.connections.Ingress,
		AddressConnections: int(c.ConnectionsPerAddressLimit),
		TrustedProxies:     prefixes(c.TrustedProxies),
		Budget:             n.bodies,
		Guard:              n.access.ingressGuard(),
		Authenticator:      n.access.authenticator(portIngress, n.access.ingressRequiresToken(), n.metadata),
		Strict:             n.cfg.Security.Mode == config.SecurityStrict,
		Quotas:             access.NewQuotas(int64(c.PrincipalRequests), int64(c.PrincipalBytes)),
		HTTP2MaxStreams:    c.HTTP2MaxConcurrentStreams,
		DrainTimeout:       n.drainTimeout,
		FlowControl:        n.cfg.FlowControl(),
		Version:            version.Version(),
		Ready:              n.ready.Check,
		Metrics:            n.metrics.ingress,
		Tracer:             n.exports.tracer,
		Defaults:           n.defaults.Load,
		Level:              n.metadata.FeatureLevel,
		PartitionKey:       n.partitionKey,
	}, n.metadata, n.router, n.log.With("component", "platform/ingress"))
}

// prefixes returns the networks of a list that the configuration has checked.
func prefixes(list []string) []netip.Prefix {
	checked, _ := config.Prefixes(list)
	return checked
}

// canonical returns the names of headers in the form of http.Header.
func canonical(names []string) (list []string) {
	for _, name := range names {
		list = append(list, http.CanonicalHeaderKey(name))
	}
	return list
}

func (n *Node) newInvoker() *invoker.Invoker {
	c := &n.cfg.Worker.Invoker
	settings := invoker.DefaultConfig()
	settings.Stats, settings.Tracer = n.stats, n.exports.tracer
	settings.Defaults = *n.defaults.Load()
	settings.Level = n.metadata.FeatureLevel
	settings.Spread = n.router.Spread
	settings.ConcurrentInvocations = int(c.ConcurrentInvocationsLimit)
	settings.ServiceInvocations = int(c.PerServiceInvocationsLimit)
	settings.StartRate, settings.ActionRate = c.InvocationThrottling.Tokens(), c.ActionThrottling.Tokens()
	settings.NoResponseWarning = c.NoResponseWarning.Std()
	settings.MessageSizeLimit = int(c.MessageSizeLimit)
	settings.MessageSizeWarning = int(c.MessageSizeWarning)
	settings.EagerStateLimit = int(c.EagerStateSizeLimit)
	settings.StateSizeLimit = int(c.ObjectStateSizeLimit)
	settings.MemoryLimit = int(n.payloads.Attempts)
	settings.InvocationMemoryLimit = int(c.PerInvocationMemoryLimit)
	settings.MaxAwaitDepth = c.MaxAwaitedFutureDepth
	settings.EnableV7 = n.cfg.EnableProtocolV7
	settings.FlowControl = n.cfg.FlowControl()
	settings.AdditionalHeaders = c.AdditionalRequestHeaders
	settings.Identity = n.keys.signer
	e := &settings.Endpoint
	e.ConnectTimeout = c.ConnectTimeout.Std()
	e.IdleTimeout = c.HTTP2IdleConnectionTimeout.Std()
	e.PingInterval = c.HTTP2KeepAliveInterval.Std()
	e.PingTimeout = c.HTTP2KeepAliveTimeout.Std()
	e.MaxStreams = c.HTTP2StreamsPerConnectionLimit
	e.StreamWindow = int(c.HTTP2InitialStreamWindowSize)
	e.ConnWindow = int(c.HTTP2InitialConnectionWindowSize)
	e.MaxFrame = int(c.HTTP2MaxFrameSize)
	if c.HTTPProxy != "" {
		e.Proxy, _ = url.Parse(c.HTTPProxy) // the configuration has been checked
		e.NoProxy = c.NoProxy
	}
	e.Functions, e.Egress = newFunctions(c, e), egressPolicy(n.cfg, n.listeners)
	return invoker.New(settings, n.metadata, n.log.With("component", "platform/invoker"))
}

// egressPolicy returns which addresses this node connects to on behalf of users.
func egressPolicy(cfg *config.Config, l listeners) *egress.Policy {
	c := &cfg.Egress
	p := &egress.Policy{Functions: c.Functions, Roles: c.Roles}
	p.Allow, _ = egress.ParseRules(c.Allow) // the configuration has been checked
	p.Deny, _ = egress.ParseRules(c.Deny)
	for _, port := range []net.Addr{l.node.Addr(), l.ingress.Addr(), l.admin.Addr()} {
		p.OwnPorts = append(p.OwnPorts, uint16(tcpPort(port)))
	}
	return p
}

// newFunctions returns the client for functions.
func newFunctions(c *config.Invoker, e *endpoint.Config) *lambda.Client {
	settings := lambda.DefaultConfig()
	settings.Profile, settings.ExternalID = c.AWSProfile, c.AWSAssumeRoleExternalID
	settings.CompressFrom = int(c.RequestCompressionThreshold)
	settings.ConnectTimeout, settings.IdleTimeout = e.ConnectTimeout, e.IdleTimeout
	settings.Proxy = e.ProxyFunc()
	return lambda.New(settings)
}

// defaultsOf returns the options of services that announce none.
func defaultsOf(c *config.Config) metadata.Defaults {
	r := &c.DefaultRetryPolicy
	d := metadata.Defaults{
		InactivityTimeout:    c.Worker.Invoker.InactivityTimeout.Std(),
		AbortTimeout:         c.Worker.Invoker.AbortTimeout.Std(),
		JournalRetention:     c.DefaultJournalRetention.Std(),
		IdempotencyRetention: c.DefaultIdempotencyRetention.Std(),
		WorkflowRetention:    c.DefaultWorkflowCompletionRetention.Std(),

		MaxJournalRetention:     optional(c.MaxJournalRetention),
		MaxIdempotencyRetention: optional(c.MaxIdempotencyRetention),
		MaxWorkflowRetention:    optional(c.MaxWorkflowCompletionRetention),

		Retry: metadata.RetryPolicy{
			InitialInterval: r.InitialInterval.Std(),
			MaxInterval:     r.MaxInterval.Std(),
			Factor:          r.ExponentiationFactor,
			MaxAttempts:     int(r.MaxAttempts),
		},
		MaxRetryAttempts: int(c.MaxRetryPolicyMaxAttempts),
	}
	if r.OnMaxAttempts == config.KillOnMaxAttempts {
		d.Retry.OnMaxAttempts = metadata.Kill
	}
	return d
}

func optional(d *units.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	std := d.Std()
	return &std
}
