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

// patience is how long anything may take before the test gives up on it.
const patience = 60 * time.Second

// rounds returns how often to kill.
func rounds(t *testing.T) int {
	text := os.Getenv("CHAOS_ROUNDS")
	if text == "" {
		return 5
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "CHAOS_ROUNDS")
	return n
}

// answerLimit returns how soon every key must answer once the server is back.
func answerLimit(t *testing.T) time.Duration {
	text := os.Getenv("CHAOS_ANSWER_LIMIT")
	if text == "" {
		return 15 * time.Second // other tests may share the machine
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, "CHAOS_ANSWER_LIMIT")
	return d
}

// system is a server with the chaos services registered.
type system struct {
	server   *harness.Server
	service  *harness.Service
	recorder *harness.Recorder
}

func startSystem(t *testing.T) *system {
	bin, err := harness.Build("platform/test/chaos/services")
	require.NoError(t, err)
	s := &system{recorder: harness.RecorderFor(t)}
	s.service = harness.ServiceFor(t, harness.ServiceOptions{
		Name: "services", Command: []string{bin}, Env: map[string]string{"RECORDER": s.recorder.URL()},
	})
	s.server = harness.ServerFor(t, nil)
	require.NoError(t, s.server.Register(t.Context(), s.service.URI(), false))
	return s
}

// pause waits for a random time up to limit: the point of a kill is chance.
func pause(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(rand.N(limit))
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
