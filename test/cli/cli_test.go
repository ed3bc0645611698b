package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

func TestMain(m *testing.M) {
	status := m.Run()
	harness.Cleanup()
	os.Exit(status)
}

// local are the commands that send nothing to a server.
var local = []string{
	"dev",     // starts a server that is built into the client: platform dev
	"example", // downloads from GitHub: platform sample
	"cloud login", "cloud environments configure", "cloud environments tunnel",
	"completions generate", "completions install",
	"config list-environments", "config use-environment", "config view", "config edit",
}

// hidden are commands that the help leaves out.
var hidden = []string{"vqueues pause", "vqueues resume"}

// terminal is where the client is used.
type terminal struct {
	*testing.T
	program string
	home    string
	server  *harness.Server
	used    map[string]bool // commands
	leaves  []string        // all commands
}

func newTerminal(t *testing.T) *terminal {
	found, err := filepath.Glob("node_modules/@restatedev/restate-*/bin/restate")
	require.NoError(t, err)
	if len(found) != 1 {
		t.Skip("SKIPPED: the published client is not installed; run `make cli-deps`, which downloads it from the npm registry")
	}
	program, err := filepath.Abs(found[0])
	require.NoError(t, err)
	c := &terminal{T: t, program: program, home: t.TempDir(), used: map[string]bool{}}
	c.server = harness.ServerFor(t, map[string]string{"EXPERIMENTAL_ENABLE_PROTOCOL_V7": "true", "EXPERIMENTAL_ENABLE_VQUEUES": "true"})
	c.leaves = append(c.commands(nil), hidden...)
	return c
}

var named = regexp.MustCompile(`(?m)^  ([a-z-]+) `)

// commands returns the commands without subcommands below one, from its help.
func (c *terminal) commands(above []string) (leaves []string) {
	_, list, has := strings.Cut(c.exec("", append(slices.Clone(above), "--help")...), "\nCommands:\n")
	if !has {
		return []string{strings.Join(above, " ")}
	}
	list, _, _ = strings.Cut(list, "\n\n")
	for _, m := range named.FindAllStringSubmatch(list, -1) {
		if m[1] != "help" {
			leaves = append(leaves, c.commands(append(slices.Clone(above), m[1]))...)
		}
	}
	return leaves
}

// exec runs the client with a script as editor, and returns what it prints.
func (c *terminal) exec(editor string, arguments ...string) string {
	c.Helper()
	script := filepath.Join(c.home, "editor")
	require.NoError(c, os.WriteFile(script, []byte("#!/bin/sh\n"+editor+"\n"), 0o700))
	cmd := exec.CommandContext(c.Context(), c.program, arguments...)
	cmd.Dir = c.home
	cmd.Env = []string{"HOME=" + c.home, "RESTATE_CLI_CONFIG_HOME=" + c.home, "PATH=" + os.Getenv("PATH"), "EDITOR=" + script,
		"RESTATE_ADMIN_URL=" + c.server.Admin(), "RESTATE_INGRESS_URL=" + c.server.Client.Base()}
	output, err := cmd.CombinedOutput()
	require.NoError(c, err, "%v\n%s", arguments, output)
	return string(output)
}

// edit runs a command of the client, which edits files with a script.
func (c *terminal) edit(editor, command string, arguments ...string) string {
	c.Helper()
	require.Contains(c, c.leaves, command)
	c.used[command] = true
	return c.exec(editor, append(append(strings.Fields(command), "--yes"), arguments...)...)
}

// run runs a command of the client and returns what it prints.
func (c *terminal) run(command string, arguments ...string) string {
	c.Helper()
	return c.edit("false", command, arguments...)
}

// shows runs a command and requires that it prints texts.
func (c *terminal) shows(texts []string, command string, arguments ...string) {
	c.Helper()
	output := c.run(command, arguments...)
	for _, text := range texts {
		require.Contains(c, output, text, "%s %v", command, arguments)
	}
}

