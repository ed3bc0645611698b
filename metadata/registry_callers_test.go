package metadata

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
)

// registering returns a registration of the service Greeter at an address.
func registering(n byte, uri string) Registration {
	d := fullDeployment()
	d.ID, d.URI = ids.NewDeployment([16]byte{n}), uri
	for _, s := range d.Services {
		s.Deployment = d.ID
	}
	return Registration{Deployment: d}
}

// Whatever happens to deployments, a service that requires a token continues to require it.
func TestDeploymentsDoNotOpenServices(t *testing.T) {
	m := atLevel4(t)
	_, err := m.RegisterDeployment(t.Context(), registering(1, "http://a/"))
	require.NoError(t, err)
	second, err := m.RegisterDeployment(t.Context(), registering(2, "http://b/"))
	require.NoError(t, err)
	auth := func() *IngressAuth { return m.Schemas().Services["Greeter"].Options.IngressAuth }
	require.Nil(t, auth())
	_, err = m.ModifyService(t.Context(), "Greeter", Options{IngressAuth: ptr(IngressToken), ForwardHeaders: &[]string{"Cookie"}})
	require.NoError(t, err)
	require.Equal(t, IngressToken, *auth())

	third, err := m.RegisterDeployment(t.Context(), registering(3, "http://c/"))
	require.NoError(t, err)
	require.Equal(t, IngressToken, *auth(), "a new revision")
	forced := registering(4, "http://c/")
	forced.Force = true
	_, err = m.RegisterDeployment(t.Context(), forced)
	require.NoError(t, err)
	require.Equal(t, IngressToken, *auth(), "a replaced deployment")
	update := registering(5, "http://d/").Deployment
	update.ID = third.Deployment.ID
	_, err = m.UpdateDeployment(t.Context(), Update{Deployment: update, Overwrite: true})
	require.NoError(t, err)
	require.Equal(t, IngressToken, *auth(), "an update in place")
	require.Equal(t, []string{"Cookie"}, *m.Schemas().Services["Greeter"].Options.ForwardHeaders, "later revisions keep it")
	for _, id := range []ids.Deployment{third.Deployment.ID, second.Deployment.ID} {
		require.NoError(t, m.DeleteDeployment(t.Context(), id))
		require.Equal(t, IngressToken, *auth(), "an older revision")
	}
	_, err = m.ModifyService(t.Context(), "Greeter", Options{ForwardHeaders: ptr(make([]string, MaxForwardHeaders+1))})
	require.Error(t, err)
	_, err = m.ModifyService(t.Context(), "Greeter", Options{IngressAuth: ptr(IngressNone)})
	require.NoError(t, err)
	require.Equal(t, IngressNone, *auth())
	require.Equal(t, "unknown", IngressAuth(9).String())
	_, known := ParseIngressAuth("basic")
	require.False(t, known)
}

func TestIngressAuthNeedsItsFeatureLevel(t *testing.T) {
	m := provisioned(t)
	_, err := m.RegisterDeployment(t.Context(), registering(1, "http://a/"))
	require.NoError(t, err)
	_, err = m.ModifyService(t.Context(), "Greeter", Options{IngressAuth: ptr(IngressToken)})
	require.ErrorContains(t, err, "needs feature level 4")
}
