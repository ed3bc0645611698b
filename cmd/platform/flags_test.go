package main

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/cli"
	"platform/cmd/platform/internal/cli/command"
)

// flagCase describes how a command is run to observe the effects of its flags.
type flagCase struct {
	args []string // without the command
	// flags are the arguments that use a flag, by its name; a flag of a switch that is not
	// here is given as --name. Several words are separated by spaces.
	flags map[string]string
	// base are arguments that a flag needs besides args, with and without the flag.
	base map[string]string
	// instead are the arguments in place of args for a flag.
	instead map[string][]string
	// answers are responses of the server, by the names of files of fakeServer.
	answers map[string]string
}

const (
	batchAnswer = `200
{"succeeded":["inv_1done"],"failed":[]}`
	pageAnswer = `200
{"invocations":[{"id":"inv_1a","target":"Greeter/greet","target_service_ty":"service","status":"completed","completion_result":"success","pinned_deployment_id":"dp_1old"},
{"id":"inv_1b","target":"Counter/a/add","target_service_ty":"virtual_object","status":"completed","completion_result":"failure","pinned_deployment_id":"dp_1gone"}]}`
	queueAnswer = `200
{"rows":[{"id":"vq_1aaa","service_name":"Gateway","scope":"acme","num_inbox":3}]}`
	stateAnswer = `200
{"version":"v1","state":[{"key":"value","value":"Mw=="}]}`
	jobAnswer = `200
{"id":"job_1","operation":"resume","state":"done","filter":{"service":["Greeter"]},"matched":2,"done":1,"failed":1,"failures":[{"invocation_id":"inv_1a","error":"no"}]}`
	changedAnswer = `202
{"operation_id":"inv_1op","status":"applied"}`
)

const secretsAnswer = `200
{"encrypted":true,"keys":[{"id":"0123456789abcdef","newest":true,"secrets":2}],"unreadable":[],"nodes":[{"id":"N1","name":"n1","keys":["0123456789abcdef"]}],"rotated":2}`

const levelsAnswer = `200
{"nodes":[{"id":"N1","name":"n1","log_filter":"debug","configured_log_filter":"info","targets":["fabric"]}]}`

const auditAnswer = `200
{"records":[{"sequence":1,"action":"POST /jobs","object":"/jobs","hash":"ff"}]}`

const (
	countAnswer = `200
{"total":1,"by_status":{"paused":1},"by_result":{},"by_service":[{"service":"Greeter","handler":"greet","by_status":{"paused":1},"by_result":{}}],"complete":true}`
	groupAnswer   = `{"id":"fg_0011223344556677","service":"Greeter","handler":"greet","code":500,"message":"boom","count":1,"by_status":{"paused":1}}`
	failureAnswer = `200
{"groups":[` + groupAnswer + `]}`
)

// filterFlags are the flags that select invocations, and others.
func filterFlags(others map[string]string) map[string]string {
	flags := map[string]string{
		"service": "--service Greeter", "handler": "--handler greet", "key": "--key a", "scope": "--scope acme", "deployment": "--deployment dp_1old",
		"status": "--status running", "result": "--result failure", "limit-key": "--limit-key l", "idempotency-key": "--idempotency-key i",
		"invoked-by": "--invoked-by service", "error-code": "--error-code RT0007", "failure-group": "--failure-group fg_0011223344556677",
	}
	for _, name := range []string{"created", "modified", "completed"} {
		flags[name+"-after"], flags[name+"-before"] = "--"+name+"-after 2026-01-31T15:04:05Z", "--"+name+"-before 2026-01-31T15:04:05Z"
	}
	maps.Copy(flags, others)
	return flags
}

// operationCase runs an operation on one completed invocation.
func operationCase(name string, flags map[string]string) flagCase {
	all := map[string]string{"limit": "--limit 1", "scope": "--scope acme"}
	for flag, text := range flags {
		all[flag] = text
	}
	return flagCase{
		args: []string{"Greeter", "--yes"}, flags: all, instead: map[string][]string{"from": {"inv_1done", "--yes"}},
		answers: map[string]string{
			"POST.internal.invocations_batch_operations." + name: batchAnswer,
			"POST.internal.invocations_batch_operations.kill":    batchAnswer,
		},
	}
}

