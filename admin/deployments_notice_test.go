package admin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/admin/rest"
	"platform/internal/errcode"
	"platform/metadata"
)

func TestNoticesOfWhatTheServerBounds(t *testing.T) {
	hour := time.Hour
	defaults := metadata.StandardDefaults()
	defaults.MaxJournalRetention, defaults.MaxIdempotencyRetention, defaults.MaxWorkflowRetention, defaults.MaxRetryAttempts = &hour, &hour, &hour, 10
	unbounded := metadata.StandardDefaults()
	options := func(d time.Duration, attempts int) metadata.Options {
		return metadata.Options{
			JournalRetention: &d, IdempotencyRetention: &d, WorkflowRetention: &d, Retry: metadata.RetryOptions{MaxAttempts: &attempts},
		}
	}
	within, beyond, endless := options(time.Hour, 10), options(2*time.Hour, 11), metadata.Options{Retry: metadata.RetryOptions{MaxAttempts: ptr(metadata.UnlimitedAttempts)}}

	require.Equal(t, []rest.Notice{
		{Code: errcode.RT0022, Message: "the journal retention 2h of service S exceeds the server's maximum and was set to 1h"},
		{Message: "the idempotency retention 2h of service S exceeds the server's maximum and was set to 1h"},
		{Message: "the workflow completion retention 2h of service S exceeds the server's maximum and was set to 1h"},
		{Message: "the 11 attempts of service S exceed the server's maximum and were set to 10"},
	}, clampNotices("service S", &beyond, &defaults))
	require.Equal(t, []rest.Notice{
		{Message: "unlimited attempts of service S exceed the server's maximum and were set to 10"},
	}, clampNotices("service S", &endless, &defaults))
	require.Empty(t, clampNotices("service S", &within, &defaults))
	require.Empty(t, clampNotices("service S", &beyond, &unbounded))
	require.Empty(t, clampNotices("service S", &metadata.Options{}, &defaults), "a default beyond the maximum was not asked for")
}

func TestNoticeOfTimeoutsWithoutEffect(t *testing.T) {
	defaults := metadata.StandardDefaults()
	s := &metadata.Service{Name: "S", Handlers: []*metadata.Handler{{Name: "h", Options: metadata.Options{InactivityTimeout: ptr(time.Minute)}}}}
	for name, tc := range map[string]struct {
		deployment metadata.Deployment
		want       int
	}{
		"both ways":        {metadata.Deployment{Bidirectional: true}, 0},
		"request-response": {metadata.Deployment{}, 1},
		"HTTP/1.1":         {metadata.Deployment{Bidirectional: true, HTTP11: true}, 1},
		"function":         {metadata.Deployment{Bidirectional: true, ARN: "arn:x"}, 1},
	} {
		notices := serviceNotices(&tc.deployment, s, &defaults)
		require.Len(t, notices, tc.want, name)
		for _, n := range notices {
			require.Equal(t, errcode.RT0021, n.Code)
		}
	}
}
