package ingress

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/metadata"
	"platform/partition/machine"
)

// withTokens returns the configuration of an ingress that knows a token for each principal.
func withTokens(required bool, principals map[string]access.Principal) (Config, map[string]string) {
	texts, grants := map[string]string{}, map[string]access.Grant{}
	for name, p := range principals {
		secret := access.NewSecret()
		p.Name, p.Token = name, secret.ID
		texts[name], grants[secret.ID] = "authorization: Bearer "+secret.Text, access.Grant{Principal: p, Hash: secret.Hash[:]}
	}
	return Config{FlowControl: true, Authenticator: &access.Authenticator{
		Required: required, Grant: func(id string) (access.Grant, bool) { g, ok := grants[id]; return g, ok },
	}}, texts
}

func TestEveryRouteOfTheIngressRequiresAnInvoker(t *testing.T) {
	principals := map[string]access.Principal{}
	for _, role := range access.Roles {
		principals[string(role)] = access.Principal{Roles: []access.Role{role}}
	}
	cfg, tokens := withTokens(true, principals)
	s := testServer(t, cfg, &fakeInvocations{})
	tokens["nobody"], tokens["unknown"] = "x: y", "authorization: Bearer "+access.NewSecret().Text
	checked, completes := 0, regexp.MustCompile(`^/(platform|restate)/(awakeables|a)/`)
	for _, route := range s.router.Routes() {
		path := strings.NewReplacer(":", "", "/*", "/Greeter/greet").Replace(route.Path)
		for name, token := range tokens {
			checked++
			status := do(s, route.Method, path, "", token).Code
			role := access.Role(name)
			switch {
			case strings.HasSuffix(path, healthPath) && route.Method == http.MethodGet:
				require.Equal(t, 200, status)
			case name == "nobody" || name == "unknown":
				require.Contains(t, []int{401, 405}, status, "%s %s as %s", route.Method, path, name)
				require.Equal(t, strings.HasSuffix(path, healthPath), status == 405)
			case !role.Allows(map[bool]access.Permission{true: access.Complete, false: access.Invoke}[completes.MatchString(path)]):
				require.Contains(t, []int{403, 405}, status, "%s %s as %s", route.Method, path, name)
				require.Equal(t, strings.HasSuffix(path, healthPath), status == 405)
			default:
				require.NotContains(t, []int{401, 403}, status, "%s %s as %s", route.Method, path, name)
			}
		}
	}
	require.Greater(t, checked, 1000)
}

func TestHandlersLearnTheNameOfTheCallerAndNotItsToken(t *testing.T) {
	for _, required := range []bool{false, true} {
		cfg, tokens := withTokens(required, map[string]access.Principal{"shop": {Roles: []access.Role{access.Invoker}}})
		cfg.ForwardHeaders = []string{"Authorization"}
		f := &fakeInvocations{}
		s := testServer(t, cfg, f)
		require.Equal(t, 200, do(s, "POST", "/Greeter/greet", `"x"`, tokens["shop"], "content-type: application/json",
			"x-platform-principal: admin", "x_platform_principal: admin", "X-Platform_Principal: admin", "x-platform-claims: admin").Code)
		input := string(f.invokes[len(f.invokes)-1].Input)
		require.Contains(t, input, "x-platform-principal")
		require.Contains(t, input, "shop")
		require.NotContains(t, input, "admin")
		require.NotContains(t, input, "plt_")
		require.Equal(t, 200, do(s, "POST", "/Greeter/greet", `"x"`, tokens["shop"], "content-type: application/json", "connection: X-Platform-Principal").Code)
		require.Contains(t, string(f.invokes[len(f.invokes)-1].Input), "x-platform-principal", "callers cannot hide who they are")
	}
	// Without authentication callers have no name, and tokens of this server are not stored.
	f := &fakeInvocations{}
	s := testServer(t, Config{ForwardHeaders: []string{"Authorization"}}, f)
	token := access.NewSecret().Text
	do(s, "POST", "/Greeter/greet", `"x"`, "content-type: application/json", "x-platform-principal: admin", "authorization: Bearer "+token)
	require.NotContains(t, string(f.invokes[len(f.invokes)-1].Input), "x-platform-principal")
	require.NotContains(t, string(f.invokes[len(f.invokes)-1].Input), "plt_")
	do(s, "POST", "/Greeter/greet", `"x"`, "content-type: application/json", "authorization: Bearer of-the-application")
	require.Contains(t, string(f.invokes[len(f.invokes)-1].Input), "of-the-application")
}

