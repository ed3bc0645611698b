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

// join looks for other nodes until ctx ends: fast while there are none, and now and
// then afterwards, so that parts of a cluster that lost each other find together.
func (m *Members) join() {
	p := m.cfg.Profile
	outcomes := make(map[string]string)
	for backoff := p.JoinBackoff; ; {
		for _, gone := range m.table.prune(retention) {
			m.transport.removePeer(gone.identity())
		}
		m.joinAll(outcomes)
		wait := p.RejoinInterval
		switch {
		case m.contest.open():
			wait, backoff = p.JoinBackoff, p.JoinBackoff
		case m.alone():
			wait, backoff = backoff, min(2*backoff, p.JoinBackoffMax)
		default:
			backoff = p.JoinBackoff
		}
		select {
		case <-time.After(wait + rand.N(wait/4+1)):
		case <-m.ctx.Done():
			return
		}
	}
}

// alone tells whether no other node is alive.
func (m *Members) alone() bool {
	for _, member := range m.Nodes() {
		if !member.Self && member.State == Alive {
			return false
		}
	}
	return true
}

// joinAll tries every node that should be there and is not. outcomes holds what came
// of the last tries, because only news is worth a log line.
func (m *Members) joinAll(outcomes map[string]string) {
	targets := m.missing()
	results := make([]error, len(targets))
	var tries sync.WaitGroup
	for i, address := range targets {
		tries.Go(func() { results[i] = m.joinHost(address) })
	}
	tries.Wait()
	unjoined := make(map[string]error)
	for i, address := range targets {
		m.logOutcome(outcomes, address, results[i])
		if results[i] != nil {
			unjoined[address] = results[i]
		}
	}
	m.unjoined.Store(&unjoined)
}

// Unjoined tells why nodes could not be joined when that was tried last, by address.
// The caller must not change it.
func (m *Members) Unjoined() map[string]error {
	if last := m.unjoined.Load(); last != nil {
		return *last
	}
	return nil
}

func (m *Members) logOutcome(outcomes map[string]string, address string, err error) {
	if err == nil || m.ctx.Err() != nil {
		delete(outcomes, address)
		return
	}
	level := slog.LevelDebug
	if text := err.Error(); outcomes[address] != text {
		outcomes[address] = text
		level = slog.LevelInfo
		if errors.Is(err, errOtherCluster) {
			level = slog.LevelWarn
		}
	}
	m.log.Log(context.Background(), level, "node cannot be joined, trying again", "address", address, "err", err)
}

// missing returns the addresses to try: the configured and the known ones and those of
// members that died, without those of members that are alive.
func (m *Members) missing() []string {
	seen := map[string]bool{m.cfg.Address: true}
	contested := m.contest.open()
	candidates := append(append([]string(nil), m.cfg.Seeds...), m.cfg.Known()...)
	for _, member := range m.Nodes() {
		switch {
		case member.Self:
		case member.State == Dead || (member.State == Alive && contested):
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

// joinHost tries all addresses behind a host name and is content with one.
func (m *Members) joinHost(hostport string) error {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return err
	}
	addrs, err := m.transport.resolver.addresses(m.ctx, host)
	if err != nil {
		return err
	}
	results := make(chan error, len(addrs))
	for _, ip := range addrs {
		m.wg.Go(func() { results <- m.meet(peer{address: net.JoinHostPort(ip.String(), port)}) })
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

// meet exchanges all state with a node. Meeting oneself does nothing.
func (m *Members) meet(p peer) error {
	var refusal error
	p.refusal = &refusal
	// The key is used once: two tries at a time must not see each other's refusal.
	key := seedIdentity(fmt.Sprintf("%s %d", p.address, rand.Uint64()))
	m.transport.setPeer(key, p)
	defer m.transport.removePeer(key)
	_, err := m.list.Join([]string{key.String()})
	switch {
	case errors.Is(refusal, errSelf):
		return nil
	case refusal != nil:
		return refusal
	case err != nil:
		return fmt.Errorf("node at %s: %s", p.address, joinReason(err, key))
	}
	return nil
}

// joinReason returns what the library has to say, without its wrapping, which names
// the key.
func joinReason(err error, key identity) string {
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	text := strings.TrimSpace(err.Error())
	if _, reason, ok := strings.Cut(text, key.String()+": "); ok {
		return strings.TrimSpace(reason)
	}
	return text
}
