package chaos

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// requestTimeout limits a request, including the server's recovery.
const requestTimeout = 60 * time.Second

// rounds returns the number of kills.
func rounds(t *testing.T) int {
	text := os.Getenv("CHAOS_ROUNDS")
	if text == "" {
		return 5
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "CHAOS_ROUNDS")
	return n
}

// responseTimeout returns how soon every key must respond once the server is back.
func responseTimeout(t *testing.T) time.Duration {
	text := os.Getenv("CHAOS_RESPONSE_TIMEOUT")
	if text == "" {
		return time.Minute // other tests may share the machine
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, "CHAOS_RESPONSE_TIMEOUT")
	return d
}

// environment is a server with the test services registered.
type environment struct {
	server   *harness.Server
	service  *harness.Service
	recorder *harness.Recorder
}

func newEnvironment(t *testing.T) *environment {
	bin, err := harness.Build("platform/test/chaos/services")
	require.NoError(t, err)
	s := &environment{recorder: harness.RecorderFor(t)}
	s.service = harness.ServiceFor(t, harness.ServiceOptions{
		Name: "services", Command: []string{bin}, Env: map[string]string{"RECORDER": s.recorder.URL()},
	})
	s.server = harness.ServerFor(t, nil)
	require.NoError(t, s.server.Register(t.Context(), s.service.URI(), false))
	return s
}

// randomPause waits for a random time up to maximum, to vary the point of a kill.
func randomPause(ctx context.Context, maximum time.Duration) {
	timer := time.NewTimer(rand.N(maximum))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// quantile returns the q-quantile of durations, which it sorts.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))].Round(time.Millisecond)
}