// Callers with different names look different to handlers.
func TestNamesOutsideASCIIAreEncoded(t *testing.T) {
	f := &fakeInvocations{}
	s := testServer(t, Config{Authenticator: &access.Authenticator{Verify: func(context.Context, string) *access.Principal {
		return access.NewJWT("jürgen", []access.Role{access.Invoker})
	}}}, f)
	require.Equal(t, 200, do(s, "POST", "/Greeter/greet", `"x"`, "content-type: application/json", "authorization: Bearer a.b.c").Code)
	require.Contains(t, string(f.invokes[0].Input), "jwt:j%C3%BCrgen")
}

func TestLimitedCallersReachTheirServicesOnly(t *testing.T) {
	cfg, tokens := withTokens(true, map[string]access.Principal{
		"greeter": {Roles: []access.Role{access.Invoker}, Services: []string{"Greeter"}},
		"scope-a": {Roles: []access.Role{access.Invoker}, Scopes: []string{"a"}},
	})
	f := &fakeInvocations{}
	s := testServer(t, cfg, f)
	json := "content-type: application/json"
	for path, want := range map[string]int{"/Greeter/greet": 200, "/Counter/k/add": 403, "/platform/call/Counter/k/add": 403, "/platform/scope/a/call/Greeter/greet": 200} {
		require.Equal(t, want, do(s, "POST", path, `"x"`, tokens["greeter"], json).Code, path)
	}
	for path, want := range map[string]int{"/Greeter/greet": 403, "/platform/scope/b/call/Greeter/greet": 403, "/platform/scope/a/call/Greeter/greet": 200} {
		require.Equal(t, want, do(s, "POST", path, `"x"`, tokens["scope-a"], json).Code, path)
	}
	// The response does not reveal which other services and handlers exist.
	rejection := do(s, "POST", "/Counter/k/add", `"x"`, tokens["greeter"], json).Body.String()
	for _, path := range []string{"/Counter/k/ad", "/Counter/k", "/Counter/k/add/x", "/Countr/k/add", "/platform/send/Countr/k/add", "/platform/scope/a/call/Countr/k/add"} {
		w := do(s, "POST", path, `"x"`, tokens["greeter"], json)
		require.Equal(t, 403, w.Code, path)
		require.Equal(t, rejection, w.Body.String(), path)
	}
	for _, handler := range []string{"add", "ad"} {
		require.NotContains(t, do(s, "GET", "/platform/invocation/Counter/k/"+handler+"/key/output", "", tokens["greeter"]).Body.String(), "Counter", handler)
	}
	require.Contains(t, do(s, "POST", "/Greeter/gret", `"x"`, tokens["greeter"], json).Body.String(), "did you mean 'greet'")
	// Results of other services look as if they did not exist; requests without a target are
	// rejected.
	id := newID(machine.Target{Service: "Counter", Key: "k", Handler: "add"}, nil, "", rand.Uint64, clock).String()
	of := func(context.Context, ids.Invocation) (routing.Response, error) {
		return routing.Response{Target: machine.Target{Service: "Counter", Key: "k", Handler: "add"}}, nil
	}
	f.attach, f.output = of, of
	require.Equal(t, 404, do(s, "GET", "/platform/attach/"+id, "", tokens["greeter"]).Code)
	require.Equal(t, 404, do(s, "GET", "/platform/output/"+id, "", tokens["greeter"]).Code)
	require.Equal(t, 403, do(s, "POST", "/platform/invocation/"+id+"/signal/x/resolve", "1", tokens["greeter"]).Code)
	require.Equal(t, 403, do(s, "POST", "/platform/awakeables/"+awakeableOf(id)+"/resolve", "1", tokens["greeter"]).Code)
	require.Empty(t, f.signals)
	f.output = func(context.Context, ids.Invocation) (routing.Response, error) {
		return routing.Response{Target: machine.Target{Service: "Greeter", Handler: "greet"}}, routing.ErrNotReady
	}
	require.Equal(t, 202, do(s, "POST", "/platform/invocation/"+id+"/signal/x/resolve", "1", tokens["greeter"]).Code)
	require.Equal(t, 202, do(s, "POST", "/platform/awakeables/"+awakeableOf(id)+"/resolve", "1", tokens["greeter"]).Code)
	require.Len(t, f.signals, 2)
}

