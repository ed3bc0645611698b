package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Dialer connects to permitted destinations.
type Dialer struct {
	policy *Policy
	dialer net.Dialer
}

// Dialer returns a dialer whose connections take at most timeout to establish.
func (p *Policy) Dialer(timeout time.Duration) *Dialer {
	d := &Dialer{policy: p}
	d.dialer = net.Dialer{Timeout: timeout, ControlContext: p.control, Resolver: p.Resolver}
	return d
}

// namedKey marks the context of a connection to a host whose name is allowed.
type namedKey struct{}

// DialContext connects to an address, if it is permitted. Otherwise the error wraps
// ErrForbidden.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	named, err := d.policy.checkHost(host)
	if err != nil {
		return nil, err
	}
	if named {
		ctx = context.WithValue(ctx, namedKey{}, true)
	}
	return d.dialer.DialContext(ctx, network, address)
}

// control is called by net.Dialer with each resolved address right before connecting.
func (p *Policy) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	named, _ := ctx.Value(namedKey{}).(bool)
	return p.check(ap, named)
}
