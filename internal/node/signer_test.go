package node

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/config"
	"platform/internal/errcode"
)

func TestSigningKey(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	cfg := config.Default()
	signer, err := newSigner(cfg, log)
	require.NoError(t, err)
	require.Nil(t, signer)

	file := filepath.Join(t.TempDir(), "key.pem")
	cfg.Worker.Invoker.RequestIdentityPrivateKeyPEMFile = file
	_, err = newSigner(cfg, log)
	code, _ := errcode.Of(err)
	require.Equal(t, errcode.RT0002, code)
	require.ErrorContains(t, err, "worker.invoker.request-identity-private-key-pem-file: open "+file+": no such file")

	// The key of RFC 8410, section 10.3.
	const key = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n"
	require.NoError(t, os.WriteFile(file, []byte(key), 0o600))
	signer, err = newSigner(cfg, log)
	require.NoError(t, err)
	require.Contains(t, text.String(), "public_key="+signer.KeyID())
}