// A service may require a token while the ingress does not, and the other way round.
func TestServicesHaveTheirOwnAuthentication(t *testing.T) {
	for _, required := range []bool{false, true} {
		cfg, tokens := withTokens(required, map[string]access.Principal{
			"shop": {Roles: []access.Role{access.Invoker}}, "viewer": {Roles: []access.Role{access.Viewer}},
		})
		f := &fakeInvocations{}
		of := func(context.Context, ids.Invocation) (routing.Response, error) {
			return routing.Response{Target: machine.Target{Service: "Counter", Key: "k", Handler: "add"}}, nil
		}
		f.attach, f.output = of, of
		s := testServer(t, cfg, f)
		open, closed := metadata.IngressNone, metadata.IngressToken
		s.registry.Schemas().Services["Greeter"].Options.IngressAuth = &open
		s.registry.Schemas().Services["Counter"].Options.IngressAuth = &closed
		id := newID(machine.Target{Service: "Counter", Key: "k", Handler: "add"}, nil, "", rand.Uint64, clock).String()
		for _, tc := range []struct {
			method, path, as string
			status           int
		}{
			{"POST", "/Greeter/greet", "", 200},
			{"POST", "/Greeter/greet", "viewer", 403},
			{"POST", "/Counter/k/add", "", 401},
			{"POST", "/Counter/k/add/send", "", 401},
			{"GET", "/Counter/k/get", "", 401},
			{"POST", "/platform/call/Counter/k/add", "", 401},
			{"POST", "/platform/send/Counter/k/add", "", 401},
			{"POST", "/platform/scope/a/call/Counter/k/add", "", 401},
			{"POST", "/Counter/k/add", "viewer", 403},
			{"POST", "/Counter/k/add", "shop", 200},
			{"GET", "/platform/attach/" + id, "shop", 200},
		} {
			require.Equal(t, tc.status, do(s, tc.method, tc.path, "", cmp.Or(tokens[tc.as], "x: y")).Code, "%s %s as %s", tc.method, tc.path, tc.as)
		}
		for _, path := range []string{"/platform/attach/" + id, "/platform/output/" + id, "/platform/invocation/" + id + "/attach"} {
			require.Equal(t, map[bool]int{true: 401, false: 404}[required], do(s, "GET", path, "").Code, path)
		}
		require.Equal(t, map[bool]int{true: 401, false: 404}[required], do(s, "POST", "/Nobody/greet", "").Code, "the response does not reveal whether the service exists")
	}
}

func awakeableOf(invocation string) string {
	id, err := ids.ParseInvocation(invocation)
	if err != nil {
		panic(err)
	}
	return ids.Awakeable{Invocation: id, Signal: ids.FirstAwakeable}.String()
}