func callCase(args ...string) flagCase {
	return flagCase{
		args: append([]string{"Greeter/greet"}, args...),
		flags: map[string]string{
			"data": "--data 1", "content-type": "--content-type text/plain", "header": "--header X-Test=1", "idempotency-key": "--idempotency-key k",
			"scope": "--scope acme", "limit-key": "--limit-key a", "priority": "--priority 3", "delay": "--delay 5s",
		},
		base: map[string]string{"limit-key": "--scope acme", "priority": "--scope acme"},
	}
}

var flagCases = map[string]flagCase{
	"invocations list": {
		flags:   filterFlags(map[string]string{"completion-result": "--completion-result failure", "limit": "--limit 1", "sort": "--sort modified"}),
		answers: map[string]string{"GET.invocations": pageAnswer},
	},
	"workflows list": {
		flags: filterFlags(map[string]string{"service": "--service Signup", "completion-result": "--completion-result failure", "limit": "--limit 1", "sort": "--sort modified"}),
		answers: map[string]string{
			"GET.invocations": pageAnswer,
			"GET.services":    "200\n" + `{"services":[{"name":"Signup","ty":"Workflow","handlers":[{"name":"run","ty":"Workflow"}]},{"name":"Mailer","ty":"Workflow","handlers":[{"name":"run","ty":"Workflow"}]}]}`,
		},
	},
	"invocations count":    {flags: filterFlags(nil), answers: map[string]string{"GET.invocations.counts": countAnswer}},
	"failures list":        {flags: filterFlags(map[string]string{"limit": "--limit 1"}), answers: map[string]string{"GET.failures": failureAnswer}},
	"failures show":        {args: []string{"fg_0011223344556677"}, answers: map[string]string{"GET.failures.fg_0011223344556677": "200\n" + groupAnswer}},
	"failures mute":        {args: []string{"fg_0011223344556677"}, flags: map[string]string{"note": "--note known"}, answers: map[string]string{"PATCH.failures.fg_0011223344556677": "200\n" + groupAnswer}},
	"failures unmute":      {args: []string{"fg_0011223344556677"}, answers: map[string]string{"PATCH.failures.fg_0011223344556677": "200\n" + groupAnswer}},
	"failures note":        {args: []string{"fg_0011223344556677"}, answers: map[string]string{"PATCH.failures.fg_0011223344556677": "200\n" + groupAnswer}},
	"failures resume":      operationCase("resume", map[string]string{"deployment": "--deployment latest"}),
	"invocations describe": {args: []string{"inv_1done"}},
	"invocations attach":   {args: []string{"Greeter/greet"}, flags: attachFlags, base: attachBase},
	"invocations output":   {args: []string{"Greeter/greet"}, flags: attachFlags, base: attachBase, answers: map[string]string{"POST.platform.output": "200\n1"}},
	"invocations payload":  {args: []string{"inv_1done"}},
	"attach":               {args: []string{"Greeter/greet"}, flags: attachFlags, base: attachBase},
	"workflows attach":     {args: []string{"Signup/ada"}, flags: map[string]string{"scope": "--scope acme"}},
	"workflows output":     {args: []string{"Signup/ada"}, flags: map[string]string{"scope": "--scope acme"}, answers: map[string]string{"POST.platform.output": "200\n1"}},
	"invocations cancel":   operationCase("cancel", nil),
	"invocations kill":     operationCase("kill", nil),
	"invocations pause":    operationCase("pause", map[string]string{"reason": "--reason maintenance"}),
	"invocations resume":   operationCase("resume", map[string]string{"deployment": "--deployment latest"}),
	"invocations purge":    operationCase("purge", nil),
	"invocations copy": {args: []string{"inv_1a"}, flags: map[string]string{"data": "--data 1"}, base: map[string]string{"raw": "--data text"}, answers: map[string]string{"POST.invocations.inv_1a.copy": `200
{"new_invocation_id":"inv_1b"}`}},
	"invocations restart-as-new": operationCase("restart-as-new", map[string]string{"deployment": "--deployment keep", "from": "--from 2"}),

	"cluster secrets status": {answers: map[string]string{"GET.cluster.secrets": secretsAnswer}},
	"cluster secrets rotate": {answers: map[string]string{"POST.cluster.secrets.rotate": secretsAnswer}},
	"cluster log-level": {
		args: []string{"debug"}, flags: map[string]string{"node": "--node n1", "for": "--for 1m"}, instead: map[string][]string{"reset": {}},
		answers: map[string]string{"GET.cluster.log-levels": levelsAnswer, "PUT.cluster.log-levels": levelsAnswer, "DELETE.cluster.log-levels": levelsAnswer},
	},

	"call":               callCase(),
	"send":               callCase(),
	"awakeables resolve": {args: []string{"sign_1old"}, flags: map[string]string{"data": "--data 1"}, base: map[string]string{"raw": "--data text"}},
	"awakeables reject":  {args: []string{"sign_1old"}, flags: map[string]string{"data": "--data 1"}},
	"signals send":       {args: []string{"inv_1retry", "approved"}, flags: map[string]string{"data": "--data 1"}, base: map[string]string{"raw": "--data text"}},
	"signals reject":     {args: []string{"inv_1retry", "approved"}, flags: map[string]string{"data": "--data 1"}},
	"promises list": {args: []string{"Signup/ada"}, flags: map[string]string{"scope": "--scope acme"}, answers: map[string]string{
		"GET.services.Signup": "200\n" + `{"name":"Signup","ty":"Workflow"}`,
	}},
	"promises get": {args: []string{"Signup/ada", "p"}, flags: map[string]string{"scope": "--scope acme"}, answers: map[string]string{
		"POST.query": "200\n" + `{"rows":[{"key":"p","completed":true,"completion_success_value_utf8":"1"}]}`,
	}},

	"deployments list":     {},
	"deployments describe": {args: []string{"dp_1old"}},
	"deployments remove":   {args: []string{"dp_1old", "--yes"}},
	"deployments prune":    {},
	"deployments register": {args: []string{"localhost:9081", "--yes"}, flags: map[string]string{
		"extra-header": "--extra-header a=b", "metadata": "--metadata a=b", "assume-role-arn": "--assume-role-arn arn:x",
	}},
	"deployments update": {args: []string{"dp_1old", "localhost:9081", "--yes"}, flags: map[string]string{
		"extra-header": "--extra-header a=b", "assume-role-arn": "--assume-role-arn arn:x",
	}},

	"services list":        {},
	"services describe":    {args: []string{"Greeter"}},
	"services config view": {args: []string{"Greeter"}},
	"services status": {args: []string{"Counter"}, flags: map[string]string{
		"locked-keys-limit": "--locked-keys-limit 1", "locked-key-held-threshold-second": "--locked-key-held-threshold-second 999999999", "sample-invocations-limit": "--sample-invocations-limit 2",
	}, answers: map[string]string{
		"POST.query": "200\n" + `{"rows":[{"service":"Counter","key":"a","queue":3,"holder":"inv_1done","in_all":1,"handler":"add","status":"running","n":1,"id":"inv_1done","target_handler_name":"add","running_at":"2020-01-01T00:00:00Z"}]}`,
	}},
	"services patch":        {args: []string{"Greeter", "--yes", "--public"}, flags: patchFlags},
	"services config patch": {args: []string{"Greeter", "--yes", "--public"}, flags: patchFlags},

	"objects list":     {args: []string{"Counter"}, flags: map[string]string{"limit": "--limit 1", "prefix": "--prefix a", "scope": "--scope acme"}, answers: map[string]string{"GET.objects": "200\n" + `{"objects":[]}`}},
	"objects scopes":   {args: []string{"Counter"}, answers: map[string]string{"GET.services.Counter.scopes": "200\n" + `{"scopes":[]}`}},
	"objects describe": {args: []string{"Counter/a"}, flags: map[string]string{"scope": "--scope acme"}, answers: map[string]string{"GET.objects.Counter.a": "200\n" + `{"service":"Counter","key":"a","queue":[]}`}},
	"state get":        {args: []string{"Counter/a"}, flags: map[string]string{"scope": "--scope acme"}, answers: map[string]string{"GET.services.Counter.state": stateAnswer}},
	"state edit": {args: []string{"Counter/a", "--yes"}, flags: map[string]string{"scope": "--scope acme"}, answers: map[string]string{
		"GET.services.Counter.state": stateAnswer, "POST.services.Counter.state": changedAnswer,
	}},
	"state patch": {args: []string{"Counter/a", "--yes"}, flags: map[string]string{"scope": "--scope acme", "patch": `--patch {"value":"NA=="}`},
		base: map[string]string{"binary": `-p {"value":"NA=="}`, "force": `-p {"value":4}`, "scope": `-p {"value":4}`},
		answers: map[string]string{
			"GET.services.Counter.state": stateAnswer, "POST.services.Counter.state": changedAnswer,
		}},
	"state clear": {args: []string{"Counter/a", "--yes"}, flags: map[string]string{"scope": "--scope acme"}, answers: map[string]string{
		"POST.query":                 "200\n" + `{"rows":[{"service_key":"a","entries":1,"bytes":1}]}`,
		"GET.services.Counter.state": stateAnswer, "POST.services.Counter.state": changedAnswer,
	}},

	"vqueues list": {flags: map[string]string{"limit": "--limit 1", "service": "--service S", "scope": "--scope acme", "limit-key": "--limit-key a"},
		answers: map[string]string{"POST.query": queueAnswer}},
	"vqueues describe": {args: []string{"Gateway"}, flags: map[string]string{"limit": "--limit 1", "scope": "--scope acme", "limit-key": "--limit-key a"},
		answers: map[string]string{"POST.query": queueAnswer}},
	"vqueues pause": {args: []string{"Gateway"}, flags: map[string]string{"scope": "--scope acme", "limit-key": "--limit-key a", "reason": "--reason maintenance"},
		answers: map[string]string{"POST.query": queueAnswer, "POST.vqueues.vq_1aaa.pause": "202\n"}},
	"vqueues resume": {args: []string{"Gateway"}, flags: map[string]string{"scope": "--scope acme", "limit-key": "--limit-key a"},
		answers: map[string]string{"POST.query": queueAnswer, "POST.vqueues.vq_1aaa.resume": "202\n"}},

	"jobs start": {args: []string{"resume", "--service", "Greeter", "--yes"}, flags: map[string]string{
		"service": "--service Counter", "handler": "--handler greet", "key": "--key a", "scope": "--scope acme", "status": "--status paused", "filter": "--filter deployment=dp_1old",
		"deployment": "--deployment latest", "reason": "--reason maintenance",
	}, answers: map[string]string{"POST.jobs": jobAnswer, "GET.jobs.job_1": jobAnswer}},
	"jobs list":  {answers: map[string]string{"GET.jobs": "200\n" + `{"jobs":[{"id":"job_1","operation":"kill","state":"done"}]}`}},
	"jobs show":  {args: []string{"job_1"}, answers: map[string]string{"GET.jobs.job_1": jobAnswer}},
	"jobs stop":  {args: []string{"job_1"}, answers: map[string]string{"DELETE.jobs.job_1": jobAnswer}},
	"jobs watch": {args: []string{"job_1"}, answers: map[string]string{"GET.jobs.job_1": jobAnswer}},

	"cluster partitions recover": {args: []string{"3", "--yes"}, answers: map[string]string{
		"GET.cluster.nodes":               "200\n" + `{"nodes":[{"id":"N1","name":"n1"}]}`,
		"POST.cluster.partitions.recover": "200\n" + `{"partitions":[{"partition":3,"needed":true,"recovered":true,"from":1,"last":9,"last_term":2,"discarded":[],"missing":["n2/x"]}]}`,
	}},

	"rules list":   {},
	"rules delete": {args: []string{"tenant", "--yes"}},
	"rules set": {args: []string{"new/a"}, flags: map[string]string{
		"concurrency": "--concurrency 6", "rate": "--rate 5/s", "queue-limit": "--queue-limit 9", "description": "--description words",
	}, base: map[string]string{"disabled": "--concurrency 6", "json": "--concurrency 6"}},
	"rules enable":  {args: []string{"*"}},
	"rules disable": {args: []string{"tenant"}},

	"sql":               {args: []string{"SELECT 1"}, flags: map[string]string{"consistency": "--consistency strong"}, answers: map[string]string{"POST.query": queueAnswer}},
	"explain":           {args: []string{"RT0007"}},
	"docs":              {},
	"ui":                {},
	"cluster ca import": {args: []string{"--dir", "testdata/none"}},
	"cluster join-token create": {flags: map[string]string{"node": "--node n2", "ttl": "--ttl 15m", "count": "--count 2"},
		answers: map[string]string{"POST.cluster.join-tokens": "201\n" + `{"token":"pjt_a_b_c","id":"a","node":"n2","expires_at":"2026-11-23T10:00:00Z"}`}},
	"cluster join-token list":   {answers: map[string]string{"GET.cluster.join-tokens": "200\n" + `{"join_tokens":[{"id":"a","used_by":"n2","used_at":"2026-11-23T10:00:00Z"}]}`}},
	"cluster join-token revoke": {args: []string{"a"}, answers: map[string]string{"DELETE.cluster.join-tokens.a": "200\n" + `{"id":"a"}`}},
	"tokens create": {args: []string{"ci", "--role", "viewer"}, flags: map[string]string{
		"role": "--role invoker", "service": "--service Greeter", "scope": "--scope acme", "expires-in": "--expires-in 90d",
	}, answers: map[string]string{"POST.tokens": "201\n" + `{"token":"plt_a_b","id":"a","name":"ci","roles":["viewer"]}`}},
	"tokens list":   {answers: map[string]string{"GET.tokens": "200\n" + `{"tokens":[{"id":"a","name":"ci","roles":["viewer"],"services":["Greeter"]}]}`}},
	"tokens revoke": {args: []string{"ci"}, answers: map[string]string{"DELETE.tokens.ci": "200\n" + `{"id":"a","name":"ci"}`}},
	"audit list":    {flags: map[string]string{"limit": "--limit 7"}, answers: map[string]string{"GET.audit": auditAnswer}},
	"audit export":  {answers: map[string]string{"GET.audit": auditAnswer}},
	"audit verify": {flags: map[string]string{"hash": "--hash 00"}, answers: map[string]string{
		"GET.audit": auditAnswer, "GET.audit.verification": "200\n" + `{"intact":true,"records":1,"first_sequence":1,"last_sequence":1,"hash":"ff"}`,
	}},
	"login": {
		args: []string{"--token-file", "token"}, flags: map[string]string{"token-file": "--token-file other"}, instead: map[string][]string{"device": {}},
	},
	"logout":  {},
	"whoami":  {},
	"version": {},

	"config list-environments": {},
	"config use-environment":   {args: []string{"local"}},
	"config view":              {},
	"config edit":              {},

	"completions generate": {args: []string{"bash"}},
	"completions install":  {args: []string{"bash"}},
}

var (
	attachFlags = map[string]string{"idempotency-key": "--idempotency-key k2", "scope": "--scope acme"}
	attachBase  = map[string]string{"scope": "--idempotency-key k", "json": "--idempotency-key k", "output": "--idempotency-key k"}
	patchFlags  = map[string]string{
		"public":                "--public=false",
		"ingress-auth":          "--ingress-auth token",
		"forward-headers":       "--forward-headers authorization,cookie",
		"idempotency-retention": "--idempotency-retention 1h", "workflow-completion-retention": "--workflow-completion-retention 1h", "journal-retention": "--journal-retention 1h",
		"inactivity-timeout": "--inactivity-timeout 1m", "abort-timeout": "--abort-timeout 1m", "max-attempts": "--max-attempts 3", "on-max-attempts": "--on-max-attempts kill",
		"retry-initial-interval": "--retry-initial-interval 1s", "retry-max-interval": "--retry-max-interval 1m", "retry-factor": "--retry-factor 3",
	}
)

// flagsTestedElsewhere are commands whose flags are not observed here, and where they are.
var flagsTestedElsewhere = map[string]string{
	"dev":                         "dev.txtar",
	"sample":                      "dev.txtar",
	"cluster status":              "cluster.txtar",
	"cluster events":              "cluster.txtar",
	"cluster provision":           "cluster.txtar",
	"cluster config get":          "cluster.txtar",
	"cluster config set":          "cluster.txtar",
	"cluster nodes list":          "cluster.txtar",
	"cluster nodes describe":      "cluster.txtar",
	"cluster nodes drain":         "cluster.txtar",
	"cluster nodes undrain":       "cluster.txtar",
	"cluster nodes remove":        "cluster.txtar",
	"cluster partitions list":     "cluster.txtar",
	"cluster ca init":             "certificates.txtar",
	"cluster ca node":             "certificates.txtar",
	"cluster ca rotate":           "certificates.txtar",
	"cluster partitions describe": "cluster.txtar",
	"cluster partitions transfer": "cluster.txtar",
	"awakeables callback":         "callback.txtar",
	"awakeables list":             "awakeables.txtar",
}

