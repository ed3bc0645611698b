package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/client"
)

// A job with a filter has not found everything while it runs.
func TestProgressOfJobs(t *testing.T) {
	filter := map[string][]string{"service": {"Mailer"}}
	for want, job := range map[string]client.Job{
		"401 of about 900, 400 done, 1 failed": {State: "running", Filter: filter, Total: 900, Matched: 500, Done: 400, Failed: 1},
		"401 of about 500, 400 done, 1 failed": {State: "running", Filter: filter, Total: 450, Matched: 500, Done: 400, Failed: 1},
		"400 done, 1 failed so far":            {State: "running", Filter: filter, Matched: 500, Done: 400, Failed: 1},
		"403 of 500 found, 400 done, 3 failed": {State: "running", Matched: 500, Done: 400, Failed: 3},
		"500 of 500 found, 500 done, 0 failed": {State: "done", Filter: filter, Matched: 500, Done: 500},
	} {
		require.Equal(t, want, jobProgress(&job))
	}
}