// A client that knows an id, which is part of an awakeable, must not be able to bypass the
// authentication of the service.
func TestAuthenticationOfAServiceCoversSignalsAndAwakeables(t *testing.T) {
	cfg, tokens := withTokens(false, map[string]access.Principal{
		"shop": {Roles: []access.Role{access.Invoker}}, "viewer": {Roles: []access.Role{access.Viewer}},
		"callback": {Roles: []access.Role{access.Callback}}, "other": {Roles: []access.Role{access.Callback}, Services: []string{"Greeter"}},
		"human": {Roles: []access.Role{access.Invoker}, Kind: access.KindJWT}, "machine": {Roles: []access.Role{access.Invoker}, Kind: access.KindCertificate},
	})
	f := &fakeInvocations{}
	counter := machine.Target{Service: "Counter", Key: "k", Handler: "add"}
	f.output = func(context.Context, ids.Invocation) (routing.Response, error) {
		return routing.Response{Target: counter}, routing.ErrNotReady
	}
	f.attach = func(context.Context, ids.Invocation) (routing.Response, error) {
		return routing.Response{Target: counter}, nil
	}
	s := testServer(t, cfg, f)
	id := newID(counter, nil, "", rand.Uint64, clock).String()
	signal, awakeable, attach := "/platform/invocation/"+id+"/signal/x/resolve", "/platform/awakeables/"+awakeableOf(id)+"/reject", "/platform/attach/"+id
	none, token, jwt, mtls := metadata.IngressNone, metadata.IngressToken, metadata.IngressJWT, metadata.IngressMTLS
	for _, tc := range []struct {
		auth    *metadata.IngressAuth
		path    string
		allowed []string
	}{
		{&none, signal, []string{"nobody", "shop", "human", "machine"}},
		{&none, awakeable, []string{"nobody", "shop", "callback", "human", "machine"}},
		{&token, signal, []string{"shop", "human", "machine"}},
		{&token, awakeable, []string{"shop", "callback", "human", "machine"}},
		{&token, attach, []string{"shop", "human", "machine"}},
		{&jwt, signal, []string{"human"}},
		{&jwt, awakeable, []string{"human"}},
		{&jwt, attach, []string{"human"}},
		{&jwt, "/Counter/k/add", []string{"human"}},
		{&mtls, signal, []string{"machine"}},
		{&mtls, awakeable, []string{"machine"}},
		{&mtls, attach, []string{"machine"}},
		{&mtls, "/Counter/k/add", []string{"machine"}},
	} {
		s.registry.Schemas().Services["Counter"].Options.IngressAuth = tc.auth
		for _, name := range []string{"nobody", "shop", "viewer", "callback", "other", "human", "machine"} {
			method := "POST"
			if tc.path == attach {
				method = "GET"
			}
			signals := len(f.signals)
			status := do(s, method, tc.path, "", cmp.Or(tokens[name], "x: y")).Code
			if slices.Contains(tc.allowed, name) {
				require.Less(t, status, 300, "%s as %s with %s", tc.path, name, tc.auth)
				continue
			}
			require.Contains(t, []int{401, 403, 404}, status, "%s as %s with %s", tc.path, name, tc.auth)
			require.Len(t, f.signals, signals)
		}
	}

	// An invocation that does not exist yet when it is looked up must not be reached later.
	f.output = nil
	signals := len(f.signals)
	require.Equal(t, 404, do(s, "POST", signal, "").Code)
	require.Equal(t, 202, do(s, "POST", awakeable, "").Code, "unknown awakeables are no error")
	require.Len(t, f.signals, signals)
}

// In the strict mode no setting of a service lets callers without credentials in.
func TestServicesAreNotOpenInTheStrictMode(t *testing.T) {
	cfg, tokens := withTokens(true, map[string]access.Principal{"shop": {Roles: []access.Role{access.Invoker}}})
	for _, strict := range []bool{false, true} {
		cfg.Strict = strict
		s := testServer(t, cfg, &fakeInvocations{})
		none := metadata.IngressNone
		s.registry.Schemas().Services["Counter"].Options.IngressAuth = &none
		require.Equal(t, map[bool]int{false: 202, true: 401}[strict], do(s, "POST", "/Counter/k/add/send", "1").Code)
		require.Equal(t, 202, do(s, "POST", "/Counter/k/add/send", "1", tokens["shop"]).Code)
	}
}

