package kafka

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

// The key of a client is a secret, its certificate is not.
func TestKeysThatEveryUserCanReadAreRefused(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("text"), 0o600))
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o440: false, 0o604: true, 0o644: true} {
		require.NoError(t, os.Chmod(key, mode))
		_, err := readKey(subscription.PEM{File: key})
		if refused {
			require.ErrorContains(t, err, "chmod 600 "+key)
		} else {
			require.NoError(t, err)
		}
		_, err = read(subscription.PEM{File: key})
		require.NoError(t, err)
	}
	text, err := readKey(subscription.PEM{Text: "text"})
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

// A client can be opened with every value of a property that is accepted.
func TestAcceptedPropertiesOpenAClient(t *testing.T) {
	numbers := []string{"-1", "0", "1", "5", "10", "100", "1000", "10000", "300000", "900000", "900001", "3600000", "86400000", "100000000", "1000000000", "2147483135", "2147483647"}
	opened := 0
	for _, name := range subscription.PropertyNames() {
		for _, value := range append(numbers, strings.Repeat("x", 256), strings.Repeat("x", 1000)) {
			settings, err := subscription.ClientOf(&subscription.Cluster{Properties: map[string]string{"bootstrap.servers": "127.0.0.1:1"}},
				&subscription.Subscription{Properties: map[string]string{name: value}})
			if err != nil || name == "bootstrap.servers" || name == "metadata.broker.list" {
				continue
			}
			client, err := New(Config{}).newClient(&settings)
			require.NoError(t, err, "%s = %s", name, value)
			client.Close()
			opened++
		}
	}
	require.Greater(t, opened, 80)
}

// A certificate that is replaced on disk is used for the next connection, without a restart.
func TestReplacedCertificates(t *testing.T) {
	_, oldAuthority := certificate(t)
	second, newAuthority := certificate(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{second}})
	require.NoError(t, err)
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).HandshakeContext(t.Context())
			_ = conn.Close()
		}
	})
	defer clients.Wait()
	defer listener.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, []byte(oldAuthority), 0o600))
	dial := dialer((&net.Dialer{}).DialContext, time.Minute, &subscription.TLS{CA: subscription.PEM{File: file}})
	_, err = dial(t.Context(), "tcp", listener.Addr().String())
	require.ErrorContains(t, err, "certificate")
	require.NoError(t, os.WriteFile(file, []byte(newAuthority), 0o600))
	conn, err := dial(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, os.Remove(file))
	_, err = dial(t.Context(), "tcp", listener.Addr().String())
	require.ErrorContains(t, err, "ca.pem")
}
