package metadata

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
)

// The transcripts in testdata/registry are commands and the content of the registry after
// them.
func TestRegistry(t *testing.T) {
	datadriven.Walk(t, "testdata/registry", func(t *testing.T, path string) {
		m := newMemStore()
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			out := runTranscript(t, m, td)
			return out + describeRegistry(m.Schemas())
		})
	})
}

func runTranscript(t *testing.T, m *memStore, td *datadriven.TestData) string {
	ctx := context.Background()
	switch td.Cmd {
	case "register", "plan":
		r := transcriptRegistration(t, td)
		var got Registered
		var err error
		if td.Cmd == "plan" {
			got, err = m.PlanDeployment(r)
		} else {
			got, err = m.RegisterDeployment(ctx, r)
		}
		if err != nil {
			return describeError(err)
		}
		return fmt.Sprintf("%s %s\n", []string{"created", "unchanged", "replaced"}[got.Change], short(got.Deployment.ID))
	case "update", "plan-update":
		r := transcriptRegistration(t, td)
		var name string
		td.ScanArgs(t, "id", &name)
		r.Deployment.ID = long(name)
		u := Update{Deployment: r.Deployment, Overwrite: td.HasArg("overwrite")}
		change := m.PlanUpdate
		if td.Cmd == "update" {
			change = func(u Update) (*Deployment, error) { return m.UpdateDeployment(ctx, u) }
		}
		d, err := change(u)
		if err != nil {
			return describeError(err)
		}
		return "updated " + short(d.ID) + " to " + d.URI + "\n"
	case "delete":
		var name string
		td.ScanArgs(t, "id", &name)
		if err := m.DeleteDeployment(ctx, long(name)); err != nil {
			return describeError(err)
		}
		return "deleted\n"
	}
	t.Fatalf("unknown command %s", td.Cmd)
	return ""
}

// transcriptRegistration parses arguments such as uri=a route=eu force and, in the input,
// one service per line: "Name type handler…".
func transcriptRegistration(t *testing.T, td *datadriven.TestData) Registration {
	d := &Deployment{AdditionalHeaders: map[string]string{}}
	r := Registration{Deployment: d, Force: td.HasArg("force"), Breaking: td.HasArg("breaking"), RoutingHeaders: []string{"X-Route"}}
	var uri string
	td.ScanArgs(t, "uri", &uri)
	d.URI, d.MinProtocol, d.MaxProtocol = "http://"+uri+"/", 5, 6
	if uri == "function" {
		d.URI, d.ARN = "", "arn:aws:lambda:eu-central-1:123456789012:function:f:1"
	}
	if td.HasArg("protocol") {
		td.ScanArgs(t, "protocol", &d.MaxProtocol)
	}
	if td.HasArg("route") {
		var route string
		td.ScanArgs(t, "route", &route)
		d.AdditionalHeaders["x-route"] = route
	}
	for line := range strings.Lines(td.Input) {
		words := strings.Fields(line)
		s := &Service{Name: words[0], Type: map[string]ServiceType{"service": PlainService, "object": VirtualObject, "workflow": Workflow}[words[1]]}
		for _, name := range words[2:] {
			s.Handlers = append(s.Handlers, &Handler{Name: name, Type: target.Service, Input: InputRules{Any: true}})
		}
		d.Services = append(d.Services, s)
	}
	return r
}

func describeError(err error) string {
	text := errcode.Text(err) + "\n"
	for _, word := range strings.Fields(text) {
		if id, err := ids.ParseDeployment(strings.Trim(word, "'(),;")); err == nil {
			text = strings.ReplaceAll(text, string(id), short(id))
		}
	}
	return text
}

func describeRegistry(s *Schemas) string {
	var out strings.Builder
	for _, id := range slices.Sorted(maps.Keys(s.Deployments)) {
		d := s.Deployments[id]
		fmt.Fprintf(&out, "%s %s at %s:", short(d.ID), d.URI, d.CreatedAt.Format("15:04:05"))
		for _, service := range d.Services {
			fmt.Fprintf(&out, " %s/%d", service.Name, service.Revision)
		}
		out.WriteByte('\n')
	}
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		service := s.Services[name]
		fmt.Fprintf(&out, "%s %s/%d in %s:", service.Type, name, service.Revision, short(service.Deployment))
		for _, h := range service.Handlers {
			fmt.Fprintf(&out, " %s", h.Name)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func long(name string) ids.Deployment {
	return ids.Deployment("dp_1" + strings.Repeat("0", 22-len(name)) + name)
}

func short(id ids.Deployment) string { return "dp" + strings.TrimLeft(string(id[4:]), "0") }

func TestRegistrationIsValidatedBeforeItIsProposed(t *testing.T) {
	service := func(name string, handlers ...string) *Service {
		s := &Service{Name: name}
		for _, h := range handlers {
			s.Handlers = append(s.Handlers, &Handler{Name: h})
		}
		return s
	}
	for name, tc := range map[string]struct {
		services []*Service
		code     errcode.Code
		status   int
	}{
		"reserved prefix":        {[]*Service{service("platformThing")}, errcode.META0005, 400},
		"reserved prefix, alias": {[]*Service{service("ReStateThing")}, errcode.META0005, 400},
		"reserved name":          {[]*Service{service("OpenAPI")}, errcode.META0005, 400},
		"service twice":          {[]*Service{service("B"), service("A"), service("B")}, errcode.META0013, 502},
		"handler twice":          {[]*Service{service("A", "x", "y", "x")}, errcode.META0013, 502},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemStore()
			_, err := m.RegisterDeployment(t.Context(), Registration{Deployment: &Deployment{URI: "http://a/", Services: tc.services}})
			code, _ := errcode.Of(err)
			require.Equal(t, tc.code, code)
			require.Equal(t, tc.status, errcode.Status(err, 0))
			require.Empty(t, m.entries)
		})
	}
	_, err := newMemStore().RegisterDeployment(t.Context(), Registration{Deployment: &Deployment{}})
	require.ErrorContains(t, err, "either a URI or an ARN")
}