// A callback token only permits completing one awakeable.
func TestCallbackTokensOnTheIngress(t *testing.T) {
	for _, required := range []bool{false, true} {
		cfg, tokens := withTokens(required, map[string]access.Principal{
			"callback": {Roles: []access.Role{access.Callback}}, "viewer": {Roles: []access.Role{access.Viewer}},
			"other": {Roles: []access.Role{access.Callback}, Services: []string{"Greeter"}},
		})
		f := &fakeInvocations{}
		counter := machine.Target{Service: "Counter", Key: "k", Handler: "add"}
		f.output = func(context.Context, ids.Invocation) (routing.Response, error) {
			return routing.Response{Target: counter}, nil
		}
		f.attach = f.output
		s := testServer(t, cfg, f)
		closed := metadata.IngressToken
		s.registry.Schemas().Services["Counter"].Options.IngressAuth = &closed
		id := newID(counter, nil, "", rand.Uint64, clock).String()
		path := "/platform/awakeables/" + awakeableOf(id)
		made := func(name string) string {
			text, err := access.NewCallback(strings.TrimPrefix(tokens[name], "authorization: Bearer "), awakeableOf(id), time.Now().Add(time.Hour))
			require.NoError(t, err)
			return text
		}
		require.Equal(t, 202, do(s, "POST", path+"/resolve?callback_token="+made("callback"), "1").Code)
		require.Len(t, f.signals, 1)
		for name, rejected := range map[string]struct {
			path   string
			status int
		}{
			"no permission":     {path + "/resolve?callback_token=" + made("viewer"), 403},
			"other service":     {path + "/resolve?callback_token=" + made("other"), 403},
			"invalid":           {path + "/resolve?callback_token=" + made("callback") + "0", 401},
			"another awakeable": {"/platform/awakeables/" + awakeableOf(newID(counter, nil, "", rand.Uint64, clock).String()) + "/resolve?callback_token=" + made("callback"), 401},
			"signal":            {"/platform/invocation/" + id + "/signal/x/resolve?callback_token=" + made("callback"), 401},
			"none":              {path + "/resolve", 401},
		} {
			require.Equal(t, rejected.status, do(s, "POST", rejected.path, "1").Code, name)
		}
		require.Len(t, f.signals, 1)
		require.Contains(t, []int{401, 404}, do(s, "GET", "/platform/attach/"+id+"?callback_token="+made("callback"), "").Code)
		require.Equal(t, 401, do(s, "POST", "/Counter/k/add", "1", "authorization: Bearer "+made("callback")).Code)
	}
}

// A callback token proves no more than the token that it was made from.
func TestCallbackTokensAreNoStrongerThanTheirTokens(t *testing.T) {
	cfg, tokens := withTokens(false, map[string]access.Principal{"callback": {Roles: []access.Role{access.Callback}}})
	f := &fakeInvocations{}
	counter := machine.Target{Service: "Counter", Key: "k", Handler: "add"}
	f.output = func(context.Context, ids.Invocation) (routing.Response, error) {
		return routing.Response{Target: counter}, routing.ErrNotReady
	}
	s := testServer(t, cfg, f)
	awakeable := awakeableOf(newID(counter, nil, "", rand.Uint64, clock).String())
	callback, err := access.NewCallback(strings.TrimPrefix(tokens["callback"], "authorization: Bearer "), awakeable, time.Now().Add(time.Hour))
	require.NoError(t, err)
	for auth, status := range map[metadata.IngressAuth]int{metadata.IngressToken: 202, metadata.IngressJWT: 403, metadata.IngressMTLS: 403} {
		s.registry.Schemas().Services["Counter"].Options.IngressAuth = &auth
		require.Equal(t, status, do(s, "POST", "/platform/awakeables/"+awakeable+"/resolve?callback_token="+callback, "1").Code, auth)
		require.Equal(t, status, do(s, "POST", "/platform/awakeables/"+awakeable+"/resolve", "1", tokens["callback"]).Code, auth)
	}
	require.Len(t, f.signals, 2)
}

