package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/internal/tokenbucket"
	"platform/internal/units"
)

// writeFile writes a configuration file and returns its name.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "platform.toml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func load(t *testing.T, args []string, environ ...string) *Loaded {
	t.Helper()
	loaded, err := Load(args, environ)
	require.NoError(t, err)
	return loaded
}

func TestDefaults(t *testing.T) {
	cfg := load(t, nil).Config
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, host, cfg.NodeName)
	require.Equal(t, "localcluster", cfg.ClusterName)
	require.Equal(t, "platform-data", cfg.BaseDir)
	require.True(t, cfg.AutoProvision)
	require.Equal(t, 8, cfg.DefaultNumPartitions)
	require.Equal(t, "127.0.0.1:5122", cfg.Address())
	require.Equal(t, "127.0.0.1:8080", cfg.Ingress.Address())
	require.Equal(t, "127.0.0.1:9070", cfg.Admin.Address())
	require.Equal(t, time.Minute, cfg.Worker.Invoker.InactivityTimeout.Std())
	require.Equal(t, 10*time.Minute, cfg.Worker.Invoker.AbortTimeout.Std())
	require.Equal(t, 32*units.MiB, cfg.Worker.Invoker.MessageSizeLimit)
	require.Equal(t, 32*units.MiB, cfg.Ingress.RequestSizeLimit)
	require.Equal(t, Limit(1000), cfg.Worker.Invoker.ConcurrentInvocationsLimit)
	require.Equal(t, Unlimited, cfg.Ingress.ConcurrentAPIRequestsLimit)
	require.Equal(t, RetryPolicy{milliseconds(500), 2, 70, minutes(1), PauseOnMaxAttempts}, cfg.DefaultRetryPolicy)
	require.Equal(t, units.Day, cfg.DefaultJournalRetention.Std())
	require.Nil(t, cfg.MaxJournalRetention)
	require.Equal(t, map[string]string{"x-platform-cluster-name": "localcluster"}, cfg.Worker.Invoker.AdditionalRequestHeaders)
}

func TestLaterSourcesWin(t *testing.T) {
	file := writeFile(t, "cluster-name = 'file'\nbase-dir = 'file'\nbind-port = 1\nnode-name = 'file'\n")
	cfg := load(t, []string{"-c", file, "--bind-port", "3", "--node-name=flag"},
		"PLATFORM_BASE_DIR=env", "PLATFORM_BIND_PORT=2", "PLATFORM_NODE_NAME=env").Config
	require.Equal(t, "file", cfg.ClusterName)
	require.Equal(t, "env", cfg.BaseDir)
	require.Equal(t, 3, cfg.BindPort)
	require.Equal(t, "flag", cfg.NodeName)
}

func TestFileKeysInBothSpellingsAndSections(t *testing.T) {
	file := writeFile(t, `
bind_port = 7000
max-journal-retention = "2 days"
[worker.invoker]
inactivity_timeout = "PT90S"
message-size-limit = 1048576
concurrent-invocations-limit = "unlimited"
additional-request-headers = { "x-a" = "1" }
[default-retry-policy]
max-attempts = 5
exponentiation-factor = 3
on-max-attempts = "Kill"
[ingress]
bind-ip = "127.0.0.1"
`)
	cfg := load(t, nil, "PLATFORM_CONFIG="+file).Config
	require.Equal(t, 7000, cfg.BindPort)
	require.Equal(t, 2*units.Day, cfg.MaxJournalRetention.Std())
	require.Equal(t, 90*time.Second, cfg.Worker.Invoker.InactivityTimeout.Std())
	require.Equal(t, units.MiB, cfg.Worker.Invoker.MessageSizeLimit)
	require.Equal(t, Unlimited, cfg.Worker.Invoker.ConcurrentInvocationsLimit)
	require.Equal(t, map[string]string{"x-a": "1"}, cfg.Worker.Invoker.AdditionalRequestHeaders)
	require.Equal(t, RetryPolicy{milliseconds(500), 3, 5, minutes(1), KillOnMaxAttempts}, cfg.DefaultRetryPolicy)
	require.Equal(t, "127.0.0.1:8080", cfg.Ingress.Address())
	require.Equal(t, "127.0.0.1:9070", cfg.Admin.Address())
}

