package nodetls

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A file of packet keys is damaged, repaired, and damaged in the same way: each time is logged once.
func TestEachFailureToReloadPacketKeysIsLogged(t *testing.T) {
	ca := newAuthority(t, "c")
	keys, err := ca.PacketKey()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "gossip.key")
	write := func(content []byte) { require.NoError(t, os.WriteFile(path, content, 0o600)) }
	write(keys)
	synctest.Test(t, func(t *testing.T) {
		k, err := openPacketKeys(path)
		require.NoError(t, err)
		var out bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		go k.run(ctx, slog.New(slog.NewTextHandler(&out, nil)))
		logged := func() int {
			time.Sleep(5 * time.Second)
			synctest.Wait()
			return bytes.Count(out.Bytes(), []byte("not reloaded"))
		}
		require.Equal(t, 0, logged())
		for n := range 3 {
			write([]byte("no key"))
			require.Equal(t, n+1, logged())
			write(keys)
			require.Equal(t, n+1, logged())
		}
		cancel()
	})
}
