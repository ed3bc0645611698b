package membership

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/certs"
	"platform/internal/nodetls"
)

// removals are the nodes that were removed from a cluster.
type removals struct{ list atomic.Pointer[[]Removed] }

func (r *removals) get() []Removed {
	if list := r.list.Load(); list != nil {
		return *list
	}
	return nil
}

func (r *removals) remove(list ...Removed) { r.list.Store(&list) }

// A node that was removed from the cluster can neither open gossip streams nor become a member, with a
// valid certificate or without any. One with the same name and an empty data directory can.
func TestRemovedNodesAreRefused(t *testing.T) {
	ca, err := certs.NewAuthority("test", time.Hour)
	require.NoError(t, err)
	for name, mode := range map[string]nodetls.Mode{"without certificates": nodetls.Off, "with certificates": nodetls.Require} {
		t.Run(name, func(t *testing.T) {
			var removed removals
			configured := func(node string, more func(*Config)) func(*Config) {
				return func(cfg *Config) {
					cfg.Removed = removed.get
					cfg.Former = func(name, incarnation string) bool { return slices.Contains(removed.get(), Removed{name, incarnation}) }
					if node == "c" {
						cfg.Removed, cfg.Former = nil, nil // it does not know
					}
					if mode != nodetls.Off {
						cfg.Security = securityOf(t, ca, "test", node, mode)
					}
					if more != nil {
						more(cfg)
					}
				}
			}
			a := start(t, "a", configured("a", nil))
			b := start(t, "b", configured("b", seeds(a)))
			c := start(t, "c", configured("c", seeds(a, b)))
			for _, n := range []*testNode{a, b, c} {
				n.sees("a", "b", "c")
			}
			c.crash()
			a.sees("a", "b")
			b.sees("a", "b")
			removed.remove(Removed{"c", "1"}, Removed{"x", "1"})

			back := startAt(t, "", "c", configured("c", seeds(a, b)))
			require.Eventually(t, func() bool { // a busy machine may not respond to an attempt in time
				refused := 0
				for _, err := range back.Unjoined() {
					if strings.Contains(err.Error(), "that node refuses this one") {
						refused++
					}
				}
				return refused == 2
			}, 2*time.Minute, 10*time.Millisecond, "refused by both")
			back.sees("c")
			// An address that a stream did not pass on: only a description of the node arrives.
			require.Error(t, (&delegate{a.Members}).NotifyAlive(back.list.LocalNode()))
			require.NotEqual(t, Alive, a.State("c", "1"))
			back.crash()

			fresh := start(t, "c", configured("c", func(cfg *Config) {
				cfg.Incarnation = "2"
				seeds(a, b)(cfg)
			}))
			for _, n := range []*testNode{a, b, fresh} {
				n.sees("a", "b", "c")
			}
		})
	}
}

// Packets prove who sent them only as far as they were encrypted: those of removed nodes are dropped.
func TestPacketsOfRemovedNodesAreDropped(t *testing.T) {
	ca, err := certs.NewAuthority("c", time.Hour)
	require.NoError(t, err)
	n, other := packetTransport("a", security(t, ca, "a", nodetls.Require)), packetTransport("b", security(t, ca, "b", nodetls.Require))
	packet := other.encode(n.self.target, []byte("x"))
	_, ok := n.decode(packet)
	require.True(t, ok)
	n.removed = func() []Removed { return []Removed{{"c", "1"}, {"b", "2"}} }
	_, ok = n.decode(packet)
	require.True(t, ok, "another data directory of the node")
	n.removed = func() []Removed { return []Removed{{"b", "1"}} }
	_, ok = n.decode(packet)
	require.False(t, ok)
}

// A node stops for another one with its name only if that has a certificate of the name, where nodes have
// certificates: every member, also a former one, can spread a claim.
func TestNamesAreYieldedToTheirCertificates(t *testing.T) {
	ca, err := certs.NewAuthority("test", time.Hour)
	require.NoError(t, err)
	named := func(certificate, incarnation string, mode nodetls.Mode) func(*Config) {
		return func(cfg *Config) {
			cfg.Security, cfg.Incarnation = securityOf(t, ca, "test", certificate, mode), incarnation
		}
	}
	for name, c := range map[string]struct {
		mode        nodetls.Mode
		certificate string
		yields      bool
	}{
		"the certificate of the name":                   {nodetls.Require, "a", true},
		"the certificate of another node":               {nodetls.Require, "b", false},
		"the certificate of another node while allowed": {nodetls.Allow, "b", false},
	} {
		t.Run(name, func(t *testing.T) {
			a := start(t, "a", named("a", "1", c.mode))
			other := start(t, "a", named(c.certificate, "2", c.mode))
			claim := other.selfMember()
			claim.Started = a.selfMember().Started.Add(-time.Hour) // earlier, so that it outranks this node
			require.Equal(t, c.yields, a.mustYield(claim, time.Hour))
			other.crash()
			require.Equal(t, c.mode != nodetls.Require, a.mustYield(claim, time.Hour), "it does not respond")
		})
	}
}
