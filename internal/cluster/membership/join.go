package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"
)

// runJoin joins other nodes until ctx ends: with a short backoff while this node is
// alone, and every rejoinInterval afterwards, so that a network partition heals.
func (m *Members) runJoin(ctx context.Context) {
	p := m.cfg.profile
	logged := make(map[string]string)
	for backoff := p.joinBackoff; ; {
		for _, gone := range m.table.prune(retention) {
			m.transport.removeEndpoint(gone.identity())
		}
		m.joinAll(ctx, logged)
		wait := p.rejoinInterval
		switch {
		case m.conflicts.active():
			wait, backoff = p.joinBackoff, p.joinBackoff
		case m.alone():
			wait, backoff = backoff, min(2*backoff, p.joinBackoffMax)
		default:
			backoff = p.joinBackoff
		}
		select {
		case <-time.After(wait + rand.N(wait/4+1)):
		case <-ctx.Done():
			return
		}
	}
}

// alone reports whether no other node is alive.
func (m *Members) alone() bool {
	for _, member := range m.Nodes() {
		if !member.Self && member.State == Alive {
			return false
		}
	}
	return true
}

// joinAll tries to join every missing node. logged holds the last error logged per
// address, to log only changes.
func (m *Members) joinAll(ctx context.Context, logged map[string]string) {
	targets := m.joinTargets()
	results := make([]error, len(targets))
	var attempts sync.WaitGroup
	for i, address := range targets {
		attempts.Go(func() { results[i] = m.joinHost(ctx, address) })
	}
	attempts.Wait()
	unjoined := make(map[string]error)
	for i, address := range targets {
		m.logJoinError(ctx, logged, address, results[i])
		if results[i] != nil {
			unjoined[address] = results[i]
		}
	}
	m.unjoined.Store(&unjoined)
}

// Unjoined returns the errors of the last join attempts by address. The caller must not
// modify it.
func (m *Members) Unjoined() map[string]error {
	if last := m.unjoined.Load(); last != nil {
		return *last
	}
	return nil
}

func (m *Members) logJoinError(ctx context.Context, logged map[string]string, address string, err error) {
	if err == nil || ctx.Err() != nil {
		delete(logged, address)
		return
	}
	level := slog.LevelDebug
	if text := err.Error(); logged[address] != text {
		logged[address] = text
		level = slog.LevelInfo
		if errors.Is(err, errOtherCluster) {
			level = slog.LevelWarn
		}
	}
	m.log.Log(ctx, level, "joining node failed; retrying", "address", address, "err", err)
}

// joinTargets returns the addresses to join: seeds, known nodes and dead members, except
// members that are alive.
func (m *Members) joinTargets() []string {
	seen := map[string]bool{m.cfg.Address: true}
	conflict := m.conflicts.active()
	candidates := append(append([]string(nil), m.cfg.Seeds...), m.cfg.Known()...)
	for _, member := range m.Nodes() {
		switch {
		case member.Self:
		case member.State == Dead || (member.State == Alive && conflict):
			candidates = append(candidates, member.Address)
		case member.State == Alive:
			seen[member.Address] = true
		}
	}
	var targets []string
	for _, address := range candidates {
		if !seen[address] {
			seen[address] = true
			targets = append(targets, address)
		}
	}
	return targets
}

// joinHost joins through all addresses of a host. It succeeds if one of them does.
func (m *Members) joinHost(ctx context.Context, hostport string) error {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return err
	}
	addrs, err := m.transport.resolver.addresses(ctx, host)
	if err != nil {
		return err
	}
	results := make(chan error, len(addrs))
	for _, ip := range addrs {
		address := net.JoinHostPort(ip.String(), port)
		m.wg.Go(func() {
			err := m.exchangeState(endpoint{address: address})
			if err != nil && address != hostport {
				err = fmt.Errorf("%s: %w", address, err)
			}
			results <- err
		})
	}
	var errs error
	joined := false
	for range addrs {
		err := <-results
		joined = joined || err == nil
		errs = errors.Join(errs, err)
	}
	if joined {
		return nil
	}
	return errs
}

// exchangeState performs a full state exchange with a node. It does nothing if the node is
// this one.
func (m *Members) exchangeState(e endpoint) error {
	var dialErr error
	e.dialErr = &dialErr
	// The key is unique so that concurrent attempts do not share dialErr.
	key := seedIdentity(fmt.Sprintf("%s %d", e.address, rand.Uint64()))
	m.transport.setEndpoint(key, e)
	defer m.transport.removeEndpoint(key)
	_, err := m.list.Join([]string{key.String()})
	switch {
	case errors.Is(dialErr, errSelf):
		return nil
	case dialErr != nil:
		return dialErr
	case err != nil:
		return errors.New(joinReason(err, key))
	}
	return nil
}

// joinReason returns the message of a memberlist error without its prefix, which contains
// the key, and with what to do about it.
func joinReason(err error, key identity) string {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	text := strings.TrimSpace(err.Error())
	if _, reason, ok := strings.Cut(text, key.String()+": "); ok {
		text = strings.TrimSpace(reason)
	}
	if strings.Contains(strings.ToLower(text), "crypt") { // memberlist has no error values for these
		text += "; networking.gossip-key-file must contain the same key on all nodes"
	}
	return text
}
