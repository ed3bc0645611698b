package ingress

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Keys with commas have two ids: the one that the first release derives and the one of
// today. A result is looked up under the one that its invocation has.
func TestResultsOfKeysWithCommasAreFound(t *testing.T) {
	today, legacy := ids.OfIdempotent("", "Counter", "k1,add,x", "add", "y"), ids.LegacyOfIdempotent("", "Counter", "k1,add,x", "add", "y")
	own := machine.Target{Service: "Counter", Key: "k1,add,x", Handler: "add", Type: target.ObjectExclusive}
	other := machine.Target{Service: "Counter", Key: "k1", Handler: "add", Type: target.ObjectExclusive}
	for _, c := range []struct {
		name   string
		target machine.Target // of the invocation with the legacy id
		err    error
		want   ids.Invocation
	}{
		{"made by the first release", own, nil, legacy},
		{"made by the first release and not ended", own, routing.ErrNotReady, legacy},
		{"another one", other, nil, today},
		{"another one that has not ended", other, routing.ErrNotReady, today},
		{"none", machine.Target{}, routing.ErrNotFound, today},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fakeInvocations{
				output: func(_ context.Context, id ids.Invocation) (routing.Response, error) {
					require.Equal(t, legacy, id)
					return routing.Response{ID: id, Target: c.target}, c.err
				},
				attach: func(_ context.Context, id ids.Invocation) (routing.Response, error) {
					require.Equal(t, c.want, id)
					return routing.Response{ID: id, Target: own, Result: journal.Result{Value: []byte(`"x"`)}}, nil
				},
			}
			s := testServer(t, Config{}, f)
			w := do(s, "GET", "/platform/invocation/Counter/k1,add,x/add/y/attach", "")
			require.Equal(t, http.StatusOK, w.Code, w.Body)
			require.Equal(t, c.want.String(), w.Header().Get("x-platform-id"))
			w = do(s, "POST", "/platform/attach", `{"target":"idempotentInvocation","service":"Counter","key":"k1,add,x","handler":"add","idempotencyKey":"y"}`)
			require.Equal(t, http.StatusOK, w.Code, w.Body)
		})
	}
	f := &fakeInvocations{output: func(context.Context, ids.Invocation) (routing.Response, error) {
		return routing.Response{}, &routing.UnavailableError{SafeToRetry: true, Err: errors.New("no leader")}
	}}
	w := do(testServer(t, Config{}, f), "GET", "/platform/invocation/Counter/k1,add,x/add/y/attach", "")
	require.Equal(t, http.StatusServiceUnavailable, w.Code, "it is not known which one it is")
}
