package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/admin/rest"
	"platform/admin/tokens"
	"platform/internal/access"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/metadata"
)

// secured returns a server that requires tokens, which are the names of its principals.
func secured(t *testing.T, principals map[string]access.Principal, configure ...func(*Config)) *testServer {
	w := newTestServer(t, func(c *Config) {
		c.Authenticator = &access.Authenticator{Required: true}
		for _, change := range configure {
			change(c)
		}
	})
	_, err := w.store.Provision(t.Context(), metadata.Cluster{Name: "local", Partitions: 2, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	grants := map[string]access.Grant{}
	for name, p := range principals {
		p.Name = name
		grants[name] = access.Grant{Principal: p}
	}
	w.tokens = map[string]string{}
	byID := map[string]access.Grant{}
	for name, g := range grants {
		secret := access.NewSecret()
		g.Hash, g.Token = secret.Hash[:], secret.ID
		byID[secret.ID], w.tokens[name] = g, secret.Text
	}
	w.cfg.Authenticator.Grant = func(id string) (access.Grant, bool) {
		if g, ok := byID[id]; ok {
			return g, true
		}
		stored, ok := w.store.Token(id)
		return tokens.GrantOf(&stored), ok
	}
	return w
}

func (w *testServer) as(name string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+w.tokens[name]) }
}

// byRole has a principal for each role.
func byRole() map[string]access.Principal {
	principals := map[string]access.Principal{}
	for _, role := range access.Roles {
		principals[string(role)] = access.Principal{Roles: []access.Role{role}}
	}
	return principals
}

// Every route requires a permission that some role has: otherwise all callers or none could use
// it.
func TestEveryRouteRequiresAPermission(t *testing.T) {
	public := []string{"/health", "/openapi", "/errors", "/errors/:code", "/whoami", "/login", "/login/start", "/login/callback", "/login/token", "/logout"}
	w := newTestServer(t, func(c *Config) { c.Metrics = http.NotFoundHandler() })
	for _, r := range w.routes() {
		if r.Permission == access.Public {
			require.Contains(t, public, r.Path)
			require.True(t, r.Method == http.MethodGet || r.Path == "/login/token" || r.Path == "/logout", r.Path)
			continue
		}
		require.Contains(t, access.Permissions, r.Permission, r.Path)
		if r.Method != http.MethodGet && r.Path != "/query" && !strings.Contains(r.Path, "serdes") {
			require.NotEqual(t, access.View, r.Permission, "%s %s changes something", r.Method, r.Path)
			require.True(t, r.Changes(), "%s %s is not recorded in the audit log", r.Method, r.Path)
		}
	}
	for _, unknown := range []access.Permission{"", "unknown"} {
		require.Panics(t, func() { w.newRouter([]rest.Route{rest.Get("/new", unknown, w.health)}) })
	}
}

func TestRolesReachTheirRoutesOnly(t *testing.T) {
	w := secured(t, byRole())
	w.probe()
	checked := 0
	for _, r := range w.routes() {
		name := r.Method + " " + r.Path
		for what, change := range map[string]func(*http.Request){
			"no token":  func(*http.Request) {},
			"bad token": func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+access.NewSecret().Text) },
			"basic":     func(r *http.Request) { r.SetBasicAuth("admin", w.tokens["admin"]) },
			"in query":  func(r *http.Request) { r.URL.RawQuery = "token=" + w.tokens["admin"] },
		} {
			status, _, reached := w.reaches(t, r, change)
			if r.Permission == access.Public {
				continue
			}
			require.False(t, reached, "%s with %s", name, what)
			if what != "in query" { // which routes reject in general
				require.Equal(t, http.StatusUnauthorized, status, "%s with %s", name, what)
			}
		}
		for _, role := range access.Roles {
			checked++
			status, message, reached := w.reaches(t, r, w.as(string(role)))
			require.Equal(t, role.Allows(r.Permission), reached, "%s as %s: %s", name, role, message)
			if !reached {
				require.Equal(t, http.StatusForbidden, status, "%s as %s", name, role)
				require.Contains(t, message, access.RolesWith(r.Permission))
			}
		}
	}
	require.Greater(t, checked, 400)
}

