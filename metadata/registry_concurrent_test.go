package metadata

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two nodes store updates of a deployment at the same moment: each has verified the state before both. The second one is
// verified again, with the result of the first.
func TestUpdatesOfADeploymentByTwoNodes(t *testing.T) {
	m := atLevel4(t)
	registered, err := m.RegisterDeployment(t.Context(), Registration{Deployment: &Deployment{
		ID: "dp_1", URI: "http://a/", MinProtocol: 5, MaxProtocol: 5, AdditionalHeaders: map[string]string{"authorization": "old"},
	}})
	require.NoError(t, err)
	update := func(uri, header string) *Deployment {
		d := *registered.Deployment
		d.URI, d.AdditionalHeaders = uri, map[string]string{"authorization": header}
		return &d
	}
	errChanged := errors.New("changed")
	other := func() {
		_, err := m.UpdateDeployment(t.Context(), Update{Deployment: update("http://a/", "new"), Verify: func(*Deployment) error { return nil }})
		require.NoError(t, err)
	}
	calls := 0
	verify := func(current *Deployment) error {
		if calls++; calls == 1 {
			other()
			return nil
		}
		if current.AdditionalHeaders["authorization"] != "old" {
			return errChanged
		}
		return nil
	}
	_, err = m.UpdateDeployment(t.Context(), Update{Deployment: update("http://b/", "old"), Verify: verify})
	require.ErrorIs(t, err, errChanged)
	require.Equal(t, 2, calls)
	stored := m.Schemas().Deployments["dp_1"]
	require.Equal(t, "http://a/", stored.URI)
	require.Equal(t, "new", stored.AdditionalHeaders["authorization"])

	calls = 0
	_, err = m.UpdateDeployment(t.Context(), Update{Deployment: update("http://b/", "new"), Verify: func(*Deployment) error {
		if calls++; calls == 1 {
			other() // the same again
		}
		return nil
	}})
	require.NoError(t, err)
	require.Equal(t, "http://b/", m.Schemas().Deployments["dp_1"].URI)
}
