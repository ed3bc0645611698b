package metadata

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/internal/errcode"
)

// outcomes returns all kinds of results and rejections, by the names of their golden files.
func outcomes() map[string]outcome {
	service := fullDeployment().Services[0]
	return map[string]outcome{
		"result_nothing":              {},
		"result_cluster":              {value: fullCluster()},
		"result_node":                 {value: fullNode()},
		"result_partition":            {value: fullPartition()},
		"result_registered":           {value: Registered{fullDeployment(), Replaced}},
		"result_deployment":           {value: fullFunction()},
		"result_service":              {value: service},
		"result_rules":                {value: fullRules()},
		"result_patterns":             {value: []flowcontrol.Pattern{{Scope: "s", L1: "*"}, {Scope: "*"}}},
		"result_rule_not_as_expected": rejected(ErrRulePrecondition, "g"),
		"result_too_many_rules":       rejected(ErrTooManyRules, "h"),
		"result_not_found":            {rejection: &NotFoundError{Deployment: "dp_1x", Service: "s", Handler: "h"}},
		"result_node_not_found":       {rejection: &NotFoundError{Node: 9}},
		"result_invalid":              {rejection: &InvalidError{"this makes no sense"}},
		"result_coded":                {rejection: errcode.New(errcode.META0005, "reserved").WithStatus(400)},
		"result_node_conflict":        rejected(ErrNodeConflict, "a"),
		"result_node_in_use":          rejected(ErrNodeInUse, "b"),
		"result_node_removed":         rejected(ErrNodeRemoved, "c"),
		"result_last_node":            rejected(ErrLastNode, "d"),
		"result_node_holds_data":      rejected(ErrNodeHoldsData, "e"),
		"result_version_conflict":     rejected(ErrVersionConflict, "f"),
		"result_node_too_old":         rejected(ErrNodeTooOld, "i"),
		"result_members_changed":      rejected(ErrMembersChanged, "j"),
		"result_job":                  {value: fullJob()},
		"result_failure_mark":         {value: fullFailureMark()},
		"result_token":                {value: fullToken()},
		"result_too_many_tokens":      rejected(ErrTooManyTokens, "n"),
		"result_token_not_found":      rejected(ErrTokenNotFound, "o"),
		"result_token_exists":         rejected(ErrTokenExists, "p"),
		"result_join_token":           {value: fullJoinToken()},
		"result_join_token_refused":   rejected(ErrJoinTokenRefused, "v"),
		"result_join_token_not_found": rejected(ErrJoinTokenNotFound, "w"),
		"result_too_many_join_tokens": rejected(ErrTooManyJoinTokens, "x"),
		"result_too_many_jobs":        rejected(ErrTooManyJobs, "k"),
		"result_job_not_found":        rejected(ErrJobNotFound, "l"),
		"result_job_changed":          rejected(ErrJobChanged, "m"),
		"result_subscription":         {value: fullSubscription()},
		"result_kafka_cluster":        {value: fullKafkaCluster()},
		"result_too_many_subs":        rejected(ErrTooManySubscriptions, "n"),
		"result_sub_not_found":        rejected(ErrSubscriptionNotFound, "o"),
		"result_sub_changed":          rejected(errSubscriptionChanged, "p"),
		"result_too_many_clusters":    rejected(ErrTooManyClusters, "q"),
		"result_cluster_not_found":    rejected(ErrClusterNotFound, "r"),
		"result_cluster_changed":      rejected(errClusterChanged, "s"),
		"result_cluster_exists":       rejected(ErrClusterExists, "t"),
		"result_cluster_in_use":       rejected(ErrClusterInUse, "u"),
		"result_deployments_changed":  {rejection: &rejection{errDeploymentsChanged, errDeploymentsChanged.Error()}},
		"result_unknown_refusal":      {rejection: errors.New("of a newer server")},
	}
}

func TestResultsAndRejectionsRoundTrip(t *testing.T) {
	for name, want := range outcomes() {
		t.Run(name, func(t *testing.T) {
			data, err := encodeOutcome(want)
			require.NoError(t, err)
			golden(t, name, data)
			got, err := decodeOutcome(data)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
	for _, reason := range reasons {
		found := false
		for _, o := range outcomes() {
			found = found || errors.Is(o.rejection, reason)
		}
		require.True(t, found, "%v has no golden file", reason)
	}
	_, err := encodeOutcome(outcome{value: 1})
	require.ErrorContains(t, err, "unknown type")
	_, err = decodeOutcome([]byte{0xff})
	require.Error(t, err)
}

func TestARetriedRequestIsAppliedOnce(t *testing.T) {
	m := newMemStore()
	d := &Deployment{URI: "http://a/", Services: []*Service{{Name: "Greeter"}}}
	_, err := m.RegisterDeployment(t.Context(), Registration{Deployment: d, Force: true})
	require.NoError(t, err)
	entry := func(cmd command) []byte {
		data, err := encodeEntry(header{at: goldenTime, request: newRequestID()}, cmd)
		require.NoError(t, err)
		return data
	}
	remove := entry(&deleteDeployment{m.Schemas().Services["Greeter"].Deployment})
	again := entry(&registerDeployment{Registration{Deployment: &Deployment{ID: "dp_1new", URI: "http://a/"}}})
	for _, data := range [][]byte{remove, again, remove, again} {
		o, err := m.Propose(t.Context(), data)
		require.NoError(t, err)
		require.NoError(t, o.rejection, "a deleted deployment cannot be deleted again")
		if registered, ok := o.value.(Registered); ok {
			require.Equal(t, Created, registered.Change)
		}
	}
	require.Len(t, m.Schemas().Deployments, 1)
	_, changed := m.Watch()
	_, err = m.Propose(t.Context(), again)
	require.NoError(t, err)
	select {
	case <-changed:
		t.Fatal("a retry changed something")
	default:
	}
}

func TestOldRequestsAreDeleted(t *testing.T) {
	m := newMemStore()
	for i := range maxRequests + 50 {
		_, err := m.DrainNode(t.Context(), uint32(i+1), true)
		require.ErrorAs(t, err, new(*NotFoundError))
	}
	require.Len(t, m.view.requests.list, maxRequests)
	require.EqualValues(t, 51, m.view.requests.list[0].index)

	large := strings.Repeat("x", maxRequestBytes/20)
	for i := range 100 {
		_, err := m.RegisterNode(t.Context(), Node{Name: fmt.Sprint("n", i), AdminAddress: large})
		require.NoError(t, err)
	}
	known := m.view.requests
	require.Less(t, len(known.list), 25)
	require.GreaterOrEqual(t, len(known.list), minRequests)
	sum := 0
	for _, q := range known.list {
		sum += len(q.result)
	}
	require.Equal(t, sum, known.bytes)
	require.LessOrEqual(t, sum, maxRequestBytes)
}