func TestLimitedPrincipalsStayWithinTheirLimits(t *testing.T) {
	all := access.Roles
	w := secured(t, map[string]access.Principal{
		"greeter": {Roles: all, Services: []string{"Greeter"}},
		"scope-a": {Roles: all, Scopes: []string{"a"}},
	})
	w.invocation = &Invocation{TargetServiceName: "Greeter", Scope: "a"}
	w.probe()
	for _, r := range w.routes() {
		if r.Permission == access.Public {
			continue
		}
		name := r.Method + " " + r.Path
		// The parameters in these paths are other services, and invalid ids.
		status, _, reached := w.reaches(t, r, w.as("greeter"))
		free := r.Path == "/version" || r.Path == "/services" || r.Path == "/query/tables" || r.Path == queryPath || r.Path == batchPath || strings.Contains(r.Path, ":invocation_id")
		for _, listing := range listings {
			free = free || r.Path == listing
		}
		require.Equal(t, free, reached, name)
		if !reached {
			require.Equal(t, http.StatusForbidden, status, name)
		}
	}
	do := func(name, method, path string) int {
		answer := w.ask(t, method, path, "", "Authorization", "Bearer "+w.tokens[name])
		answer.Body.Close()
		return answer.StatusCode
	}
	require.Equal(t, 200, do("greeter", "GET", "/services/Greeter"))
	require.Equal(t, 403, do("greeter", "GET", "/services/Counter"))
	require.Equal(t, 403, do("greeter", "GET", "/services/Counter/state?object_key=a"))
	require.Equal(t, 200, do("scope-a", "GET", "/services/Counter/state?object_key=a&scope=a"))
	require.Equal(t, 403, do("scope-a", "GET", "/services/Counter/state?object_key=a"))
	require.Equal(t, 403, do("scope-a", "GET", "/services/Counter/state?object_key=a&scope=b"))
	require.Equal(t, 403, do("scope-a", "PATCH", "/services/Counter"))
	require.Equal(t, 403, do("greeter", "POST", "/services/Counter/state"))
	for _, path := range []string{"/invocations?service=Counter", "/invocations/counts?service=Greeter&service=Counter", "/failures?service=Counter"} {
		require.Equal(t, 403, do("greeter", "GET", path), path)
	}

	w.router = w.newRouter(w.routes())
	answer := w.ask(t, "POST", "/services/Greeter/state", `{"object_key":"k","new_state":{},"scope":"b"}`, "Authorization", "Bearer "+w.tokens["scope-a"])
	require.Contains(t, text(t, answer), "limited to the scopes a")
	require.Equal(t, 403, answer.StatusCode)
	for uri, offer := range map[string]func() (*metadata.Deployment, error){"http://small/": small, "http://large/": large} {
		d, err := offer()
		require.NoError(t, err)
		d.URI = uri
		_, err = w.store.RegisterDeployment(t.Context(), metadata.Registration{Deployment: d})
		require.NoError(t, err)
	}
	services := func(name string) (names []string) {
		var list struct{ Services []struct{ Name string } }
		require.NoError(t, json.Unmarshal([]byte(text(t, w.ask(t, "GET", "/services", "", "Authorization", "Bearer "+w.tokens[name]))), &list))
		for _, service := range list.Services {
			names = append(names, service.Name)
		}
		return names
	}
	require.Subset(t, services("scope-a"), []string{"Counter", "Greeter"})
	require.Equal(t, []string{"Greeter"}, services("greeter"))
	require.Equal(t, 200, do("greeter", "GET", "/invocations"))
	require.Equal(t, []string{"Greeter"}, w.query.Filter.Services)
	require.Equal(t, 200, do("scope-a", "GET", "/invocations?limit=3"))
	require.Equal(t, []string{"a"}, w.query.Filter.Scopes)
}

