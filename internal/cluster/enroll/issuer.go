package enroll

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"platform/internal/certs"
	"platform/metadata"
)

// A member may renew its certificate this often.
const (
	renewInterval = 10 * time.Second
	renewBurst    = 5
)

// Registry is the part of the metadata that an Issuer needs.
type Registry interface {
	Authority() (metadata.Authority, bool)
	AuthorityKey() (certificate []byte, key string, err error)
	JoinTokens() []metadata.JoinToken
	CheckJoinToken(use *metadata.JoinTokenUse) error
	UseJoinToken(ctx context.Context, use *metadata.JoinTokenUse) (metadata.JoinToken, error)
	RecordAction(ctx context.Context, action metadata.Action) error
	Nodes() []metadata.Node
}

// IssuerConfig configures an Issuer.
type IssuerConfig struct {
	Cluster, Node string          // names
	Registry      func() Registry // nil until this node belongs to a cluster
	Validity      time.Duration   // of certificates
}

// Issuer issues certificates of nodes with the authority of the cluster. It is safe for concurrent
// use.
type Issuer struct {
	cfg IssuerConfig

	mu       sync.Mutex               // covers renewals
	renewals map[string]*rate.Limiter // by member
}

// NewIssuer returns an Issuer.
func NewIssuer(cfg IssuerConfig) *Issuer {
	return &Issuer{cfg: cfg, renewals: map[string]*rate.Limiter{}}
}

// errUnable means that this node cannot issue certificates; another one may.
var errUnable = errors.New("this node cannot issue certificates")

// awaitsNodes reports whether there are join tokens that can be used.
func (i *Issuer) awaitsNodes(now time.Time) bool {
	registry := i.cfg.Registry()
	if registry == nil {
		return false
	}
	for _, t := range registry.JoinTokens() {
		if now.Before(t.ExpiresAt) {
			return true
		}
	}
	return false
}

// enroll uses up a join token and returns a certificate. The error is errUnable or one of the
// metadata, which is safe to retry, or a refusal.
func (i *Issuer) enroll(ctx context.Context, from net.Addr, token string, secret []byte, node string, request []byte) ([]byte, error) {
	registry := i.cfg.Registry()
	if registry == nil {
		return nil, errUnable
	}
	hash := sha256.Sum256(secret)
	r, err := certs.ParseSigningRequest(request, i.cfg.Cluster, node)
	if err != nil {
		return nil, &refusedError{err}
	}
	use := &metadata.JoinTokenUse{ID: token, Hash: hash[:], Node: node, Key: r.KeyHash[:]}
	// A request with an invalid token causes no log entry of the metadata.
	if err := registry.CheckJoinToken(use); err != nil {
		return nil, &refusedError{err}
	}
	authority, err := i.authority(registry)
	if err != nil {
		return nil, err
	}
	ctx, _ = metadata.WithAction(ctx, i.action("EnrollNode", from, token, node))
	switch _, err := registry.UseJoinToken(ctx, use); {
	case errors.Is(err, metadata.ErrJoinTokenRefused):
		return nil, &refusedError{err}
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errUnable, err)
	}
	return authority.Sign(r, i.cfg.Validity)
}

// Renew returns the next certificate of an authenticated member.
func (i *Issuer) Renew(ctx context.Context, from net.Addr, node string, request []byte) ([]byte, error) {
	registry := i.cfg.Registry()
	if registry == nil {
		return nil, errUnable
	}
	r, err := certs.ParseSigningRequest(request, i.cfg.Cluster, node)
	if err != nil {
		return nil, err
	}
	if err := i.mayRenew(registry, node); err != nil {
		return nil, err
	}
	authority, err := i.authority(registry)
	if err != nil {
		return nil, err
	}
	// Without a record there is no certificate.
	if err := registry.RecordAction(ctx, i.action("RenewCertificate", from, "", node)); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnable, err)
	}
	return authority.Sign(r, i.cfg.Validity)
}

// mayRenew returns why a node may not renew its certificate now.
func (i *Issuer) mayRenew(registry Registry, node string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	members := map[string]*rate.Limiter{} // bounded by the number of members
	for _, n := range registry.Nodes() {
		if n.Removed {
			continue
		}
		if members[n.Name] = i.renewals[n.Name]; members[n.Name] == nil {
			members[n.Name] = rate.NewLimiter(rate.Every(renewInterval), renewBurst)
		}
	}
	i.renewals = members
	switch limiter := members[node]; {
	case limiter == nil:
		return fmt.Errorf("node %s is not a member", node)
	case !limiter.Allow():
		return fmt.Errorf("node %s renews its certificate too often", node)
	}
	return nil
}

// authority returns the authority of the cluster; the error is errUnable.
func (i *Issuer) authority(registry Registry) (*certs.Authority, error) {
	certificate, key, err := registry.AuthorityKey()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnable, err)
	}
	authority, err := certs.AuthorityOf(certificate, []byte(key))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnable, err)
	}
	return authority, nil
}

// action returns the record of the audit log for a certificate.
func (i *Issuer) action(action string, from net.Addr, token, node string) metadata.Action {
	a := metadata.Action{Principal: "node " + node, Token: token, Node: i.cfg.Node, Action: action, Object: node}
	if tcp, ok := from.(*net.TCPAddr); ok {
		a.Address = tcp.IP.String()
	}
	return a
}

// refusedError is a refusal that a retry does not change.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }
