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

// TestAcknowledgedStepIsNeverRunAgain kills the server, the service or both while
// handlers go through their steps. What each execution of a step reports must
// never contradict that acknowledged steps are done for good.
func TestAcknowledgedStepIsNeverRunAgain(t *testing.T) {
	sys := startSystem(t)
	ids := map[string]string{} // record name -> invocation id
	executed := 0
	for round := range rounds(t) {
		for i := range runsPerRound {
			id := fmt.Sprintf("run-%d-%d", round, i)
			ids[id] = sys.sendRun(t, id)
		}
		pause(t.Context(), 150*time.Millisecond)
		sys.killSome(t)
	}
	for id, invocation := range ids {
		var output []string
		require.NoError(t, sys.attach(t, invocation).Decode(&output), id)
		require.Len(t, output, stepsPerRun)
		executions := decode(t, sys.recorder.Values(id))
		require.NoError(t, history.CheckSteps(executions, output), "%s: %v", id, executions)
		executed += len(executions)
	}
	t.Logf("%d invocations of %d steps, %d executions of steps, none after its acknowledgement",
		len(ids), stepsPerRun, executed)
}

// sendRun starts an invocation. The idempotency key keeps its result.
func (s *system) sendRun(t *testing.T, id string) string {
	body, err := json.Marshal(history.Run{ID: id, Steps: stepsPerRun})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	answer, err := s.server.Client.Send(ctx, harness.Path("Stepper", "run"), body, "idempotency-key", id)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, answer.Status, "%s", answer.Body)
	var sent harness.Sent
	require.NoError(t, answer.Decode(&sent))
	return sent.InvocationID
}

// attach waits for the result of an invocation.
func (s *system) attach(t *testing.T, invocation string) harness.Response {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	answer, err := s.server.Client.Attach(ctx, invocation)
	require.NoError(t, err)
	return answer
}

// killSome kills the server, the service or both, and starts them again.
func (s *system) killSome(t *testing.T) {
	what := rand.IntN(3)
	if what != 0 {
		s.server.Kill()
	}
	if what != 1 {
		s.service.Kill()
		require.NoError(t, s.service.Restart(t.Context()))
	}
	if what != 0 {
		require.NoError(t, s.server.Restart(t.Context()))
	}
}

// decode reads what the steps reported.
func decode(t *testing.T, records []string) []history.Execution {
	executions := make([]history.Execution, len(records))
	for i, r := range records {
		require.NoError(t, json.Unmarshal([]byte(r), &executions[i]))
	}
	return executions
}