func TestBatchesOfLimitedPrincipals(t *testing.T) {
	w := secured(t, map[string]access.Principal{
		"admin":   {Roles: []access.Role{access.Admin}},
		"greeter": {Roles: []access.Role{access.Operator}, Services: []string{"Greeter"}},
		"scope-a": {Roles: []access.Role{access.Operator}, Scopes: []string{"a"}},
	})
	body := fmt.Sprintf(`{"invocation_ids":[%q]}`, someID)
	for _, c := range []struct {
		name, service, scope string
		status               int
	}{
		{"greeter", "Greeter", "", 200},
		{"greeter", "Counter", "", 403},
		{"scope-a", "Counter", "a", 200},
		{"scope-a", "Counter", "b", 403},
		{"scope-a", "Counter", "", 403},
		{"admin", "Counter", "b", 200},
		{"greeter", "", "", 404},
		{"admin", "", "", 200},
	} {
		w.invocation = &Invocation{TargetServiceName: c.service, Scope: c.scope}
		if c.service == "" {
			w.invocation = nil // it does not exist
		}
		for _, operation := range []string{"cancel", "kill", "pause", "resume", "purge", "purge-journal", "restart-as-new"} {
			w.did = nil
			answer := w.ask(t, "POST", "/internal/invocations_batch_operations/"+operation, body, "Authorization", "Bearer "+w.tokens[c.name])
			message := text(t, answer)
			require.Equal(t, c.status, answer.StatusCode, "%s %+v: %s", operation, c, message)
			require.Equal(t, c.status == 200, len(w.did) == 1, "%s %+v: %v", operation, c, w.did)
			if c.status == 403 {
				require.Contains(t, message, "requires a token without this limit")
			}
		}
	}
}