func TestThrottling(t *testing.T) {
	file := writeFile(t, `
[worker.invoker]
invocation-throttling = { rate = "120/min", capacity = 7 }
[worker.invoker.action-throttling]
rate = 50
[admin.query-engine.rate-limiting]
rate = "3/Hour"
`)
	cfg := load(t, nil, "PLATFORM_CONFIG="+file).Config
	require.Equal(t, tokenbucket.Rate{Count: 120, Period: time.Minute, Capacity: 7}, cfg.Worker.Invoker.InvocationThrottling.Tokens())
	require.Equal(t, tokenbucket.Rate{Count: 50, Period: time.Second, Capacity: 50}, cfg.Worker.Invoker.ActionThrottling.Tokens())
	require.Equal(t, tokenbucket.Rate{Count: 3, Period: time.Hour, Capacity: 3}, cfg.Admin.QueryEngine.RateLimiting.Tokens())
	require.False(t, load(t, nil).Config.Worker.Invoker.InvocationThrottling.Tokens().Limited())
	cfg = load(t, nil, "PLATFORM_WORKER__INVOKER__ACTION_THROTTLING__RATE=2/sec").Config
	require.Equal(t, Rate{2, time.Second}, cfg.Worker.Invoker.ActionThrottling.Rate)
}

func TestEnvironmentForms(t *testing.T) {
	loaded := load(t, nil,
		"PLATFORM_WORKER__INVOKER__INACTIVITY_TIMEOUT=5 hours",
		"PLATFORM_WORKER__INVOKER__NO_PROXY=[localhost,internal]",
		"PLATFORM_METADATA_CLIENT__ADDRESSES=http://a:1/, http://b:2/",
		`PLATFORM_ADMIN__DEPLOYMENT_ROUTING_HEADERS=["x-version"]`,
		`PLATFORM_WORKER__INVOKER__ADDITIONAL_REQUEST_HEADERS={"x-a":"1"}`,
		`PLATFORM_DEFAULT_RETRY_POLICY={ max-attempts = "unlimited", initial-interval = "1s" }`,
		"PLATFORM_EXPERIMENTAL_ENABLE_VQUEUES=true",
		"PLATFORM_LOG=debug",
		"PLATFORM_CLUSTER_NAME=",
		"PLATFORM_ADMIN_URL=http://x/",
		"PLATFORM_TEAM=x",
		"UNRELATED=1",
	)
	cfg := loaded.Config
	require.Equal(t, 5*time.Hour, cfg.Worker.Invoker.InactivityTimeout.Std())
	require.Equal(t, []string{"localhost", "internal"}, cfg.Worker.Invoker.NoProxy)
	require.Equal(t, []string{"http://a:1/", "http://b:2/"}, cfg.MetadataClient.Addresses)
	require.Equal(t, []string{"x-version"}, cfg.Admin.DeploymentRoutingHeaders)
	require.Equal(t, map[string]string{"x-a": "1"}, cfg.Worker.Invoker.AdditionalRequestHeaders)
	require.Equal(t, Unlimited, cfg.DefaultRetryPolicy.MaxAttempts)
	require.Equal(t, time.Second, cfg.DefaultRetryPolicy.InitialInterval.Std())
	require.True(t, cfg.EnableVQueues)
	require.False(t, cfg.FlowControl())
	require.Equal(t, "debug", cfg.LogFilter)
	require.Equal(t, "localcluster", cfg.ClusterName)
	require.Equal(t, []string{
		"environment variable PLATFORM_TEAM is ignored: it names no key; --dump-config prints all keys; unset the variable if it is not meant for the server",
		"flow control stays off: experimental-enable-vqueues needs experimental-enable-protocol-v7 as well",
	}, loaded.Warnings)
}

func TestFormerVariablesAreOneWarning(t *testing.T) {
	loaded := load(t, nil,
		"RESTATE_NODE_NAME=a", "RESTATE_ADMIN__BIND_PORT=1", "RESTATE_BASE_DIR=", "RESTATE_ADMIN_URL=http://x/", "RESTATE_SERVICE_HOST=10.0.0.1",
		"RESTATE_CLUSTER_NAME=a", "PLATFORM_CLUSTER_NAME=b",
	)
	require.Equal(t, []string{
		"ignored environment variables: RESTATE_ADMIN__BIND_PORT, RESTATE_NODE_NAME; this server reads them with the prefix PLATFORM_ instead of RESTATE_",
	}, loaded.Warnings)
	require.Equal(t, load(t, nil, "PLATFORM_CLUSTER_NAME=b").Config, loaded.Config)
}

func TestUnknownVariablesAreWarnings(t *testing.T) {
	rename := func(near string) string {
		return "did you mean " + near + "? Rename the variable, or unset it if it is not meant for the server"
	}
	const unset = "--dump-config prints all keys; unset the variable if it is not meant for the server"
	for variable, advice := range map[string]string{
		"PLATFORM_BASEDIR":           rename("PLATFORM_BASE_DIR"),
		"PLATFORM_NODE_NAM":          rename("PLATFORM_NODE_NAME"),
		"PLATFORM_INGRES__BIND_PORT": rename("PLATFORM_INGRESS__BIND_PORT"),
		"PLATFORM_ADMN__BIND_PORT":   rename("PLATFORM_ADMIN__BIND_PORT"),
		"PLATFORM_X__Y":              unset,
		"PLATFORM_TEAM":              unset,
	} {
		loaded := load(t, nil, variable+"=secret")
		require.Equal(t, []string{"environment variable " + variable + " is ignored: it names no key; " + advice}, loaded.Warnings)
		require.Equal(t, load(t, nil).Config, loaded.Config)
	}
	require.Len(t, load(t, nil, "PLATFORM_X=1", "PLATFORM_BASEDIR=x", "PLATFORM_X__Y=2").Warnings, 3, "one for each variable")
}

func TestUnknownKeysOfTheFileAreRefusedWhereVariablesAreNot(t *testing.T) {
	file := writeFile(t, "basedir = 'x'\n")
	_, err := Load([]string{"-c", file}, []string{"PLATFORM_BASEDIR=x"})
	require.EqualError(t, err, "[RT0002] configuration: "+file+":1: basedir: unknown key; did you mean base-dir?")
}

func TestVariablesOfContainerPlatformsAreIgnored(t *testing.T) {
	require.Empty(t, load(t, nil,
		"PLATFORM_SERVICE_HOST=10.0.0.1", "PLATFORM_SERVICE_PORT=8080", "PLATFORM_SERVICE_PORT_ADMIN=9070", "PLATFORM_PORT=tcp://10.0.0.1:8080",
		"PLATFORM_PORT_8080_TCP=tcp://10.0.0.1:8080", "PLATFORM_PORT_8080_TCP_ADDR=10.0.0.1",
		"PLATFORM_BIND_SERVICE_HOST=10.0.0.1", "PLATFORM_BIN_PORT=tcp://10.0.0.1:80",
	).Warnings)
}

func TestVariablesOfManyPrograms(t *testing.T) {
	invoker := load(t, nil, "HTTP_PROXY=proxy:3128", "no_proxy=localhost,.internal").Config.Worker.Invoker
	require.Equal(t, "http://proxy:3128", invoker.HTTPProxy)
	require.Equal(t, []string{"localhost", ".internal"}, invoker.NoProxy)
	invoker = load(t, nil, "HTTP_PROXY=http://a", "http_proxy=http://b", "PLATFORM_WORKER__INVOKER__HTTP_PROXY=http://c", "NO_PROXY=*").Config.Worker.Invoker
	require.Equal(t, "http://c", invoker.HTTPProxy)
	require.Equal(t, "id", load(t, nil, "AWS_EXTERNAL_ID=id").Config.Worker.Invoker.AWSAssumeRoleExternalID)
	require.Equal(t, []string{"*"}, invoker.NoProxy)
}

func TestSettingsWithoutEffectAreNamed(t *testing.T) {
	byPath := index(keys(Default()))
	for _, path := range inert {
		require.Contains(t, byPath, path)
	}
	require.Empty(t, load(t, nil, "PLATFORM_NETWORKING__CONNECT_TIMEOUT=3s", "PLATFORM_NETWORKING__HTTP2_KEEP_ALIVE_INTERVAL=1s").Warnings, "defaults")
	require.Equal(t, []string{"networking.connect-timeout is set (environment variable PLATFORM_NETWORKING__CONNECT_TIMEOUT) but has no effect in this version"},
		load(t, nil, "PLATFORM_NETWORKING__CONNECT_TIMEOUT=7s").Warnings)
}

func TestReplicationFollowsTheNodesThatAreExpected(t *testing.T) {
	for expected, replicas := range map[string]int{"1": 1, "2": 2, "3": 3, "5": 3} {
		require.Equal(t, replicas, load(t, []string{"--bootstrap-expect=" + expected}).Config.DefaultReplication)
	}
	require.Equal(t, 1, load(t, []string{"--bootstrap-expect=3", "--default-replication=1"}).Config.DefaultReplication)
}

func TestProblemsOfBothKindsAreReportedTogether(t *testing.T) {
	_, err := Load([]string{"--bind-port=x", "--default-num-partitions=0"}, nil)
	require.ErrorContains(t, err, "bind-port: expected a whole number, got")
	require.ErrorContains(t, err, "default-num-partitions: expected a whole number from 1 to 65535")
	require.ErrorContains(t, err, "2 problems")
}

func TestFlagsThatAreNotKeys(t *testing.T) {
	loaded := load(t, []string{"--production", "--no-logo", "--dump-config", "--use-random-ports"})
	require.Equal(t, Options{Production: true, NoLogo: true, DumpConfig: true}, loaded.Options)
	require.False(t, loaded.Config.AutoProvision)
	require.Equal(t, "127.0.0.1:0", loaded.Config.Ingress.Address())

	require.True(t, load(t, []string{"--production", "--auto-provision"}).Config.AutoProvision)
	require.Nil(t, load(t, []string{"--help"}, "PLATFORM_BIND_PORT=bad").Config)
	require.True(t, load(t, []string{"--version"}).Options.Version)
}

func TestLimitsStayBelowTheNetworkingLimit(t *testing.T) {
	loaded := load(t, nil, "PLATFORM_NETWORKING__MESSAGE_SIZE_LIMIT=1MiB", "PLATFORM_INGRESS__REQUEST_SIZE_LIMIT=2MiB")
	require.Equal(t, units.MiB, loaded.Config.Ingress.RequestSizeLimit)
	require.Equal(t, units.MiB, loaded.Config.Worker.Invoker.MessageSizeLimit)
	require.Equal(t, []string{"ingress.request-size-limit is lowered to networking.message-size-limit, 1.0 MiB"}, loaded.Warnings)
}

func TestProblemsNamePlaceKeyAndExpectation(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		env  string
		args []string
		want string
	}{
		"bad TOML":         {file: "a = 1\nb = = 2\n", want: "platform.toml:2:5: not valid TOML: "},
		"misspelled key":   {file: "\nbind-prt = 1", want: "platform.toml:2: bind-prt: unknown key; did you mean bind-port?"},
		"wrong section":    {file: "inactivity-timeout = '1m'", want: "platform.toml:1: inactivity-timeout: unknown key; did you mean worker.invoker.inactivity-timeout?"},
		"unknown section":  {file: "\n\n[wroker.invoker]\nabort-timeout='1m'", want: "platform.toml:3: wroker: unknown key; did you mean worker?"},
		"other name":       {file: "[admin]\nauth = 'token'", want: "platform.toml:2: admin.auth: unknown key; did you mean security.mode?"},
		"nothing is near":  {file: "frobnicate = 1", want: "platform.toml:1: frobnicate: unknown key; --dump-config prints all keys"},
		"wrong kind":       {file: "\n[ingress]\n\nbind-port = 'x'", want: "platform.toml:4: ingress.bind-port: expected a whole number, got \"x\""},
		"inline section":   {file: "default-retry-policy = {\"max-interval\" = 5}", want: "platform.toml:1: default-retry-policy.max-interval: expected a duration such as \"1m 30s\": \"5\" lacks a unit"},
		"not a section":    {file: "ingress = 8080", want: "platform.toml:1: ingress: expected a section [ingress], got 8080"},
		"boolean":          {file: "auto-provision = 1", want: "auto-provision: expected true or false, got 1"},
		"negative":         {file: "shutdown-timeout = '-1s'", want: "shutdown-timeout: expected a duration such as \"1m 30s\": a duration cannot be negative"},
		"size":             {file: "ingress.request-size-limit = '5 apples'", want: "platform.toml:1: ingress.request-size-limit: expected a size such as \"32 MiB\" or a number of bytes: "},
		"message size":     {env: "PLATFORM_NETWORKING__MESSAGE_SIZE_LIMIT=49MiB", want: "networking.message-size-limit: expected a size from 1 byte to 48.0 MiB, the limit of a log entry, got 49.0 MiB"},
		"no message size":  {file: "worker.invoker.message-size-limit = 0", want: "worker.invoker.message-size-limit: expected a size from 1 byte to 48.0 MiB"},
		"no request size":  {file: "ingress.request-size-limit = 0", want: "ingress.request-size-limit: expected a size from 1 byte to 48.0 MiB"},
		"choice":           {file: "log-format = 'xml'", want: "log-format: expected one of pretty, compact, json, got \"xml\""},
		"node address":     {file: `metadata-client.addresses = ["node1"]`, want: "metadata-client.addresses: expected addresses of nodes such as node1:5122"},
		"list item":        {file: "metadata-client.addresses = [1]", want: "metadata-client.addresses: expected a list of texts such as [\"a\", \"b\"], got a list with 1"},
		"table item":       {file: "worker.invoker.additional-request-headers = {a = 1}", want: "expected a table of texts such as { name = \"value\" }"},
		"list of tables":   {file: "[[ingress]]\nbind-port = 1", want: "platform.toml:1: ingress: expected a section [ingress]"},
		"date":             {file: "node-name = 2020-01-01", want: "node-name: expected a text, got 2020-01-01"},
		"rate unit":        {file: "worker.invoker.action-throttling.rate = '5/day'", want: "worker.invoker.action-throttling.rate: expected a rate such as 100/s, 6000/min or 50/h, or \"unlimited\", got \"5/day\""},
		"no rate":          {file: "worker.invoker.invocation-throttling.rate = 0", want: "worker.invoker.invocation-throttling.rate: expected a rate such as 100/s"},
		"no tokens":        {file: "[admin.query-engine.rate-limiting]\nrate = 5\ncapacity = 0", want: "admin.query-engine.rate-limiting.capacity: expected a whole number of 1 or more"},
		"capacity alone":   {file: "admin.query-engine.rate-limiting = { capacity = 5 }", want: "admin.query-engine.rate-limiting.capacity: expected not set while admin.query-engine.rate-limiting.rate is unlimited, got 5"},
		"twice":            {file: "bind_port = 1\nbind-port = 2", want: "bind-port: given twice, as bind-port and bind_port"},
		"limit":            {env: "PLATFORM_DEFAULT_RETRY_POLICY__MAX_ATTEMPTS=0", want: "environment variable PLATFORM_DEFAULT_RETRY_POLICY__MAX_ATTEMPTS: default-retry-policy.max-attempts: expected a whole number of 1 or more, or \"unlimited\", got \"0\""},
		"variable":         {env: "PLATFORM_BIND_PORT=http", want: "environment variable PLATFORM_BIND_PORT: bind-port: expected a whole number, got \"http\""},
		"variable section": {env: "PLATFORM_INGRESS=8080", want: "environment variable PLATFORM_INGRESS: ingress: expected a table"},
		"not UTF-8":        {env: "PLATFORM_NODE_NAME=\xff", want: "node-name: the text is not valid UTF-8"},
		"flag":             {args: []string{"--bind-port=x"}, want: "flag --bind-port: bind-port: expected a whole number, got \"x\""},
		"unknown flag":     {args: []string{"--bind-prot=1"}, want: "command line: unknown flag: --bind-prot; did you mean --bind-port?"},
		"strange flag":     {args: []string{"--zzzzzzzzz"}, want: "command line: unknown flag: --zzzzzzzzz; --help lists all flags"},
		"key of section":   {args: []string{"--ingress.bind-port=1"}, want: "command line: unknown flag: --ingress.bind-port; keys of sections have no flag: set ingress.bind-port in the configuration file, or the variable PLATFORM_INGRESS__BIND_PORT"},
		"flag of section":  {args: []string{"--admin-bind-port=1"}, want: "command line: unknown flag: --admin-bind-port; keys of sections have no flag: set admin.bind-port in the configuration file, or the variable PLATFORM_ADMIN__BIND_PORT"},
		"path of section":  {args: []string{"--ingress.auth=token"}, want: "set ingress.auth in the configuration file, or the variable PLATFORM_INGRESS__AUTH"},
		"command":          {args: []string{"helth"}, want: "command line: unexpected argument \"helth\"; did you mean health?"},
		"late command":     {args: []string{"--node-name", "n1", "health"}, want: "command line: unexpected argument \"health\"; the command comes first: platform-server health [flags]"},
		"switch and value": {args: []string{"--auto-provision", "false"}, want: "command line: unexpected argument \"false\"; a switch has its value after =, such as --auto-provision=false"},
		"argument":         {args: []string{"start"}, want: "command line: unexpected argument \"start\"; --help lists commands and flags"},
		"missing file":     {args: []string{"-c", "/nonexistent.toml"}, want: "/nonexistent.toml: cannot be read: no such file or directory"},
		"range":            {args: []string{"--default-num-partitions=65536"}, want: "flag --default-num-partitions: default-num-partitions: expected a whole number from 1 to 65535, got 65536"},
		"port":             {file: "[admin]\nbind-port = 70000", want: "platform.toml:2: admin.bind-port: expected a whole number from 0 to 65535, got 70000"},
		"node name":        {args: []string{"--node-name=../x"}, want: "node-name: expected 1 to 128 letters"},
		"address":          {args: []string{"--bind-address=:http:"}, want: "bind-address: expected host:port such as 127.0.0.1:8080, got \":http:\""},
		"IP":               {args: []string{"--bind-ip=localhost"}, want: "[RT0002] configuration: flag --bind-ip: bind-ip: expected an IP address"},
		"factor":           {file: "default-retry-policy.exponentiation-factor = 0.5", want: "platform.toml:1: default-retry-policy.exponentiation-factor: expected a number of at least 1, got 0.5"},
		"intervals":        {file: "[default-retry-policy]\nmax-interval = '1ms'", want: "platform.toml:2: default-retry-policy.max-interval: expected a duration not below initial-interval, 500ms, got 1ms"},
		"trusted proxy":    {file: "ingress.trusted-proxies = ['10.0.0.0/8', 'lb.example']", want: `ingress.trusted-proxies: expected an address or a prefix such as 10.0.0.0/8, got "lb.example"`},
		"trusting all":     {env: "PLATFORM_ADMIN__TRUSTED_PROXIES=::/0", want: `admin.trusted-proxies: expected an address or a prefix such as 10.0.0.0/8, got "::/0"`},
		"proxy":            {file: "worker.invoker.http-proxy = 'proxy'", want: "worker.invoker.http-proxy: expected an address"},
		"expiration":       {file: "worker.invoker.request-identity-expiration = '1ms'", want: "worker.invoker.request-identity-expiration: expected a duration from 1s to 1d, got 1ms"},
		"proxy scheme":     {env: "HTTP_PROXY=ftp://me:secret@proxy", want: "environment variable HTTP_PROXY: worker.invoker.http-proxy: expected an address such as http://proxy:3128, got \"ftp://me:xxxxx@proxy\""},
		"log filter":       {env: "PLATFORM_LOG=warn,platform=loud", want: "environment variable PLATFORM_LOG: log-filter: expected levels such as warn,platform=info, got \"warn,platform=loud\""},
		"infinite factor":  {file: "default-retry-policy.exponentiation-factor = inf", want: "expected a number, got +Inf"},
	} {
		t.Run(name, func(t *testing.T) {
			args := test.args
			if test.file != "" {
				args = append(args, "--config-file", writeFile(t, test.file))
			}
			_, err := Load(args, []string{test.env})
			require.ErrorContains(t, err, test.want)
			require.True(t, strings.HasPrefix(err.Error(), "[RT0002] configuration: "), err.Error())
			code, _ := errcode.Of(err)
			require.Equal(t, errcode.RT0002, code)
		})
	}
}

func TestPrefixes(t *testing.T) {
	prefixes, err := Prefixes([]string{"10.1.2.3/8", "192.0.2.1", "2001:db8::1", "2001:db8:1::/48"})
	require.NoError(t, err)
	require.Equal(t, "[10.0.0.0/8 192.0.2.1/32 2001:db8::1/128 2001:db8:1::/48]", fmt.Sprint(prefixes))
	for _, text := range []string{"", "0.0.0.0/0", "10.0.0.0/33", "fe80::1%eth0", "::ffff:10.0.0.0/104", "localhost"} {
		_, err := Prefixes([]string{text})
		require.Error(t, err, text)
	}
}

func TestAllProblemsAreReportedTogether(t *testing.T) {
	_, err := Load([]string{"-c", writeFile(t, "bind-prt = 1\n\nauto-provision = 'x'")}, []string{"PLATFORM_BIND_PORT=x"})
	require.Regexp(t, `^\[RT0002\] configuration: 3 problems:
  .*platform.toml:3: auto-provision: expected true or false, got "x"
  .*platform.toml:1: bind-prt: unknown key; did you mean bind-port\?
  environment variable PLATFORM_BIND_PORT: bind-port: expected a whole number, got "x"$`, err.Error())
}

func TestUsageListsRootKeysAsFlags(t *testing.T) {
	usage := Usage()
	for _, flag := range []string{"--node-name", "--base-dir", "--bind-ip", "--bind-port", "--cluster-name", "-c, --config-file", "--dump-config", "--production", "--no-logo", "--version", "--help", "--auto-provision"} {
		require.Contains(t, usage, flag)
	}
	require.NotContains(t, usage, "--worker")
	for line := range strings.Lines(usage) {
		require.LessOrEqual(t, len(line), 112, line)
	}
}

func TestMemoryOfAttempts(t *testing.T) {
	loaded := load(t, nil)
	require.Equal(t, 512*units.MiB, loaded.Config.Worker.Invoker.MemoryLimit)
	require.Equal(t, 256*units.MiB, loaded.Config.Worker.Invoker.PerInvocationMemoryLimit)

	loaded = load(t, nil, "PLATFORM_WORKER__INVOKER__MEMORY_LIMIT=100MiB")
	require.Equal(t, 100*units.MiB, loaded.Config.Worker.Invoker.PerInvocationMemoryLimit)
	require.Empty(t, loaded.Warnings)

	loaded = load(t, nil, "PLATFORM_WORKER__INVOKER__MEMORY_LIMIT=100MiB", "PLATFORM_WORKER__INVOKER__PER_INVOCATION_MEMORY_LIMIT=1GiB")
	require.Equal(t, 100*units.MiB, loaded.Config.Worker.Invoker.PerInvocationMemoryLimit)
	require.Len(t, loaded.Warnings, 1)
	require.Contains(t, loaded.Warnings[0], "worker.invoker.per-invocation-memory-limit is lowered to worker.invoker.memory-limit")

	for _, key := range []string{"MEMORY_LIMIT", "PER_INVOCATION_MEMORY_LIMIT"} {
		_, err := Load(nil, []string{"PLATFORM_WORKER__INVOKER__" + key + "=1000"})
		require.ErrorContains(t, err, "256 KiB or more")
	}
}

// The log of a server that reloads its file has the error, too.
func TestErrorsDoNotContainSecrets(t *testing.T) {
	for _, text := range []string{
		"[security.secrets]\nkeys = 12345678",
		"[worker.invoker]\nadditional-request-headers = { authorization = 12345678 }",
		"[[ingress.kafka-clusters]]\nname = \"x\"\nbrokers = [\"a:1\"]\n\"sasl.password\" = [12345678]",
	} {
		_, err := Load([]string{"--config-file", writeFile(t, text)}, nil)
		require.ErrorContains(t, err, "expected ", text)
		require.NotContains(t, err.Error(), "12345678", text)
	}
}