// read returns the status of a read of the admin API, whose response it decodes.
func (c *terminal) read(path string, response any) int {
	c.Helper()
	resp, err := http.Get(c.server.Admin() + path)
	require.NoError(c, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(c, err)
	if resp.StatusCode == http.StatusOK {
		require.NoError(c, json.Unmarshal(body, response), "%s: %s", path, body)
	}
	return resp.StatusCode
}

// gone waits until the admin API does not find something.
func (c *terminal) gone(path string) {
	c.Helper()
	deadline, status := time.Now().Add(time.Minute), 0
	for time.Now().Before(deadline) {
		if status = c.read(path, &struct{}{}); status == http.StatusNotFound {
			return
		}
		harness.Sleep(c.Context(), 20*time.Millisecond)
	}
	require.Equal(c, http.StatusNotFound, status, path)
}

// rows returns the result of a query as lines with values that are separated by spaces.
func (c *terminal) rows(query string) string {
	c.Helper()
	request, err := json.Marshal(map[string]string{"query": query})
	require.NoError(c, err)
	resp, err := http.Post(c.server.Admin()+"/query", "application/json", strings.NewReader(string(request)))
	require.NoError(c, err)
	defer resp.Body.Close()
	var result struct{ Rows []map[string]any }
	require.Equal(c, http.StatusOK, resp.StatusCode)
	require.NoError(c, json.NewDecoder(resp.Body).Decode(&result))
	var lines []string
	for _, row := range result.Rows {
		var values []string
		for _, name := range slices.Sorted(maps.Keys(row)) {
			if row[name] != nil {
				values = append(values, fmt.Sprint(row[name]))
			}
		}
		lines = append(lines, strings.Join(values, " "))
	}
	return strings.Join(lines, "\n")
}

// becomes waits until an invocation has a status, with its failure if there is one.
func (c *terminal) becomes(id, status string) {
	c.Helper()
	c.yields("SELECT completion_failure AS b, status AS a FROM sys_invocation WHERE id = '"+id+"'", status)
}

// yields waits until a query has a result.
func (c *terminal) yields(query, want string) {
	c.Helper()
	deadline, got := time.Now().Add(time.Minute), ""
	for time.Now().Before(deadline) {
		if got = c.rows(query); got == want {
			return
		}
		harness.Sleep(c.Context(), 20*time.Millisecond)
	}
	require.Equal(c, want, got, query)
}

// send sends an invocation, which is running, and returns its ID.
func (c *terminal) send(path string) string {
	c.Helper()
	r, err := c.server.Client.Send(c.Context(), path, nil)
	require.NoError(c, err)
	require.Equal(c, http.StatusAccepted, r.Status, "%s", r.Body)
	return r.ID()
}

// shop is what is deployed twice.
type shop struct{ open atomic.Bool }

func (s *shop) serve(t *testing.T) (uri string) {
	retry := restate.WithInvocationRetryPolicy(restate.WithInitialRetryInterval(time.Hour))
	return harness.EndpointFor(t,
		restate.NewService("Shop", retry).
			Handler("quick", restate.NewServiceHandler(func(restate.Context, restate.Void) (string, error) { return "done", nil })).
			Handler("wait", restate.NewServiceHandler(func(ctx restate.Context, _ restate.Void) (string, error) {
				return restate.Awakeable[string](ctx).Result()
			})).
			Handler("buy", restate.NewServiceHandler(func(restate.Context, restate.Void) (string, error) {
				if !s.open.Load() {
					return "", errors.New("closed")
				}
				return "bought", nil
			})),
		restate.NewObject("Shelf").
			Handler("put", restate.NewObjectHandler(func(ctx restate.ObjectContext, what string) (restate.Void, error) {
				restate.Set(ctx, "what", what)
				return restate.Void{}, nil
			})))
}

// TestEveryCommandOfThePublishedClient runs each command that concerns a server, and looks in the server
// for what it has done.
func TestEveryCommandOfThePublishedClient(t *testing.T) {
	c := newTerminal(t)
	s := &shop{}
	uris := []string{s.serve(t), s.serve(t)}
	c.shows([]string{c.server.Admin(), "is healthy"}, "whoami")
	deployment := c.register(uris[0])
	c.services()
	c.invocations(s, deployment)
	c.state()
	c.events()
	c.flowControl()
	c.queries()
	c.replace(deployment, uris[1])
	for _, command := range c.leaves {
		require.NotEqual(t, slices.Contains(local, command), c.used[command], "%s is neither tried nor local, or both", command)
	}
	for _, command := range local {
		require.Contains(t, c.leaves, command)
	}
}

// register registers the services, and returns the ID of their deployment.
func (c *terminal) register(uri string) string {
	output := c.run("deployments register", uri)
	var service struct {
		DeploymentID string `json:"deployment_id"`
	}
	require.Equal(c, http.StatusOK, c.read("/services/Shop", &service))
	id := service.DeploymentID
	require.Contains(c, output, id)
	var found struct {
		URI      string
		Services []struct{ Name string }
	}
	require.Equal(c, http.StatusOK, c.read("/deployments/"+id, &found))
	require.Contains(c, found.URI, uri)
	require.Len(c, found.Services, 2)
	c.shows([]string{id, uri, "Shop [", "Shelf ["}, "deployments list")
	c.shows([]string{id, uri, "Shop", "Shelf"}, "deployments describe", id, "--extra")
	return id
}

func (c *terminal) services() {
	c.shows([]string{"Shop", "Shelf", "virtual object"}, "services list")
	c.shows([]string{"quick", "wait", "buy", "Bidirectional"}, "services describe", "Shop")
	var found struct {
		Public               bool   `json:"public"`
		IdempotencyRetention string `json:"idempotency_retention"`
	}
	c.run("services config patch", "Shop", "--public", "false")
	require.Equal(c, http.StatusOK, c.read("/services/Shop", &found))
	require.False(c, found.Public)
	c.edit(`printf 'public = true\nidempotency_retention = "3hours"\n' > "$1"`, "services config edit", "Shop")
	require.Equal(c, http.StatusOK, c.read("/services/Shop", &found))
	require.True(c, found.Public)
	require.Equal(c, "3h", found.IdempotencyRetention)
	c.shows([]string{"true", "3h"}, "services config view", "Shop")
}

func (c *terminal) invocations(s *shop, deployment string) {
	const cancelled, killed = "completed [409 Aborted] Cancelled", "completed [409 Aborted] killed"
	first, second := c.send("Shop/wait"), c.send("Shop/wait")
	for _, id := range []string{first, second} {
		c.yields("SELECT COUNT(*) FROM sys_journal WHERE id = '"+id+"' AND entry_type = 'Command: Output'", "0")
		c.becomes(id, "running")
	}
	c.shows([]string{first, second, "Shop/wait", "running", deployment}, "invocations list", "--service", "Shop", "--status", "running")
	c.shows([]string{"Shop/wait", "running", deployment, "Command: Input"}, "invocations describe", first)
	c.shows([]string{"Shop", "wait", "RUNNING"}, "services status", "Shop")
	c.run("invocations cancel", first)
	c.becomes(first, cancelled)
	c.becomes(second, "running")
	c.run("invocations kill", second)
	c.becomes(second, killed)
	all := []string{c.send("Shop/wait"), c.send("Shop/wait")}
	for _, id := range all {
		c.becomes(id, "running")
	}
	c.run("invocations cancel", "Shop/wait")
	for _, id := range all {
		c.becomes(id, cancelled)
	}

	failing := c.send("Shop/buy")
	c.becomes(failing, "backing-off")
	c.shows([]string{failing, "closed"}, "invocations list", "--status", "backing-off")
	c.run("invocations pause", failing)
	c.becomes(failing, "paused")
	s.open.Store(true)
	c.run("invocations resume", failing)
	c.becomes(failing, "completed")
	c.run("invocations restart-as-new", failing)
	c.yields("SELECT COUNT(*) FROM sys_invocation WHERE target = 'Shop/buy' AND restarted_from = '"+failing+"' AND completion_result = 'success'", "1")
	c.run("invocations purge", failing)
	c.yields("SELECT COUNT(*) FROM sys_invocation WHERE id = '"+failing+"'", "0")
	c.shows([]string{first, second}, "invocations list", "--completion-result", "failure")
}

func (c *terminal) state() {
	_, err := c.server.Client.Call(c.Context(), "Shelf/a/put", []byte(`"apples"`))
	require.NoError(c, err)
	const value = "SELECT value_utf8 FROM state WHERE service_key = 'a'"
	c.yields(value, `"apples"`)
	c.shows([]string{`"what":"apples"`}, "state get", "--plain", "Shelf", "a")
	c.run("state patch", "Shelf", "a", "--patch", `[{"op": "replace", "path": "/what", "value": "pears"}]`)
	c.yields(value, `"pears"`)
	c.edit(`printf '{"what": "plums"}' > "$1"`, "state edit", "Shelf", "a")
	c.yields(value, `"plums"`)
	c.run("state clear", "Shelf/a")
	c.yields(value, "")
}

func (c *terminal) events() {
	var cluster struct{ Properties map[string]string }
	properties := func() map[string]string {
		cluster.Properties = nil
		require.Equal(c, http.StatusOK, c.read("/kafka-clusters/local", &cluster))
		return cluster.Properties
	}
	c.run("kafka-clusters create", "local", "bootstrap.servers=127.0.0.1:1")
	require.Equal(c, "127.0.0.1:1", properties()["bootstrap.servers"])
	c.run("kafka-clusters patch", "local", "--set", "client.id=shop")
	require.Equal(c, "shop", properties()["client.id"])
	c.edit(`sed 's/127.0.0.1:1/127.0.0.1:2/' "$1" > "$1.new" && mv "$1.new" "$1"`, "kafka-clusters edit", "local")
	require.Equal(c, "127.0.0.1:2", properties()["bootstrap.servers"])
	c.shows([]string{"local", "127.0.0.1:2"}, "kafka-clusters list")
	c.shows([]string{"127.0.0.1:2", "client.id", "shop"}, "kafka-clusters describe", "local")

	var list struct {
		Subscriptions []struct{ ID, Source, Sink string }
	}
	c.run("subscriptions create", "kafka://local/orders", "service://Shop/quick", "group.id=shop")
	require.Equal(c, http.StatusOK, c.read("/subscriptions", &list))
	require.Len(c, list.Subscriptions, 1)
	id := list.Subscriptions[0].ID
	require.Equal(c, "kafka://local/orders", list.Subscriptions[0].Source)
	c.shows([]string{id, "kafka://local/orders", "service://Shop/quick"}, "subscriptions list")
	c.shows([]string{id, "group.id", "shop", "127.0.0.1:2"}, "subscriptions describe", id)
	c.run("subscriptions delete", id)
	c.gone("/subscriptions/" + id)
	c.run("kafka-clusters delete", "local")
	c.gone("/kafka-clusters/local")
}

var queueID = regexp.MustCompile(`vq_\w+`)

func (c *terminal) flowControl() {
	const rules = "SELECT pattern AS a, concurrency AS b, disabled AS c FROM sys_rules"
	c.run("rules set", "acme/*", "--concurrency", "1")
	c.yields(rules, "acme/* 1 false")
	c.run("rules disable", "acme/*")
	c.yields(rules, "acme/* 1 true")
	c.run("rules enable", "acme/*")
	c.yields(rules, "acme/* 1 false")
	c.shows([]string{"acme/*", "1"}, "rules list")

	send := func() string {
		request, err := http.NewRequestWithContext(c.Context(), http.MethodPost, c.server.Client.Base()+"/restate/scope/acme/send/Shop/wait", nil)
		require.NoError(c, err)
		resp, err := http.DefaultClient.Do(request)
		require.NoError(c, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(c, err)
		require.Equal(c, http.StatusAccepted, resp.StatusCode, "%s", body)
		var sent harness.Sent
		require.NoError(c, json.Unmarshal(body, &sent))
		return sent.InvocationID
	}
	running := send()
	c.becomes(running, "running")
	id := queueID.FindString(c.run("vqueues list"))
	c.shows([]string{id, running, "acme", "Shop"}, "vqueues describe", id)
	c.run("rules delete", "acme/*")
	c.yields(rules, "")
	c.run("vqueues pause", id)
	waiting := send()
	c.yields("SELECT queue_is_paused FROM sys_vqueue_meta WHERE id = '"+id+"'", "true")
	c.run("vqueues resume", id)
	c.becomes(waiting, "running")
	c.run("invocations kill", "Shop/wait")
	c.becomes(running, "completed [409 Aborted] killed")
	c.becomes(waiting, "completed [409 Aborted] killed")
}

func (c *terminal) queries() {
	const query = "SELECT name FROM sys_service ORDER BY name"
	require.Contains(c, c.run("sql", "--json", query), `[{"name":"Shelf"},{"name":"Shop"}]`)
	require.Contains(c, c.run("sql", "--jsonl", query), "{\"name\":\"Shelf\"}\n{\"name\":\"Shop\"}")
	c.shows([]string{"NAME", "Shelf", "Shop", "2 rows"}, "sql", query)
}

// replace registers the services at another address, and removes the deployment at the first one.
func (c *terminal) replace(deployment, uri string) {
	require.NotEqual(c, deployment, c.register(uri))
	c.run("deployments remove", deployment)
	c.gone("/deployments/" + deployment)
}