func TestTokensOverTheAPI(t *testing.T) {
	w := secured(t, byRole())
	call := func(name, method, path, body string) (int, map[string]any) {
		answer := w.ask(t, method, path, body, "Authorization", "Bearer "+w.tokens[name])
		var got map[string]any
		require.NoError(t, json.Unmarshal([]byte(text(t, answer)), &got))
		return answer.StatusCode, got
	}
	status, created := call("admin", "POST", "/tokens", `{"name":"ci","roles":["deployer"],"services":["Greeter"],"expires_in":"1h"}`)
	require.Equal(t, http.StatusCreated, status, created)
	w.tokens["ci"] = created["token"].(string)
	require.Regexp(t, `^plt_[a-z2-7]{16}_[a-z2-7]{52}$`, w.tokens["ci"])
	stored, _ := w.store.Token(created["id"].(string))
	require.Equal(t, "admin at 192.0.2.1", stored.CreatedBy)
	require.WithinDuration(t, time.Now().Add(time.Hour), stored.ExpiresAt, time.Minute)
	status, me := call("ci", "GET", "/whoami", "")
	require.Equal(t, 200, status)
	require.Equal(t, "ci", me["name"])
	require.Equal(t, []any{"deployer"}, me["roles"])
	require.Equal(t, []any{"view", "metrics", "deploy"}, me["permissions"])

	_, list := call("security", "GET", "/tokens", "")
	raw, _ := json.Marshal(list)
	require.NotContains(t, string(raw), w.tokens["ci"][21:], "no secret is listed")
	require.NotContains(t, string(raw), "hash")

	for name, tc := range map[string]struct {
		as, method, path, body string
		status                 int
		message                string
	}{
		"escalation":              {"security", "POST", "/tokens", `{"name":"x","roles":["admin"]}`, 403, "permissions of the role admin"},
		"other roles":             {"security", "POST", "/tokens", `{"name":"x","roles":["viewer","operator"]}`, 403, "permissions of the role operator"},
		"payloads":                {"security", "POST", "/tokens", `{"name":"x","roles":["reader"]}`, 403, "permissions of the role reader"},
		"provider":                {"admin", "POST", "/tokens", `{"name":"jwt:ada","roles":["viewer"]}`, 422, "jwt:"},
		"invisible":               {"admin", "POST", "/tokens", `{"name":"ad\u200bmin","roles":["viewer"]}`, 422, "invisible"},
		"administrator":           {"security", "POST", "/tokens", `{"name":"admin","roles":["viewer"]}`, 422, "must not be admin"},
		"certificate":             {"admin", "POST", "/tokens", `{"name":"cert:ada","roles":["viewer"]}`, 422, "cert:"},
		"no roles":                {"admin", "POST", "/tokens", `{"name":"x"}`, 422, "at least one role"},
		"unknown role":            {"admin", "POST", "/tokens", `{"name":"x","roles":["root"]}`, 422, "there is no role"},
		"no name":                 {"admin", "POST", "/tokens", `{"name":" ","roles":["viewer"]}`, 422, "'name'"},
		"two lines":               {"admin", "POST", "/tokens", `{"name":"a\nb","roles":["viewer"]}`, 422, "'name'"},
		"in the past":             {"admin", "POST", "/tokens", `{"name":"x","roles":["viewer"],"expires_in":"0s"}`, 422, "expires_in"},
		"empty service":           {"admin", "POST", "/tokens", `{"name":"x","roles":["viewer"],"services":[""]}`, 422, "'services[0]'"},
		"several services in one": {"admin", "POST", "/tokens", `{"name":"x","roles":["viewer"],"services":["Greeter","Counter,Mailer"]}`, 422, "'services[1]' is invalid: no service can have the name \"Counter,Mailer\""},
		"scope with a comma":      {"admin", "POST", "/tokens", `{"name":"x","roles":["viewer"],"scopes":["a,b"]}`, 422, "'scopes[0]'"},
		"empty scope":             {"admin", "POST", "/tokens", `{"name":"x","roles":["viewer"],"scopes":[""]}`, 422, "'scopes[0]'"},
		"name in use":             {"admin", "POST", "/tokens", `{"name":"ci","roles":["viewer"]}`, 409, "another name"},
		"revoke an unknown token": {"admin", "DELETE", "/tokens/nobody", ``, 404, "no token"},
	} {
		status, got := call(tc.as, tc.method, tc.path, tc.body)
		require.Equal(t, tc.status, status, name)
		require.Contains(t, got["message"], tc.message, name)
	}
	status, list = call("security", "POST", "/tokens", `{"name":"auditor","roles":["viewer","security"]}`)
	require.Equal(t, http.StatusCreated, status, list)
	status, admin := call("admin", "POST", "/tokens", `{"name":"root","roles":["admin"]}`)
	require.Equal(t, http.StatusCreated, status, admin)
	status, _ = call("security", "DELETE", "/tokens/root", "")
	require.Equal(t, 403, status)

	status, _ = call("security", "DELETE", "/tokens/ci", "")
	require.Equal(t, 200, status)
	status, me = call("ci", "GET", "/whoami", "")
	require.Equal(t, 200, status)
	require.Empty(t, me["roles"], "it was revoked")
	status, _ = call("ci", "GET", "/services", "")
	require.Equal(t, 401, status)
}

