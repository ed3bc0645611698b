package enroll

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/certs"
	"platform/internal/nodetls"
	"platform/metadata"
)

// members is a registry whose nodes have addresses.
type members struct {
	*registry
	list []metadata.Node
}

func (m *members) Nodes() []metadata.Node { return m.list }

// rotating returns a node with a certificate of an authority, when another one is stored.
func rotating(t *testing.T, list ...metadata.Node) (r *Rotation, dir *testDir, next *certs.Authority, renewed *int) {
	old, err := certs.NewAuthority("c", time.Hour)
	require.NoError(t, err)
	dir = &testDir{path: t.TempDir()}
	o := newObtainer(t, dir)
	require.NoError(t, o.issue(old))
	security, err := nodetls.Open(nodetls.Config{Mode: nodetls.Require, Cluster: "c", Node: "n1", Files: o.Files.Certificate(), PacketKeyFile: o.Files.PacketKeys(), Log: o.Log})
	require.NoError(t, err)
	next, err = certs.NewAuthority("c", time.Hour)
	require.NoError(t, err)
	renewed = new(int)
	renew := o.renewal(renewed, next)
	return &Rotation{
		Files: o.Files, Current: security.Store(), Registry: &members{&registry{authority: next}, list}, Log: slog.New(slog.DiscardHandler),
		Renew: func(ctx context.Context) error { return errors.Join(renew(ctx), security.Store().Reload()) },
	}, dir, next, renewed
}

func (d *testDir) read(t *testing.T, name string) []byte {
	text, err := os.ReadFile(d.In(name))
	require.NoError(t, err)
	return text
}

// The only node replaces the authority in three steps; removed nodes are not asked.
func TestAuthorityIsReplacedInSteps(t *testing.T) {
	r, dir, next, renewed := rotating(t, metadata.Node{Name: "n1"}, metadata.Node{Name: "n2", Removed: true, FabricAddress: "http://127.0.0.1:1/"})
	packets, err := next.PacketKey()
	require.NoError(t, err)
	now := time.Now()
	check := func() {
		r.check(t.Context(), now)
		now = now.Add(rotationInterval)
	}
	require.True(t, r.pending())
	check()
	require.Len(t, r.Current.Current().Authorities, 2)
	lines := bytes.SplitAfter(dir.read(t, packetKeyFile), []byte("\n"))
	require.Equal(t, string(packets), string(lines[1]), "all decrypt, and the previous key encrypts")
	require.Zero(t, *renewed)
	check()
	require.Equal(t, 1, *renewed)
	require.False(t, r.pending())
	check()
	require.True(t, bytes.HasPrefix(dir.read(t, packetKeyFile), packets), "the new key encrypts")
	require.Len(t, r.Current.Current().Authorities, 2)
	for range 5 {
		check()
	}
	require.Len(t, r.Current.Current().Authorities, 1)
	require.Equal(t, next.CertPEM(), dir.read(t, authorityFile))
	require.Equal(t, packets, dir.read(t, packetKeyFile))
	require.Equal(t, 1, *renewed)
}

// A member that does not respond, or another node at its address, delays the replacement.
func TestTheAuthorityIsReplacedOnlyWithAllMembers(t *testing.T) {
	s := newService(t) // n1 of another authority
	for name, n := range map[string]metadata.Node{
		"down":         {Name: "n2", FabricAddress: "http://127.0.0.1:1/"},
		"another node": {Name: "n2", FabricAddress: "http://" + s.address + "/"},
	} {
		r, dir, _, renewed := rotating(t, n)
		var logged lockedBuffer
		r.Log = slog.New(slog.NewTextHandler(&logged, nil))
		before := dir.read(t, pairFile)
		for i := range 10 {
			r.check(t.Context(), time.Now().Add(time.Duration(i)*rotationInterval))
		}
		require.Zero(t, *renewed, name)
		require.Equal(t, before, dir.read(t, pairFile), name)
		require.Len(t, r.Current.Current().Authorities, 2, name)
		require.Contains(t, logged.String(), "not all members trust the new authority yet: node n2", name)
		require.Less(t, bytes.Count([]byte(logged.String()), []byte("retrying")), 6, name)
	}
}
