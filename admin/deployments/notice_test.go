package deployments

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/admin/rest"
	"platform/internal/errcode"
	"platform/metadata"
)

func TestNoticesOfWhatTheServerBounds(t *testing.T) {
	hour, unlimited := time.Hour, metadata.UnlimitedAttempts
	defaults := metadata.StandardDefaults()
	defaults.MaxJournalRetention, defaults.MaxIdempotencyRetention, defaults.MaxWorkflowRetention, defaults.MaxRetryAttempts = &hour, &hour, &hour, 10
	unbounded := metadata.StandardDefaults()
	options := func(d time.Duration, attempts int) metadata.Options {
		return metadata.Options{
			JournalRetention: &d, IdempotencyRetention: &d, WorkflowRetention: &d, Retry: metadata.RetryOptions{MaxAttempts: &attempts},
		}
	}
	within, beyond, endless := options(time.Hour, 10), options(2*time.Hour, 11), metadata.Options{Retry: metadata.RetryOptions{MaxAttempts: &unlimited}}

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
	options := metadata.Options{InactivityTimeout: new(time.Minute)}
	s := &metadata.Service{Name: "S", Options: options, Handlers: []*metadata.Handler{{Name: "h", Options: options}, {Name: "i"}}}
	for name, tc := range map[string]struct {
		deployment metadata.Deployment
		noEffect   bool
	}{
		"both ways":        {metadata.Deployment{ID: "dp_1", Bidirectional: true}, false},
		"request-response": {metadata.Deployment{ID: "dp_1"}, true},
		"HTTP/1.1":         {metadata.Deployment{ID: "dp_1", Bidirectional: true, HTTP11: true}, true},
		"function":         {metadata.Deployment{ID: "dp_1", Bidirectional: true, ARN: "arn:x"}, true},
	} {
		var ofHandler, ofAll []rest.Notice
		if tc.noEffect {
			notice := func(whose string) rest.Notice {
				return rest.Notice{Code: errcode.RT0021, Message: whose + " sets an inactivity timeout, which has no effect because deployment dp_1 works in request-response mode"}
			}
			ofHandler = []rest.Notice{notice("handler S/h")}
			ofAll = []rest.Notice{notice("service S"), notice("handler S/h")}
		}
		require.Equal(t, ofAll, serviceNotices(&tc.deployment, s, &defaults), name)
		view := viewService(&tc.deployment, s, &defaults)
		require.Equal(t, ofHandler, view.Handlers[0].Info, name)
		require.Empty(t, view.Handlers[1].Info, name)
	}
}