func TestActionsAreAudited(t *testing.T) {
	w := secured(t, byRole())
	w.offers["http://small/"] = small
	do := func(name, method, path, body string) int {
		answer := w.ask(t, method, path, body, "Authorization", "Bearer "+w.tokens[name])
		answer.Body.Close()
		return answer.StatusCode
	}
	require.Equal(t, 201, do("deployer", "POST", "/deployments", `{"uri":"http://small"}`))
	require.Equal(t, 404, do("deployer", "DELETE", "/deployments/dp_10000000000000000000009?force=true", ""))
	require.Equal(t, 400, do("operator", "PATCH", "/invocations/nonsense/kill", ""))
	require.Equal(t, 403, do("viewer", "PATCH", "/invocations/nonsense/kill", ""))
	require.Equal(t, 401, do("nobody", "POST", "/tokens", "{}"))
	require.Equal(t, 200, do("viewer", "GET", "/services", ""), "reads are not recorded")

	var list struct {
		Records []struct {
			Principal, Address, Action, Object, Outcome string
			After                                       string `json:"after_sha256"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text(t, w.ask(t, "GET", "/audit", "", "Authorization", "Bearer "+w.tokens["security"]))), &list))
	var got []string
	for _, r := range list.Records {
		got = append(got, strings.Join([]string{r.Principal, r.Action, r.Outcome}, "; "))
		require.Equal(t, "192.0.2.1", r.Address)
		require.NotEmpty(t, r.Object)
	}
	require.Len(t, got, 5)
	for i, part := range []string{
		"; POST /tokens; the token is missing", "viewer; PATCH /invocations/:invocation_id/kill; PATCH /invocations/nonsense/kill requires the role operator or admin",
		"operator; PATCH /invocations/:invocation_id/kill; ", "deployer; DELETE /deployments/:deployment; ", "deployer; POST /deployments; ",
	} {
		require.Contains(t, got[i], part)
	}
	require.NotEmpty(t, list.Records[4].After)
	var verified auditVerification
	require.NoError(t, json.Unmarshal([]byte(text(t, w.ask(t, "GET", "/audit/verification", "", "Authorization", "Bearer "+w.tokens["security"]))), &verified))
	require.True(t, verified.Intact)
	require.Equal(t, 5, verified.Records)

	for range 5 * quietBurst {
		do("nobody", "POST", "/tokens", "{}")
	}
	require.NoError(t, json.Unmarshal([]byte(text(t, w.ask(t, "GET", "/audit?limit=1000", "", "Authorization", "Bearer "+w.tokens["security"]))), &list))
	require.Less(t, len(list.Records), 3*quietBurst, "rejected requests cannot flood the log")

	// Nor can they prevent records of what clients with a token try.
	require.Equal(t, 403, do("viewer", "DELETE", "/deployments/dp_10000000000000000000009", ""))
	require.NoError(t, json.Unmarshal([]byte(text(t, w.ask(t, "GET", "/audit?limit=1", "", "Authorization", "Bearer "+w.tokens["security"]))), &list))
	require.Equal(t, "viewer", list.Records[0].Principal)
	strangers := w.quiet.of(&access.Principal{}).limit
	require.Less(t, strangers.Tokens(), 1.0)
	require.LessOrEqual(t, float64(strangers.Limit())*3600*24, 200.0)
}

func TestDryRunsAreMarkedInTheAuditLog(t *testing.T) {
	w := secured(t, byRole())
	w.offers["http://small/"] = small
	do := func(body string) int {
		answer := w.ask(t, "POST", "/deployments", body, "Authorization", "Bearer "+w.tokens["deployer"])
		answer.Body.Close()
		return answer.StatusCode
	}
	require.Less(t, do(`{"uri":"http://small","dry_run":true}`), 300)
	require.GreaterOrEqual(t, do(`{"uri":"http://unreachable","dry_run":true}`), 400)
	require.Equal(t, 201, do(`{"uri":"http://small"}`))
	var list struct {
		Records []struct{ Outcome, Object string }
	}
	require.NoError(t, json.Unmarshal([]byte(text(t, w.ask(t, "GET", "/audit", "", "Authorization", "Bearer "+w.tokens["security"]))), &list))
	require.Len(t, list.Records, 3)
	require.Empty(t, list.Records[0].Outcome)
	require.Regexp(t, "^dry run: .+", list.Records[1].Outcome)
	require.Equal(t, "dry run", list.Records[2].Outcome)
	// The path is the same for all registrations.
	require.Equal(t, "/deployments http://small/", list.Records[0].Object)
	require.Equal(t, "/deployments http://unreachable/", list.Records[1].Object)
	require.Equal(t, "/deployments http://small/", list.Records[2].Object)
}

func TestAuditRecordsNameWhatIsCreated(t *testing.T) {
	w := secured(t, byRole())
	do := func(role, method, path, body string) {
		answer := w.ask(t, method, path, body, "Authorization", "Bearer "+w.tokens[role])
		require.Less(t, answer.StatusCode, 300, text(t, answer))
	}
	do("admin", "POST", "/tokens", `{"name":"ci","roles":["deployer"]}`)
	do("operator", "PUT", "/limits/rules", `[{"pattern":"acme","limits":{"concurrency":1}},{"pattern":"*","limits":{"concurrency":2}}]`)
	do("deployer", "POST", "/kafka-clusters", `{"name":"main","properties":{"bootstrap.servers":"localhost:9092"}}`)
	do("operator", "POST", "/jobs", `{"operation":"cancel","filter":{"service":"Counter"}}`)
	var list struct{ Records []struct{ Object string } }
	require.NoError(t, json.Unmarshal([]byte(text(t, w.ask(t, "GET", "/audit", "", "Authorization", "Bearer "+w.tokens["security"]))), &list))
	require.Len(t, list.Records, 4)
	require.Equal(t, "/jobs cancel service=Counter&status=scheduled", strings.SplitAfter(list.Records[0].Object, "scheduled")[0])
	require.Equal(t, "/kafka-clusters main", list.Records[1].Object)
	require.Equal(t, "/limits/rules acme, *", list.Records[2].Object)
	require.Regexp(t, "^/tokens [a-z2-7]{16} ci$", list.Records[3].Object)
}

// Each action on an invocation, a queue or state leaves one record that names its object and who did it.
func TestActionsOnInvocationsQueuesAndStateAreAudited(t *testing.T) {
	w := secured(t, byRole(), func(c *Config) { c.FlowControl = true })
	w.change = StateChange{ID: someID, Status: ChangeQueued}
	w.offers["http://large/"] = large
	w.ask(t, "POST", "/deployments", `{"uri":"http://large"}`, "Authorization", "Bearer "+w.tokens["deployer"]).Body.Close()
	invocation, queue := "/invocations/"+someID.String(), "/vqueues/"+ids.OfVQueue("s", "a", "Greeter", "").String()
	for _, c := range []struct{ method, path, body string }{
		{"PATCH", invocation + "/kill", ""},
		{"PATCH", invocation + "/cancel", ""},
		{"PATCH", invocation + "/pause", ""},
		{"PATCH", invocation + "/purge", ""},
		{"POST", queue + "/pause", ""},
		{"POST", queue + "/resume", ""},
		{"POST", "/limits/scopes/s/pause", ""},
		{"POST", "/limits/scopes/s/resume", ""},
		{"POST", "/services/Counter/state", `{"object_key":"k","new_state":{"a":"x"}}`},
	} {
		before := len(w.records(t))
		answer := w.ask(t, c.method, c.path, c.body, "Authorization", "Bearer "+w.tokens["operator"])
		require.Less(t, answer.StatusCode, 300, "%s: %s", c.path, text(t, answer))
		records := w.records(t)
		require.Len(t, records, before+1, c.path)
		require.Equal(t, "operator", records[0].Principal, c.path)
		require.Contains(t, records[0].Object, c.path)
		require.Empty(t, records[0].Outcome, c.path)
	}
}

// A token whose name is the ID of another one does not protect that token.
func TestTokensAreRevokedByIDFirst(t *testing.T) {
	w := secured(t, byRole())
	create := func(name string) string {
		answer := w.ask(t, "POST", "/tokens", `{"name":"`+name+`","roles":["viewer"]}`, "Authorization", "Bearer "+w.tokens["security"])
		var created struct{ ID string }
		require.NoError(t, json.Unmarshal([]byte(text(t, answer)), &created))
		return created.ID
	}
	leaked := create("leaked")
	decoy := create(leaked)
	w.ask(t, "DELETE", "/tokens/"+leaked, "", "Authorization", "Bearer "+w.tokens["security"]).Body.Close()
	_, known := w.store.Token(leaked)
	require.False(t, known)
	_, known = w.store.Token(decoy)
	require.True(t, known)
}

// Who revokes a leaked token may have its text only. The log must not have it: other tokens of the
// text, such as one of another cluster, may still be valid.
func TestTokensAreRevokedByTheirText(t *testing.T) {
	w := secured(t, byRole())
	answer := w.ask(t, "POST", "/tokens", `{"name":"leaked","roles":["viewer"]}`, "Authorization", "Bearer "+w.tokens["security"])
	var created struct{ ID, Token string }
	require.NoError(t, json.Unmarshal([]byte(text(t, answer)), &created))
	other := access.NewSecret()
	for secret, status := range map[string]int{created.Token: 200, other.Text: 404, strings.Replace(other.Text, "_", "%5F", 2): 404} {
		answer := w.ask(t, "DELETE", "/tokens/"+secret, "", "Authorization", "Bearer "+w.tokens["security"])
		require.Equal(t, status, answer.StatusCode)
		require.NotContains(t, text(t, answer), secret)
	}
	_, known := w.store.Token(created.ID)
	require.False(t, known)
	w.ask(t, "DELETE", "/jobs/"+other.Text, "", "Authorization", "Bearer "+w.tokens["operator"]).Body.Close()
	records := w.records(t)
	require.Len(t, records, 5)
	for _, r := range records {
		for _, secret := range []string{created.Token, other.Text} {
			require.NotContains(t, r.Object+r.Outcome, secret[len(secret)-52:])
		}
	}
}

// recorded is a record of the audit log as clients see it.
type recorded struct {
	Principal, Action, Object, Outcome string
	Before                             string `json:"before_sha256"`
	After                              string `json:"after_sha256"`
	Invocations                        []string
	Omitted                            int
}

// records returns the audit log, the newest first.
func (w *testServer) records(t *testing.T) []recorded {
	var page struct{ Records []recorded }
	require.NoError(t, json.Unmarshal([]byte(text(t, w.ask(t, "GET", "/audit?limit=1000", "", "Authorization", "Bearer "+w.tokens["security"]))), &page))
	return page.Records
}

// Requests that change nothing must not fill the audit log.
func TestRequestsWithoutEffectAreRecordedAtABoundedRate(t *testing.T) {
	w := secured(t, map[string]access.Principal{
		"limited":  {Roles: []access.Role{access.Operator}, Services: []string{"Greeter"}},
		"deployer": {Roles: []access.Role{access.Deployer}}, "security": {Roles: []access.Role{access.Security}},
	})
	w.offers["http://small/"] = small
	do := func(name, method, path, body string) {
		w.ask(t, method, path, body, "Authorization", "Bearer "+w.tokens[name]).Body.Close()
	}
	records := func() []recorded { return w.records(t) }
	do("deployer", "POST", "/deployments", `{"uri":"http://small"}`)
	for name, flood := range map[string][]string{
		"limited":  {"POST", "/internal/invocations_batch_operations/kill", `{"invocation_ids":[]}`},
		"deployer": {"POST", "/deployments", `{"uri":"http://small"}`},
	} {
		before := len(records())
		for range 10 * quietBurst {
			do(name, flood[0], flood[1], flood[2])
		}
		require.LessOrEqual(t, len(records())-before, quietBurst+2, name)
	}
	do("deployer", "PATCH", "/services/Greeter", `{"public":false}`)
	do("deployer", "PATCH", "/services/Greeter", `{"public":false}`)
	newest := records()[0]
	require.Equal(t, "PATCH /services/:service", newest.Action)
	require.NotEqual(t, newest.Before, newest.After, "the second one changed nothing")
	for range 2 * quietBurst {
		do("limited", "POST", "/limits/rules/bulk-delete", `{}`)
	}
	require.NotZero(t, w.quiet.of(&access.Principal{Name: "limited", Roles: []access.Role{access.Operator}}).omitted)
}

// A client that closes its connections early cannot hide what it does behind requests that change nothing.
func TestActionsOfClientsThatDoNotWaitAreRecorded(t *testing.T) {
	w := secured(t, byRole())
	ask := func(ctx context.Context, method, path, body string) {
		r := httptest.NewRequest(method, "http://localhost:9070"+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+w.tokens["operator"])
		r.Header.Set("Content-Type", "application/json")
		w.Handler().ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
	}
	kill := func(ctx context.Context) {
		ask(ctx, http.MethodPatch, "/invocations/"+someID.String()+"/kill", "")
	}
	w.reject = map[ids.Invocation]error{someID: rest.ErrNotFound}
	for range 2 * quietBurst {
		kill(t.Context())
	}
	before := len(w.records(t))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w.reject[someID] = fmt.Errorf("wait for the outcome: %w", context.Canceled)
	for range 3 {
		kill(gone)
	}
	records := w.records(t)
	require.Len(t, records, before+3)
	require.Equal(t, "the client closed the connection", records[0].Outcome)

	// Nor with batches, none of whose outcomes the client waits for.
	for _, operation := range []string{"kill", "cancel", "restart-as-new"} {
		before := len(w.records(t))
		for range 3 {
			ask(gone, http.MethodPost, "/internal/invocations_batch_operations/"+operation, `{"invocation_ids":["`+someID.String()+`"]}`)
		}
		records := w.records(t)
		require.Len(t, records, before+3, operation)
		require.Equal(t, []string{someID.String()}, records[0].Invocations)
	}
}

func TestAuditRecordsNameTheInvocationsOfABatch(t *testing.T) {
	w := secured(t, byRole())
	w.ask(t, "POST", "/internal/invocations_batch_operations/kill", `{"invocation_ids":["`+someID.String()+`"]}`, "Authorization", "Bearer "+w.tokens["operator"]).Body.Close()
	require.Equal(t, []string{someID.String()}, w.records(t)[0].Invocations)

	job := `{"operation":"kill","invocation_ids":["` + someID.String() + `"]}`
	require.Equal(t, 202, w.ask(t, "POST", "/jobs", job, "Authorization", "Bearer "+w.tokens["operator"]).StatusCode)
	require.Equal(t, []string{someID.String()}, w.records(t)[0].Invocations)
	require.Equal(t, "/jobs kill", w.records(t)[0].Object)
}

func TestAuditRecordsNameTheSourceOfASubscription(t *testing.T) {
	w := secured(t, byRole())
	w.ask(t, "POST", "/subscriptions", `{"source":"kafka://nowhere/orders","sink":"service://Greeter/greet"}`, "Authorization", "Bearer "+w.tokens["deployer"]).Body.Close()
	record := w.records(t)[0]
	require.Equal(t, "/subscriptions kafka://nowhere/orders service://Greeter/greet", record.Object)
	require.Contains(t, record.Outcome, "nowhere")
}

func TestReadsOfPayloadsAreRecorded(t *testing.T) {
	w := secured(t, byRole())
	read := func(name string) {
		for _, path := range []string{"/services/Greeter/state?object_key=k", "/services"} {
			w.ask(t, "GET", path, "", "Authorization", "Bearer "+w.tokens[name]).Body.Close()
		}
	}
	read("reader")
	require.Empty(t, w.records(t))
	w.cfg.AuditReads = true
	read("reader")
	read("viewer")
	records := w.records(t)
	require.Len(t, records, 1)
	require.Equal(t, recorded{Principal: "reader", Action: "GET /services/:service/state", Object: "/services/Greeter/state?object_key=k"}, records[0])
}

// Values of promises are payloads, although everyone with access to the object may use the route.
func TestReadsOfPromisesAreRecorded(t *testing.T) {
	w := secured(t, byRole())
	w.cfg.AuditReads = true
	w.offers["http://large/"] = large
	w.ask(t, "POST", "/deployments", `{"uri":"http://large"}`, "Authorization", "Bearer "+w.tokens["deployer"]).Body.Close()
	registered := len(w.records(t))
	value := []byte("secret")
	for _, promises := range [][]WorkflowPromise{nil, {{Name: "a"}}, {{Name: "a", Completed: true, Value: &value}}} {
		w.detail = &ObjectDetail{Promises: promises}
		for _, name := range []string{"viewer", "reader"} {
			answer := w.ask(t, "GET", "/objects/Counter/k", "", "Authorization", "Bearer "+w.tokens[name])
			require.Equal(t, 200, answer.StatusCode)
			answer.Body.Close()
		}
	}
	records := w.records(t)
	require.Len(t, records, registered+1)
	require.Equal(t, recorded{Principal: "reader", Action: "GET /objects/:service/:key", Object: "/objects/Counter/k"}, records[0])
}
