package kafka

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/subscription"
)

// Any user who may define a Kafka cluster chooses the path of a file.
func TestDevicesAndLargeFilesAreNotRead(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, []byte(strings.Repeat("x", maxPEM+1)), 0o600))
	for _, path := range []string{"/dev/zero", "/dev/null", t.TempDir(), large} {
		_, err := read(subscription.PEM{File: path})
		require.ErrorContains(t, err, "is not a file of at most", path)
	}
	small := filepath.Join(t.TempDir(), "small")
	require.NoError(t, os.WriteFile(small, []byte("text"), 0o600))
	text, err := read(subscription.PEM{File: small})
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
}

// A property for the delay of retries has an effect.
func TestTheDelayOfRetries(t *testing.T) {
	delay := backoff(20*time.Millisecond, 100*time.Millisecond)
	for failures, want := range map[int]time.Duration{1: 20 * time.Millisecond, 2: 40 * time.Millisecond, 9: 100 * time.Millisecond, 1000: 100 * time.Millisecond} {
		require.LessOrEqual(t, delay(failures), want)
		require.GreaterOrEqual(t, delay(failures), want*3/4)
	}
}