func TestRegistrationDoesNotModifyTheCallersDeployment(t *testing.T) {
	m := newMemStore()
	mine := &Deployment{URI: "http://a/", Services: []*Service{{Name: "B"}, {Name: "A", Handlers: []*Handler{{Name: "y"}, {Name: "x"}}}}}
	got, err := m.RegisterDeployment(t.Context(), Registration{Deployment: mine})
	require.NoError(t, err)
	require.Empty(t, mine.ID)
	require.Equal(t, "B", mine.Services[0].Name)
	require.Zero(t, mine.Services[0].Revision)
	require.Equal(t, "A", got.Deployment.Services[0].Name)
	require.Equal(t, "x", got.Deployment.Services[0].Handlers[0].Name)
	require.Equal(t, got.Deployment.ID, got.Deployment.Services[0].Deployment)
}

func TestLookups(t *testing.T) {
	m := newMemStore()
	register := func(uri string, handlers ...string) ids.Deployment {
		s := &Service{Name: "Greeter"}
		for _, h := range handlers {
			s.Handlers = append(s.Handlers, &Handler{Name: h})
		}
		got, err := m.RegisterDeployment(t.Context(), Registration{Deployment: &Deployment{URI: uri, Services: []*Service{s}}})
		require.NoError(t, err)
		return got.Deployment.ID
	}
	old, latest := register("http://a/", "greet", "wave"), register("http://b/", "greet")
	s := m.Schemas()

	service, handler, err := s.Resolve("Greeter", "greet")
	require.NoError(t, err)
	require.EqualValues(t, 2, service.Revision)
	require.Equal(t, "greet", handler.Name)
	_, _, err = s.Resolve("Greeter", "wave")
	require.EqualError(t, err, "The requested handler 'wave' on service 'Greeter' does not exist")
	_, _, err = s.Resolve("Nobody", "wave")
	require.EqualError(t, err, "The requested service 'Nobody' does not exist")

	d, service, err := s.Latest("Greeter")
	require.NoError(t, err)
	require.Equal(t, latest, d.ID)
	require.EqualValues(t, 2, service.Revision)
	d, service, err = s.Pinned(old, "Greeter")
	require.NoError(t, err)
	require.Equal(t, old, d.ID)
	require.NotNil(t, service.Handler("wave"))

	for _, lost := range []func() error{
		func() error { _, _, err := s.Latest("Nobody"); return err },
		func() error { _, _, err := s.Pinned(old, "Nobody"); return err },
		func() error { _, _, err := s.Pinned(long("x"), "Greeter"); return err },
	} {
		code, _ := errcode.Of(lost())
		require.Equal(t, errcode.RT0011, code)
	}
}

// The limit of the request decides, on every replica alike: an endpoint that is known can be
// registered again, and below level 4 there is no limit.
func TestTheNumberOfDeploymentsIsLimited(t *testing.T) {
	for _, level := range []feature.Level{feature.Level3, feature.Level4} {
		m := newMemStore()
		_, err := m.Provision(t.Context(), Cluster{Name: "local", Partitions: 2, FeatureLevel: level})
		require.NoError(t, err)
		register := func(uri string, force bool) error {
			_, err := m.RegisterDeployment(t.Context(), Registration{Deployment: &Deployment{URI: uri}, Force: force, Limit: 2})
			return err
		}
		require.NoError(t, register("http://a/", false))
		require.NoError(t, register("http://b/", false))
		full := register("http://c/", false)
		_, planned := m.PlanDeployment(Registration{Deployment: &Deployment{URI: "http://c/"}, Limit: 2})
		if level < feature.Level4 {
			require.NoError(t, full)
			require.NoError(t, planned)
			require.Len(t, m.Schemas().Deployments, 3)
			continue
		}
		for _, err := range []error{full, planned} {
			code, ok := errcode.Of(err)
			require.True(t, ok)
			require.Equal(t, errcode.META0021, code)
			require.ErrorContains(t, err, "there are 2 deployments, and admin.deployments-limit is 2")
		}
		require.NoError(t, register("http://b/", false))
		require.NoError(t, register("http://b/", true))
		require.Len(t, m.Schemas().Deployments, 2)
		for id := range m.Schemas().Deployments {
			require.NoError(t, m.DeleteDeployment(t.Context(), id))
			break
		}
		require.NoError(t, register("http://c/", false))
	}
}
