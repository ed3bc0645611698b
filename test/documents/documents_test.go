package documents

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

func TestMain(m *testing.M) {
	if tool := os.Getenv(kafkaTool); tool != "" {
		runKafkaTool(tool)
		return
	}
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// timeout bounds what is executed of one document.
const timeout = 3 * time.Minute

// document is a file with blocks to execute, and what they need.
type document struct {
	path      string
	env       map[string]string // of the servers
	nodes     int               // of the cluster, 0 for one
	orders    bool              // the sample program of docs/services.md runs at its address
	kafka     bool              // a Kafka broker runs, and its tools are in PATH
	registers bool              // the document registers the sample service itself
}

var documents = []document{
	{path: "README.md"},
	{path: "docs/invoke.md"},
	{path: "docs/services.md", orders: true},
	{path: "docs/operate.md"},
	{path: "docs/runbooks.md"},
	{path: "docs/sql.md"},
	{path: "docs/http-api.md"},
	{path: "docs/cluster.md", nodes: 3},
	{path: "docs/events.md", kafka: true},
	{path: "docs/security.md", registers: true, env: map[string]string{
		"SECURITY__MODE": "strict", "SECURITY__SECRETS__KEYS": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
	}},
	{path: "docs/flow-control.md", env: map[string]string{"EXPERIMENTAL_ENABLE_PROTOCOL_V7": "true", "EXPERIMENTAL_ENABLE_VQUEUES": "true"}},
}

// TestDocumentedCommands executes the marked blocks of each document, in order, on a server of
// its own with the services of the quickstart.
func TestDocumentedCommands(t *testing.T) {
	if out, err := exec.Command("curl", "--json", "1", "--version").CombinedOutput(); err != nil {
		t.Skipf("curl with --json is missing: %s", out)
	}
	for _, d := range documents {
		t.Run(filepath.Base(d.path), func(t *testing.T) {
			t.Parallel()
			d.execute(t)
		})
	}
}

// TestEveryMarkedBlockIsExecuted finds blocks that are marked in other documents.
func TestEveryMarkedBlockIsExecuted(t *testing.T) {
	listed := map[string]bool{}
	for _, d := range documents {
		listed[d.path] = true
	}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		paths, err := filepath.Glob(root + pattern)
		require.NoError(t, err)
		for _, path := range paths {
			name, err := filepath.Rel(root, path)
			require.NoError(t, err)
			require.Equal(t, listed[name], len(stepsOf(t, name)) > 0, "blocks of %s to execute", name)
		}
	}
}

const root = "../../"

var block = regexp.MustCompile("(?ms)^```console test( await)?\n(.*?)^```")

// step is a command and the output that the document shows.
type step struct {
	command string
	output  []string
	await   bool // it is repeated until it prints the output
}

// fails reports whether the document says that the command fails.
func (s step) fails() bool { return strings.Contains(s.command, "# fails") }

func stepsOf(t *testing.T, path string) (steps []step) {
	text, err := os.ReadFile(root + path)
	require.NoError(t, err)
	for _, found := range block.FindAllStringSubmatch(string(text), -1) {
		for _, line := range strings.Split(strings.TrimRight(found[2], "\n"), "\n") {
			switch command, isCommand := strings.CutPrefix(line, "$ "); {
			case isCommand:
				steps = append(steps, step{command: command, await: found[1] != ""})
			case len(steps) == 0:
				t.Fatalf("%s: a block begins with %q instead of a command", path, line)
			case strings.HasPrefix(line, "  ") && len(steps[len(steps)-1].output) == 0 && continues(steps[len(steps)-1].command):
				steps[len(steps)-1].command += "\n" + line
			case line != "" || len(steps[len(steps)-1].output) > 0:
				steps[len(steps)-1].output = append(steps[len(steps)-1].output, line)
			}
		}
	}
	return steps
}

