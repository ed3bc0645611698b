package machine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/partition/journal"
)

// Replicas of two builds store these texts and compare them. Another wording needs a
// feature level.
func TestStoredTextsAreUnchanged(t *testing.T) {
	for _, stored := range []struct {
		result journal.Result
		code   uint32
		text   string
	}{
		{notFound, 404, "not found"},
		{waitsForItself, 409, "an invocation cannot wait for its own result"},
		{tooManyWait, 429, "too many invocations wait for this result"},
		{workflowInvoked, 409, "the workflow was already invoked with this key"},
		{workflowMethodInvoked, 409, "the workflow method was already invoked"},
		{killed, 409, "killed"},
		{alreadyCompleted, 409, "promise was already completed"},
		{workflowPurged, 410, "the workflow was purged before the promise was completed"},
		{canceled, 409, "canceled"},
		{versionDiffers, 409, "the state has another version than the one to be replaced"},
	} {
		require.EqualValues(t, stored.code, stored.result.Failure.Code)
		require.Equal(t, stored.text, stored.result.Failure.Message)
	}
}
