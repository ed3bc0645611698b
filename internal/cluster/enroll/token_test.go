package enroll

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTokenRoundTrip(t *testing.T) {
	token := NewToken(sha256.Sum256([]byte("authority")))
	parsed, err := ParseToken(token.Text() + "\n")
	require.NoError(t, err)
	require.Equal(t, token, parsed)
	require.NotEqual(t, token.Text(), NewToken(token.Authority).Text())
}

func TestTextsThatAreNoTokensAreNotRepeated(t *testing.T) {
	good := NewToken([32]byte{}).Text()
	for _, bad := range []string{"", "secret", "plt_" + good[4:], good + "_x", good[:len(good)-1], strings.ToUpper(good), strings.Replace(good, "_", "", 1)} {
		_, err := ParseToken(bad)
		require.ErrorIs(t, err, errToken, bad)
		if len(bad) > 20 {
			require.NotContains(t, err.Error(), bad[5:])
		}
	}
}

func TestTokenIsNotPrinted(t *testing.T) {
	token := NewToken([32]byte{})
	secret := strings.Split(token.Text(), "_")[2]
	var out bytes.Buffer
	for _, log := range []*slog.Logger{slog.New(slog.NewTextHandler(&out, nil)), slog.New(slog.NewJSONHandler(&out, nil))} {
		log.Info("x", "token", token, "pointer", &token, "err", fmt.Errorf("with %v", token))
	}
	text, err := json.Marshal(map[string]any{"token": token})
	require.NoError(t, err)
	out.Write(text)
	fmt.Fprintf(&out, "%v %+v %#v %s %x %q %d", token, token, token, token, token, token, token)
	require.NotContains(t, out.String(), secret)
	require.NotContains(t, out.String(), fmt.Sprintf("%x", token.secret))
	require.NotContains(t, out.String(), fmt.Sprint(token.secret))
	require.Contains(t, out.String(), token.ID)
}

func TestTokenFileMustNotBeReadableByAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	token := NewToken([32]byte{})
	require.NoError(t, os.WriteFile(path, []byte(token.Text()), 0o600))
	read, err := ReadToken(path)
	require.NoError(t, err)
	require.Equal(t, token, read)
	require.NoError(t, os.Chmod(path, 0o644))
	_, err = ReadToken(path)
	require.ErrorContains(t, err, "chmod 600")
}