// continues reports whether a command has further lines: an open quoted argument, or a backslash
// at its end.
func continues(command string) bool {
	return strings.Count(command, `"`)%2 == 1 || strings.HasSuffix(command, `\`)
}

// execute runs the commands of the document.
func (d document) execute(t *testing.T) {
	steps := stepsOf(t, d.path)
	require.NotEmpty(t, steps)
	run := runner{T: t, ids: map[string]string{}}
	if d.nodes > 1 {
		run.nodes = harness.ClusterFor(t, harness.ClusterOptions{Nodes: d.nodes, Env: d.env}).Nodes
	} else {
		run.nodes = []*harness.Server{harness.ServerFor(t, d.env)}
	}
	client := build(t, "platform/cmd/platform")
	run.greeter = harness.ServiceFor(t, harness.ServiceOptions{Name: "greeter", Command: []string{"sh", "-c", `exec "$0" sample --listen "$HOST:$PORT"`, client}})
	if d.orders {
		run.orders = harness.ServiceFor(t, harness.ServiceOptions{Name: "orders", Command: []string{ordersProgram(t)}})
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if !d.registers {
		require.NoError(t, run.nodes[0].Register(ctx, run.greeter.URI(), false))
	}
	run.links(client)
	if d.kafka {
		run.broker = startKafka(t)
		run.linkKafkaTools()
	}
	for _, s := range steps {
		run.step(ctx, s)
	}
}

func build(t *testing.T, pkg string) string {
	bin, err := harness.Build(pkg)
	require.NoError(t, err)
	return bin
}

// ordersProgram builds the Go program of docs/services.md, with its address read from the
// environment.
func ordersProgram(t *testing.T) string {
	text, err := os.ReadFile(root + "docs/services.md")
	require.NoError(t, err)
	program := regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindStringSubmatch(string(text))
	require.NotNil(t, program)
	require.Contains(t, program[1], `":9081"`)
	dir := t.TempDir()
	source := strings.Replace(program[1], `":9081"`, `os.Getenv("HOST")+":"+os.Getenv("PORT")`, 1)
	source = strings.Replace(source, `"log"`, "\"log\"\n\t\"os\"", 1)
	require.NoError(t, os.WriteFile(dir+"/main.go", []byte(source), 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", dir+"/orders", dir+"/main.go").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir + "/orders"
}

// runner executes commands in a directory of its own.
type runner struct {
	*testing.T
	nodes           []*harness.Server
	greeter, orders *harness.Service
	broker          string // its address, "" without one
	dir             string
	ids             map[string]string // those of the document and their counterparts
}

// links makes the program available in PATH and as bin/platform, and the data of the node as
// platform-data, where a server that is started by hand has it.
func (r *runner) links(program string) {
	r.dir = r.TempDir()
	require.NoError(r, os.Mkdir(r.dir+"/bin", 0o700))
	require.NoError(r, os.Symlink(program, r.dir+"/bin/platform"))
	require.NoError(r, os.Symlink(r.nodes[0].Data(), r.dir+"/platform-data"))
}

func (r *runner) step(ctx context.Context, s step) {
	if s.await {
		require.NotEmpty(r, s.output, "%s is repeated until it prints its output, of which there is none", s.command)
		var stdout, stderr string
		require.Eventually(r, func() bool {
			var err error
			stdout, stderr, err = r.execute(ctx, s)
			return err == nil && regexp.MustCompile(expression(s.output)).MatchString(normal(stdout))
		}, timeout, 100*time.Millisecond, "%s\n%s", s.command, lastOutput{&stdout, &stderr})
		return
	}
	stdout, stderr, err := r.execute(ctx, s)
	if s.fails() {
		require.Error(r, err, "%s\n%s", s.command, stdout)
	} else {
		require.NoError(r, err, "%s\n%s%s", s.command, stdout, stderr)
	}
	r.Logf("$ %s\n%s%s", s.command, stdout, stderr)
	if len(s.output) == 0 {
		return
	}
	r.learn(strings.Join(s.output, "\n"), stdout)
	require.Regexp(r, expression(s.output), normal(stdout), s.command)
}

// lastOutput formats what a repeated command printed last.
type lastOutput struct{ stdout, stderr *string }

func (o lastOutput) String() string { return *o.stdout + *o.stderr }

// execute runs a command once. It returns what the command printed; a command that fails shows its
// error.
func (r *runner) execute(ctx context.Context, s step) (stdout, stderr string, err error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", r.local(s.command))
	cmd.Dir = r.dir
	cmd.Env = []string{
		"PATH=" + r.dir + "/bin:" + os.Getenv("PATH"), "HOME=" + r.dir, "CI=true",
		"PLATFORM_ADMIN_URL=" + r.nodes[0].Admin(), "PLATFORM_INGRESS_URL=" + r.nodes[0].Client.Base(),
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if s.fails() && out.Len() == 0 {
		return strings.TrimRight(errs.String(), "\n"), "", err
	}
	return strings.TrimRight(out.String(), "\n"), errs.String(), err
}

var learnedID = regexp.MustCompile(`(inv_1|fg_)\w+`)

// learn pairs the ids of the document's output with those of the actual one, in order.
func (r *runner) learn(documented, actual string) {
	found := learnedID.FindAllString(actual, -1)
	for i, id := range learnedID.FindAllString(documented, -1) {
		if i < len(found) {
			r.ids[id] = found[i]
		}
	}
}

// local is a command with the ids and addresses of the test.
func (r *runner) local(command string) string {
	for documented, actual := range r.ids {
		command = strings.ReplaceAll(command, documented, actual)
	}
	replace := []string{"localhost:9080", host(r, r.greeter.URI())}
	for i, n := range r.nodes {
		replace = append(replace, fmt.Sprintf("localhost:%d", 8080+i), host(r, n.Client.Base()), fmt.Sprintf("localhost:%d", 9070+i), host(r, n.Admin()))
	}
	if r.broker != "" {
		replace = append(replace, "localhost:9092", r.broker)
	}
	if r.orders != nil {
		replace = append(replace, "localhost:9081", host(r, r.orders.URI()))
	}
	return strings.NewReplacer(append(replace, "curl ", "curl -sS --fail-with-body ")...).Replace(command)
}

func host(t require.TestingT, address string) string {
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Host
}

var variable = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`\b((inv|dp|vq)_1|sub_|fg_|plt_)\w+`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\b(\d+(ms|s|m|h)( |\b))+`), "DURATION"},
	{regexp.MustCompile(`\b(morning|afternoon|evening)\b`), "DAYTIME"},
	{regexp.MustCompile(`(?m) +`), " "},
	{regexp.MustCompile(`(?m) +$`), ""},
}

// normal is output without what differs from one execution to the next.
func normal(text string) string {
	for _, v := range variable {
		text = v.pattern.ReplaceAllString(text, v.text)
	}
	return text
}

// expression matches the output that a document shows.
func expression(lines []string) string {
	var b strings.Builder
	b.WriteString("^")
	for i, line := range lines {
		switch {
		case strings.TrimSpace(line) == "…":
			b.WriteString(`(?s:.*)`)
			continue
		case i > 0:
			b.WriteString("\n?")
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(normal(line)), "…", ".*"))
	}
	fmt.Fprint(&b, "$")
	return b.String()
}
