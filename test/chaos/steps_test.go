package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
	"platform/test/history"
)

const (
	runsPerRound = 8
	stepsPerRun  = 12
)

// TestAcknowledgedStepIsNotRepeated kills the server, the service or both while handlers
// execute steps. No acknowledged step may be executed again.
func TestAcknowledgedStepIsNotRepeated(t *testing.T) {
	env := newEnvironment(t)
	ids := map[string]string{} // record name -> invocation id
	executed := 0
	for round := range rounds(t) {
		for i := range runsPerRound {
			id := fmt.Sprintf("run-%d-%d", round, i)
			ids[id] = env.sendRun(t, id)
		}
		randomPause(t.Context(), 150*time.Millisecond)
		env.killRandom(t)
	}
	for id, invocation := range ids {
		var output []string
		require.NoError(t, env.attach(t, invocation).Decode(&output), id)
		require.Len(t, output, stepsPerRun)
		executions := decode(t, env.recorder.Values(id))
		require.NoError(t, history.CheckSteps(executions, output), "%s: %v", id, executions)
		executed += len(executions)
	}
	t.Logf("%d invocations of %d steps, %d executions of steps, no acknowledged step repeated",
		len(ids), stepsPerRun, executed)
}

// sendRun starts an invocation with an idempotency key, so that its result is retained.
func (s *environment) sendRun(t *testing.T, id string) string {
	body, err := json.Marshal(history.Run{ID: id, Steps: stepsPerRun})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()
	resp, err := s.server.Client.Send(ctx, harness.Path("Stepper", "run"), body, "idempotency-key", id)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, resp.Status, "%s", resp.Body)
	var sent harness.Sent
	require.NoError(t, resp.Decode(&sent))
	return sent.InvocationID
}

// attach waits for the result of an invocation.
func (s *environment) attach(t *testing.T, invocation string) harness.Response {
	ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()
	resp, err := s.server.Client.Attach(ctx, invocation)
	require.NoError(t, err)
	return resp
}

// killRandom kills and restarts the server, the service or both.
func (s *environment) killRandom(t *testing.T) {
	choice := rand.IntN(3)
	if choice != 0 {
		s.server.Kill()
	}
	if choice != 1 {
		s.service.Kill()
		require.NoError(t, s.service.Restart(t.Context()))
	}
	if choice != 0 {
		require.NoError(t, s.server.Restart(t.Context()))
	}
}

// decode decodes the recorded executions.
func decode(t *testing.T, records []string) []history.Execution {
	executions := make([]history.Execution, len(records))
	for i, r := range records {
		require.NoError(t, json.Unmarshal([]byte(r), &executions[i]))
	}
	return executions
}
