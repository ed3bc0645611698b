package metadata

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
)

var protected = Options{IngressAuth: ptr(IngressJWT), ForwardHeaders: &[]string{}}

// forCallers returns the options of a service that concern its callers.
func forCallers(t *testing.T, s *Schemas, service string) Options {
	require.Contains(t, s.Services, service)
	o := s.Services[service].Options
	return Options{IngressAuth: o.IngressAuth, ForwardHeaders: o.ForwardHeaders}
}

// without is a deployment with another service instead of Greeter.
func without(n byte, uri string) Registration {
	r := registering(n, uri)
	d := *r.Deployment
	other := *d.Services[0]
	other.Name = "Other"
	d.Services = []*Service{&other}
	r.Deployment = &d
	return r
}

// A service that loses its last deployment, in whatever way, and gets another one is as protected as before.
func TestProtectionSurvivesTheLastDeployment(t *testing.T) {
	for name, remove := range map[string]func(*testing.T, *memStore, ids.Deployment){
		"delete": func(t *testing.T, m *memStore, id ids.Deployment) {
			require.NoError(t, m.DeleteDeployment(t.Context(), id))
		},
		"forced registration": func(t *testing.T, m *memStore, _ ids.Deployment) {
			r := without(1, "http://a/")
			r.Force = true
			_, err := m.RegisterDeployment(t.Context(), r)
			require.NoError(t, err)
		},
		"update in place": func(t *testing.T, m *memStore, id ids.Deployment) {
			d := without(1, "http://a/").Deployment
			d.ID = id
			_, err := m.UpdateDeployment(t.Context(), Update{Deployment: d, Overwrite: true})
			require.NoError(t, err)
		},
	} {
		for _, again := range []string{"registration", "update"} {
			t.Run(name+" and "+again, func(t *testing.T) {
				m := atLevel4(t)
				first, err := m.RegisterDeployment(t.Context(), registering(1, "http://a/"))
				require.NoError(t, err)
				_, err = m.ModifyService(t.Context(), "Greeter", protected)
				require.NoError(t, err)
				remove(t, m, first.Deployment.ID)
				require.NotContains(t, m.Schemas().Services, "Greeter")
				require.Equal(t, map[string]*Options{"Greeter": &protected}, m.Schemas().Kept)

				if again == "registration" {
					_, err = m.RegisterDeployment(t.Context(), registering(2, "http://b/"))
				} else {
					var other Registered
					other, err = m.RegisterDeployment(t.Context(), without(2, "http://b/"))
					require.NoError(t, err)
					update := registering(2, "http://b/").Deployment
					update.ID = other.Deployment.ID
					_, err = m.UpdateDeployment(t.Context(), Update{Deployment: update, Overwrite: true})
				}
				require.NoError(t, err)
				require.Equal(t, protected, forCallers(t, m.Schemas(), "Greeter"))
				require.Empty(t, m.Schemas().Kept)
			})
		}
	}
}

func TestOptionsAreKeptOnlyWithTheLastDeployment(t *testing.T) {
	m := atLevel4(t)
	first, err := m.RegisterDeployment(t.Context(), registering(1, "http://a/"))
	require.NoError(t, err)
	second, err := m.RegisterDeployment(t.Context(), registering(2, "http://b/"))
	require.NoError(t, err)
	_, err = m.ModifyService(t.Context(), "Greeter", protected)
	require.NoError(t, err)
	require.NoError(t, m.DeleteDeployment(t.Context(), second.Deployment.ID))
	require.Empty(t, m.Schemas().Kept)
	require.Equal(t, protected, forCallers(t, m.Schemas(), "Greeter"), "all revisions have both options")
	require.NoError(t, m.DeleteDeployment(t.Context(), first.Deployment.ID))
	require.Len(t, m.Schemas().Kept, 1)

	_, err = m.RegisterDeployment(t.Context(), without(3, "http://c/"))
	require.NoError(t, err)
	require.NoError(t, m.DeleteDeployment(t.Context(), ids.NewDeployment([16]byte{3})))
	require.Len(t, m.Schemas().Kept, 1, "of services without such options nothing is kept")
}

func TestKeptOptionsAreBounded(t *testing.T) {
	m := atLevel4(t)
	first, err := m.RegisterDeployment(t.Context(), registering(1, "http://a/"))
	require.NoError(t, err)
	_, err = m.ModifyService(t.Context(), "Greeter", protected)
	require.NoError(t, err)
	schemas := *m.view.schemas
	schemas.Kept = map[string]*Options{}
	for i := range MaxKeptOptions {
		schemas.Kept[fmt.Sprint(i)] = &protected
	}
	m.view.state.schemas = &schemas
	require.ErrorContains(t, m.DeleteDeployment(t.Context(), first.Deployment.ID), "those of 10000 services without a deployment are")
	require.Equal(t, protected, forCallers(t, m.Schemas(), "Greeter"))
}

func TestKeptOptionsSurviveARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "metadata")
	s, stop, err := openReplica(dir)
	require.NoError(t, err)
	_, err = s.Provision(t.Context(), Cluster{Name: "local", Partitions: 2, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	first, err := s.RegisterDeployment(t.Context(), registering(1, "http://a/"))
	require.NoError(t, err)
	_, err = s.ModifyService(t.Context(), "Greeter", protected)
	require.NoError(t, err)
	require.NoError(t, s.DeleteDeployment(t.Context(), first.Deployment.ID))
	require.NoError(t, stop())

	s, stop, err = openReplica(dir)
	require.NoError(t, err)
	require.Equal(t, map[string]*Options{"Greeter": &protected}, s.Schemas().Kept)
	_, err = s.RegisterDeployment(t.Context(), registering(2, "http://b/"))
	require.NoError(t, err)
	require.NoError(t, stop())

	s, stop, err = openReplica(dir)
	require.NoError(t, err)
	require.Empty(t, s.Schemas().Kept)
	require.Equal(t, protected, forCallers(t, s.Schemas(), "Greeter"))
	require.NoError(t, stop())
}
