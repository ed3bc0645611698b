package metadata

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/target"
	"platform/partition/machine"
)

func ptr[T any](v T) *T { return &v }

func TestEffectiveOptionsDefaultToTheServers(t *testing.T) {
	d := StandardDefaults()
	got := Effective(&Handler{}, &Service{}, &d)
	require.Equal(t, EffectiveOptions{
		InactivityTimeout:    time.Minute,
		AbortTimeout:         10 * time.Minute,
		JournalRetention:     24 * time.Hour,
		IdempotencyRetention: 24 * time.Hour,
		WorkflowRetention:    24 * time.Hour,
		Public:               true,
		Retry: RetryPolicy{
			InitialInterval: 500 * time.Millisecond, MaxInterval: time.Minute, Factor: 2, MaxAttempts: 70, OnMaxAttempts: Pause,
		},
	}, got)
	require.Equal(t, got, Effective(nil, &Service{}, &d))
}

func TestEffectivePrefersHandlerThenService(t *testing.T) {
	d := StandardDefaults()
	s := &Service{Options: Options{
		InactivityTimeout: ptr(time.Second),
		AbortTimeout:      ptr(2 * time.Second),
		JournalRetention:  ptr(time.Hour),
		EnableLazyState:   ptr(true),
		Retry:             RetryOptions{MaxAttempts: ptr(5), Factor: ptr(3.0), OnMaxAttempts: ptr(Kill)},
	}}
	h := &Handler{Options: Options{
		InactivityTimeout: ptr(time.Duration(0)), // an announced zero is a value
		EnableLazyState:   ptr(false),
		WorkflowRetention: ptr(time.Minute),
		Retry:             RetryOptions{MaxAttempts: ptr(0), InitialInterval: ptr(time.Millisecond), MaxInterval: ptr(time.Second)},
	}}
	require.Equal(t, EffectiveOptions{
		InactivityTimeout:    0,
		AbortTimeout:         2 * time.Second,
		JournalRetention:     time.Hour,
		IdempotencyRetention: 24 * time.Hour,
		WorkflowRetention:    time.Minute,
		Public:               true,
		Retry:                RetryPolicy{InitialInterval: time.Millisecond, MaxInterval: time.Second, Factor: 3, MaxAttempts: 1, OnMaxAttempts: Kill},
	}, Effective(h, s, &d))
	require.Equal(t, 5, Effective(nil, s, &d).Retry.MaxAttempts)
}

func TestEffectiveClamps(t *testing.T) {
	d := StandardDefaults()
	d.MaxJournalRetention = ptr(time.Hour)
	d.MaxIdempotencyRetention = ptr(2 * time.Hour)
	d.MaxWorkflowRetention = ptr(3 * time.Hour)
	d.MaxRetryAttempts = 10
	got := Effective(&Handler{}, &Service{}, &d)
	require.Equal(t, time.Hour, got.JournalRetention)
	require.Equal(t, 2*time.Hour, got.IdempotencyRetention)
	require.Equal(t, 3*time.Hour, got.WorkflowRetention)
	require.Equal(t, 10, got.Retry.MaxAttempts)

	few := &Handler{Options: Options{JournalRetention: ptr(time.Minute), Retry: RetryOptions{MaxAttempts: ptr(3)}}}
	got = Effective(few, &Service{}, &d)
	require.Equal(t, time.Minute, got.JournalRetention)
	require.Equal(t, 3, got.Retry.MaxAttempts)

	d.Retry.MaxAttempts = 0 // unlimited
	require.Equal(t, 10, Effective(nil, &Service{}, &d).Retry.MaxAttempts)
	d.MaxRetryAttempts = 0
	require.Equal(t, 0, Effective(nil, &Service{}, &d).Retry.MaxAttempts)
}

func TestPublicNeedsServiceAndHandler(t *testing.T) {
	d := StandardDefaults()
	for _, tc := range []struct {
		service, handler *bool
		want             bool
	}{
		{nil, nil, true},
		{ptr(true), ptr(false), false},
		{ptr(false), nil, false},
		{ptr(false), ptr(true), false},
		{nil, ptr(true), true},
	} {
		h := &Handler{Options: Options{Public: tc.handler}}
		require.Equal(t, tc.want, Effective(h, &Service{Options: Options{Public: tc.service}}, &d).Public)
	}
}

func TestRetention(t *testing.T) {
	const h = int64(time.Hour / time.Millisecond)
	for _, tc := range []struct {
		name        string
		journal     time.Duration
		target      target.Type
		idempotent  bool
		want        machine.Retention
		idempotency time.Duration
		workflow    time.Duration
	}{
		{"plain call keeps both for the journal's time", 2 * time.Hour, target.Service, false, machine.Retention{Completion: 2 * h, Journal: 2 * h}, time.Hour, time.Hour},
		{"plain call without journal retention keeps nothing", 0, target.ObjectExclusive, false, machine.Retention{}, time.Hour, time.Hour},
		{"idempotency key keeps the result", 2 * time.Hour, target.ObjectShared, true, machine.Retention{Completion: 3 * h, Journal: 2 * h}, 3 * time.Hour, time.Hour},
		{"journal is not kept longer than the result", 2 * time.Hour, target.Service, true, machine.Retention{Completion: h, Journal: h}, time.Hour, 5 * time.Hour},
		{"workflow run keeps the result", 2 * time.Hour, target.WorkflowRun, false, machine.Retention{Completion: 5 * h, Journal: 2 * h}, time.Hour, 5 * time.Hour},
		{"workflow run ignores the idempotency retention", 2 * time.Hour, target.WorkflowRun, true, machine.Retention{Completion: 5 * h, Journal: 2 * h}, time.Hour, 5 * time.Hour},
		{"shared workflow handler is like any call", 2 * time.Hour, target.WorkflowShared, false, machine.Retention{Completion: 2 * h, Journal: 2 * h}, time.Hour, 5 * time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := EffectiveOptions{JournalRetention: tc.journal, IdempotencyRetention: tc.idempotency, WorkflowRetention: tc.workflow}
			require.Equal(t, tc.want, machine.RetentionOf(o.Retention(tc.target, tc.idempotent)))
		})
	}
}

func TestEffectiveDoesNotAllocate(t *testing.T) {
	d := StandardDefaults()
	s, h := &Service{}, &Handler{Options: Options{AbortTimeout: ptr(time.Second)}}
	var sum time.Duration
	require.Zero(t, testing.AllocsPerRun(100, func() {
		o := Effective(h, s, &d)
		sum += o.AbortTimeout
	}))
	require.NotZero(t, sum)
}