// The requirement of a service is not known once it is no longer registered.
func TestResultsOfUnregisteredServicesRequireCredentials(t *testing.T) {
	cfg, tokens := withTokens(false, map[string]access.Principal{"shop": {Roles: []access.Role{access.Invoker}}})
	issued := true
	cfg.Authenticator.Issued = func() bool { return issued }
	f := &fakeInvocations{}
	f.attach = func(context.Context, ids.Invocation) (routing.Response, error) {
		return routing.Response{Target: machine.Target{Service: "Gone", Handler: "secret"}}, nil
	}
	f.output = f.attach
	s := testServer(t, cfg, f)
	id := newID(machine.Target{Service: "Gone", Handler: "secret"}, nil, "", rand.Uint64, clock).String()
	signal := "/platform/invocation/" + id + "/signal/x/resolve"
	require.Equal(t, 404, do(s, "GET", "/platform/attach/"+id, "").Code)
	require.Equal(t, 404, do(s, "GET", "/platform/output/"+id, "").Code)
	require.Equal(t, 401, do(s, "POST", signal, "").Code)
	require.Equal(t, 200, do(s, "GET", "/platform/attach/"+id, "", tokens["shop"]).Code)
	require.Equal(t, 202, do(s, "POST", signal, "", tokens["shop"]).Code)
	issued = false // no tokens existed
	require.Equal(t, 200, do(s, "GET", "/platform/attach/"+id, "").Code)
	require.Equal(t, 202, do(s, "POST", signal, "").Code)
}

// The health route is open, and names only the services that the sender may call.
func TestHealthNamesNoServicesToStrangers(t *testing.T) {
	roles := []access.Role{access.Invoker}
	health := func(required bool, auth *metadata.IngressAuth, as string) string {
		cfg, tokens := withTokens(required, map[string]access.Principal{"shop": {Roles: roles}, "limited": {Roles: roles, Services: []string{"Greeter"}}})
		tokens["nobody"], tokens["unknown"] = "x: y", "authorization: Bearer "+access.NewSecret().Text
		s := testServer(t, cfg, &fakeInvocations{})
		s.registry.Schemas().Services["Counter"].Options.IngressAuth = auth
		answer := do(s, "GET", "/platform/health", "", tokens[as])
		require.Equal(t, 200, answer.Code)
		return answer.Body.String()
	}
	require.JSONEq(t, `{"services":[]}`, health(true, nil, "nobody"))
	require.JSONEq(t, `{"services":[]}`, health(true, nil, "unknown"))
	require.JSONEq(t, `{"services":["Counter","Greeter","Old","Order"]}`, health(true, nil, "shop"))
	require.JSONEq(t, `{"services":["Greeter"]}`, health(true, nil, "limited"))
	token := metadata.IngressToken
	require.JSONEq(t, `{"services":["Greeter","Old","Order"]}`, health(false, &token, "nobody"), "Counter requires a token")
	require.JSONEq(t, `{"services":["Counter","Greeter","Old","Order"]}`, health(false, &token, "shop"))
}

// What an operator has set for the callers of a service holds for its results after its last deployment.
func TestUnregisteredServicesKeepTheirRequirement(t *testing.T) {
	cfg, tokens := withTokens(false, map[string]access.Principal{"shop": {Roles: []access.Role{access.Invoker}}})
	f := &fakeInvocations{}
	f.attach = func(context.Context, ids.Invocation) (routing.Response, error) {
		return routing.Response{Target: machine.Target{Service: "Gone", Handler: "secret"}}, nil
	}
	f.output = f.attach
	s := testServer(t, cfg, f)
	id := newID(machine.Target{Service: "Gone", Handler: "secret"}, nil, "", rand.Uint64, clock).String()
	signal := "/platform/invocation/" + id + "/signal/x/resolve"
	for auth, status := range map[metadata.IngressAuth]int{metadata.IngressToken: 202, metadata.IngressJWT: 403, metadata.IngressMTLS: 403} {
		s.registry.Schemas().Kept = map[string]*metadata.Options{"Gone": {IngressAuth: &auth}}
		require.Equal(t, status, do(s, "POST", signal, "", tokens["shop"]).Code, auth)
		require.Equal(t, 401, do(s, "POST", signal, "").Code, auth)
		require.Equal(t, status == 202, do(s, "GET", "/platform/attach/"+id, "", tokens["shop"]).Code == 200, auth)
	}
}

