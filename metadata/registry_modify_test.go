package metadata

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/target"
)

func TestModifiedOptionsLastUntilTheNextRevision(t *testing.T) {
	m := newMemStore()
	register := func(uri string, force bool) *Deployment {
		got, err := m.RegisterDeployment(t.Context(), Registration{Force: force, Deployment: &Deployment{URI: uri, Services: []*Service{{
			Name: "Greeter", Options: Options{AbortTimeout: ptr(time.Minute), JournalRetention: ptr(time.Hour)},
			Handlers: []*Handler{{Name: "greet", Options: Options{JournalRetention: ptr(time.Second)}}},
		}}}})
		require.NoError(t, err)
		return got.Deployment
	}
	old := register("http://a/", false)
	latest := register("http://b/", false)

	change := Options{
		Public: ptr(false), AbortTimeout: ptr(2 * time.Minute), EnableLazyState: ptr(true),
		Retry: RetryOptions{MaxAttempts: ptr(UnlimitedAttempts), OnMaxAttempts: ptr(Kill)},
	}
	modified, err := m.ModifyService(t.Context(), "Greeter", change)
	require.NoError(t, err)
	require.EqualValues(t, 2, modified.Revision)

	s := m.Schemas()
	require.Equal(t, modified, s.Services["Greeter"])
	require.Equal(t, latest.ID, s.Services["Greeter"].Deployment)
	defaults := StandardDefaults()
	_, pinned, err := s.Pinned(latest.ID, "Greeter")
	require.NoError(t, err)
	options := Effective(nil, pinned, &defaults)
	require.Equal(t, EffectiveOptions{
		InactivityTimeout: time.Minute, AbortTimeout: 2 * time.Minute, JournalRetention: time.Hour, IdempotencyRetention: 24 * time.Hour,
		WorkflowRetention: 24 * time.Hour, EnableLazyState: true,
		Retry: RetryPolicy{InitialInterval: 500 * time.Millisecond, MaxInterval: time.Minute, Factor: 2, OnMaxAttempts: Kill},
	}, options)
	handler := Effective(pinned.Handler("greet"), pinned, &defaults)
	require.Equal(t, time.Second, handler.JournalRetention, "the handler's own option takes precedence")
	require.Equal(t, old.Services, s.Deployments[old.ID].Services, "older revisions are unchanged")

	require.Nil(t, pinned.Declared, "the cluster is below level 4")
	same, err := m.ModifyService(t.Context(), "Greeter", Options{})
	require.NoError(t, err)
	require.Equal(t, modified, same)

	register("http://b/", true)
	require.Equal(t, time.Minute, *m.Schemas().Services["Greeter"].Options.AbortTimeout)
	require.Nil(t, m.Schemas().Services["Greeter"].Options.Public)
}

func TestModifyingTheRetentionOfWorkflows(t *testing.T) {
	m := newMemStore()
	_, err := m.RegisterDeployment(t.Context(), Registration{Deployment: &Deployment{URI: "http://a/", Services: []*Service{
		{Name: "Plain"},
		{Name: "Flow", Type: Workflow, Handlers: []*Handler{
			{Name: "run", Type: target.WorkflowRun, Options: Options{WorkflowRetention: ptr(time.Hour)}},
			{Name: "see", Type: target.WorkflowShared},
		}},
	}}})
	require.NoError(t, err)
	before := m.Schemas().Services["Flow"]

	modified, err := m.ModifyService(t.Context(), "Flow", Options{WorkflowRetention: ptr(time.Minute)})
	require.NoError(t, err)
	defaults := StandardDefaults()
	require.Equal(t, time.Minute, Effective(modified.Handler("run"), modified, &defaults).WorkflowRetention)
	require.Nil(t, modified.Handler("see").Options.WorkflowRetention)
	require.Equal(t, time.Hour, *before.Handler("run").Options.WorkflowRetention, "views are immutable")

	for name, want := range map[string]string{
		"Plain":  "modifying retention time for service type Service is unsupported",
		"Nobody": "The requested service 'Nobody' does not exist",
	} {
		_, err := m.ModifyService(t.Context(), name, Options{WorkflowRetention: ptr(time.Minute)})
		require.EqualError(t, err, want)
	}
}

func TestModifiedServicesKeepWhatTheirCodeAnnounced(t *testing.T) {
	m := atLevel4(t)
	_, err := m.RegisterDeployment(t.Context(), Registration{Deployment: &Deployment{URI: "http://a/", Services: []*Service{{
		Name: "Flow", Type: Workflow, Options: Options{AbortTimeout: ptr(time.Minute)},
		Handlers: []*Handler{{Name: "run", Type: target.WorkflowRun, Options: Options{WorkflowRetention: ptr(time.Hour)}}},
	}}}})
	require.NoError(t, err)
	announced := &Options{AbortTimeout: ptr(time.Minute), WorkflowRetention: ptr(time.Hour)}
	modify := func(change Options) *Service {
		s, err := m.ModifyService(t.Context(), "Flow", change)
		require.NoError(t, err)
		return s
	}
	require.Nil(t, modify(Options{ForwardHeaders: &[]string{"Authorization"}}).Declared, "only operators set it")
	require.Equal(t, announced, modify(Options{AbortTimeout: ptr(2 * time.Minute)}).Declared)
	require.Equal(t, announced, modify(Options{AbortTimeout: ptr(3 * time.Minute), WorkflowRetention: ptr(time.Second)}).Declared)
	require.Equal(t, announced, modify(Options{AbortTimeout: ptr(time.Minute)}).Declared, "the retention is still changed")
	require.Equal(t, announced, modify(Options{Public: ptr(false)}).Declared)
	stored := m.Schemas().Services["Flow"]
	require.Equal(t, stored, serviceFromProto(serviceToProto(stored), stored.Deployment))
	s := modify(Options{WorkflowRetention: ptr(time.Hour), Public: ptr(true)})
	require.Equal(t, announced, s.Declared, "public was not announced")
}