// TestEachFlagHasAnEffect runs each command with and without each of its flags: the requests, the
// output or the exit status must differ, so that no flag is accepted without effect.
func TestEachFlagHasAnEffect(t *testing.T) {
	t.Setenv("TZ", "UTC")
	leaves(cli.Command(), func(path string, cmd *cobra.Command) {
		if file, elsewhere := flagsTestedElsewhere[path]; elsewhere {
			text, err := os.ReadFile(filepath.Join("testdata", file))
			require.NoError(t, err)
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if f.Name != "help" && f.Name != "json" {
					require.Contains(t, string(text), "--"+f.Name, "%s: %s does not use the flag", path, file)
				}
			})
			return
		}
		c, known := flagCases[path]
		require.True(t, known, "%s has no case in flagCases", path)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || f.Hidden {
				return
			}
			t.Run(path+" --"+f.Name, func(t *testing.T) {
				t.Parallel()
				used, given := c.flags[f.Name]
				if !given {
					require.Equal(t, "bool", f.Value.Type(), "flagCases has no value for the flag")
					used = "--" + f.Name
				}
				own := c.args
				if instead := c.instead[f.Name]; instead != nil {
					own = instead
				}
				args := append(append(strings.Fields(path), own...), strings.Fields(c.base[f.Name])...)
				without := outcome(t, c, args)
				with := outcome(t, c, append(slices.Clone(args), strings.Fields(used)...))
				require.NotEqual(t, without, with, "%s %s: the flag has no effect", path, used)
				require.NotContains(t, with, "status 2\n", "the command is used wrongly")
				if path != "state patch" && path != "rules set" && f.Name != "idempotency-key" { // others lack what they need without the flag
					require.NotContains(t, without, "status 2\n", "the command is used wrongly")
				}
			})
		})
	})
}