func TestClientsWithoutQuotaAreRejected(t *testing.T) {
	cfg, tokens := withTokens(true, map[string]access.Principal{"shop": {Roles: []access.Role{access.Invoker}}, "web": {Roles: []access.Role{access.Invoker}}})
	cfg.Quotas = access.NewQuotas(0, 1)
	f := &fakeInvocations{}
	s := testServer(t, cfg, f)
	json := "content-type: application/json"
	require.Equal(t, 200, do(s, "POST", "/Greeter/greet", `"a long body"`, tokens["shop"], json).Code)
	answer := do(s, "POST", "/Greeter/greet", `"x"`, tokens["shop"], json)
	require.Equal(t, 429, answer.Code)
	require.Contains(t, answer.Body.String(), "ingress.principal-bytes-per-second")
	require.NotEmpty(t, answer.Header().Get("Retry-After"))
	require.Len(t, f.invokes, 1)
	require.Equal(t, 200, do(s, "POST", "/Greeter/greet", `"x"`, tokens["web"], json).Code)
	require.Equal(t, 200, do(s, "GET", "/platform/health", "", tokens["shop"]).Code)
}

func TestServicesChooseTheCredentialsThatTheyGet(t *testing.T) {
	f := &fakeInvocations{}
	s := testServer(t, Config{ForwardHeaders: []string{"Cookie"}}, f)
	call := func() string {
		require.Equal(t, 200, do(s, "POST", "/Greeter/greet", `"x"`, "content-type: application/json", "authorization: Bearer of-the-application", "cookie: of-a-session").Code)
		return string(f.invokes[len(f.invokes)-1].Input)
	}
	require.NotContains(t, call(), "of-the-application")
	require.Contains(t, call(), "of-a-session")
	s.registry.Schemas().Services["Greeter"].Options.ForwardHeaders = &[]string{"Authorization"}
	require.Contains(t, call(), "of-the-application")
	require.NotContains(t, call(), "of-a-session")
	s.registry.Schemas().Services["Greeter"].Options.ForwardHeaders = &[]string{}
	require.NotContains(t, call(), "of-")
}

// Ids of workflows can be guessed: whether there is one must not be visible.
func TestInvocationsOfProtectedServicesAreNotVisible(t *testing.T) {
	cfg, tokens := withTokens(false, map[string]access.Principal{
		"shop": {Roles: []access.Role{access.Invoker}}, "other": {Roles: []access.Role{access.Invoker}, Services: []string{"Greeter"}},
	})
	f := &fakeInvocations{}
	running := func(context.Context, ids.Invocation) (routing.Response, error) {
		return routing.Response{Target: machine.Target{Service: "Counter", Key: "k", Handler: "add"}}, routing.ErrNotReady
	}
	s := testServer(t, cfg, f)
	closed := metadata.IngressToken
	s.registry.Schemas().Services["Counter"].Options.IngressAuth = &closed
	id := newID(machine.Target{Service: "Counter", Key: "k", Handler: "add"}, nil, "", rand.Uint64, clock).String()
	for _, path := range []string{"/platform/output/" + id, "/platform/attach/" + id, "/platform/workflow/Counter/k/attach", "/platform/workflow/Counter/k/output"} {
		for _, name := range []string{"nobody", "other"} {
			f.output, f.attach = nil, nil
			missing := do(s, "GET", path, "", cmp.Or(tokens[name], "x: y"))
			f.output, f.attach = running, func(ctx context.Context, _ ids.Invocation) (routing.Response, error) {
				t.Error("it waits for the result")
				return routing.Response{}, routing.ErrNotFound
			}
			hidden := do(s, "GET", path, "", cmp.Or(tokens[name], "x: y"))
			require.Equal(t, 404, hidden.Code, path)
			require.Equal(t, missing.Body.String(), hidden.Body.String(), path)
			require.Equal(t, missing.Header(), hidden.Header(), path)
		}
	}
	require.Equal(t, statusNotReady, do(s, "GET", "/platform/output/"+id, "", tokens["shop"]).Code)
}