// TestWatchedCommandsOnlyRead runs each command that --watch accepts: repeating it must not change anything.
func TestWatchedCommandsOnlyRead(t *testing.T) {
	watched := 0
	leaves(cli.Command(), func(path string, _ *cobra.Command) {
		c, known := flagCases[path]
		args := append(strings.Fields(path), c.args...)
		if !known || !strings.Contains(outcome(t, c, append(slices.Clone(args), "--watch")), "--watch needs a terminal") {
			return
		}
		watched++
		for line := range strings.Lines(outcome(t, c, args)) {
			if method, rest, _ := strings.Cut(line, " "); slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, method) {
				require.True(t, strings.HasPrefix(rest, "/query"), "%s --watch would repeat %s", path, line)
			}
		}
	})
	require.Greater(t, watched, 30)
}

// leaves visits the commands that have no commands below them.
func leaves(cmd *cobra.Command, visit func(path string, cmd *cobra.Command)) {
	if !cmd.HasSubCommands() {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		if cmd.IsAvailableCommand() {
			visit(path, cmd)
		}
		return
	}
	for _, child := range cmd.Commands() {
		leaves(child, visit)
	}
}

var changing = regexp.MustCompile(`127\.0\.0\.1:\d+|\d+(ms|µs)|` + regexp.QuoteMeta(os.TempDir()) + `\S*`)

// outcome is all that can be seen of running a command.
func outcome(t *testing.T, c flagCase, args []string) string {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "answers"), 0o700))
	for name, text := range c.answers {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "answers", name), []byte(text), 0o600))
	}
	editor := filepath.Join(dir, "editor")
	require.NoError(t, os.WriteFile(editor, []byte("#!/bin/sh\nsed -i 's/3/4/; s/Mw/NA/' \"$1\"\n"), 0o700)) //nolint:gosec // run by the test
	fake := newFakeServer(dir)
	defer fake.Close()
	env := map[string]string{"PLATFORM_ADMIN_URL": fake.URL, "PLATFORM_INGRESS_URL": fake.URL, "EDITOR": editor, "PLATFORM_CLI_CONFIG": filepath.Join(dir, "none")}
	var out, errs bytes.Buffer
	status := cli.Run(t.Context(), args, command.System{
		In: strings.NewReader(""), Out: &out, Err: &errs, Home: dir, Getenv: func(name string) string { return env[name] },
	})
	return changing.ReplaceAllString(fmt.Sprintf("status %d\n%s\n%s\n%s", status, out.String(), errs.String(), fake.log()), "…")
}
