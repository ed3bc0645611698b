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
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// timeout bounds what is executed of one document.
const timeout = 3 * time.Minute

// document is a file with blocks to execute, and what they need.
type document struct {
	path   string
	env    map[string]string // of the server
	orders bool              // the sample program of docs/services.md runs at its address
}

var documents = []document{
	{path: "README.md"},
	{path: "docs/invoke.md"},
	{path: "docs/services.md", orders: true},
	{path: "docs/operate.md"},
	{path: "docs/sql.md"},
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

var block = regexp.MustCompile("(?ms)^```console test\n(.*?)^```")

// step is a command and the output that the document shows.
type step struct {
	command string
	output  []string
}

func stepsOf(t *testing.T, path string) (steps []step) {
	text, err := os.ReadFile(root + path)
	require.NoError(t, err)
	for _, found := range block.FindAllStringSubmatch(string(text), -1) {
		for _, line := range strings.Split(strings.TrimRight(found[1], "\n"), "\n") {
			switch command, isCommand := strings.CutPrefix(line, "$ "); {
			case isCommand:
				steps = append(steps, step{command: command})
			case len(steps) == 0:
				t.Fatalf("%s: a block begins with %q instead of a command", path, line)
			case strings.HasPrefix(line, "  ") && len(steps[len(steps)-1].output) == 0 && strings.Count(steps[len(steps)-1].command, `"`)%2 == 1:
				steps[len(steps)-1].command += "\n" + line // a quoted argument continues
			case line != "" || len(steps[len(steps)-1].output) > 0:
				steps[len(steps)-1].output = append(steps[len(steps)-1].output, line)
			}
		}
	}
	return steps
}

// execute runs the commands of the document.
func (d document) execute(t *testing.T) {
	steps := stepsOf(t, d.path)
	require.NotEmpty(t, steps)
	run := runner{T: t, server: harness.ServerFor(t, d.env), ids: map[string]string{}}
	client := build(t, "platform/cmd/platform")
	run.greeter = harness.ServiceFor(t, harness.ServiceOptions{Name: "greeter", Command: []string{"sh", "-c", `exec "$0" sample --listen "$HOST:$PORT"`, client}})
	if d.orders {
		run.orders = harness.ServiceFor(t, harness.ServiceOptions{Name: "orders", Command: []string{ordersProgram(t)}})
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	require.NoError(t, run.server.Register(ctx, run.greeter.URI(), false))
	run.links(client)
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
	server          *harness.Server
	greeter, orders *harness.Service
	dir             string
	ids             map[string]string // those of the document and their counterparts
}

// links makes the program available in PATH and as bin/platform.
func (r *runner) links(program string) {
	r.dir = r.TempDir()
	require.NoError(r, os.Mkdir(r.dir+"/bin", 0o700))
	require.NoError(r, os.Symlink(program, r.dir+"/bin/platform"))
}

func (r *runner) step(ctx context.Context, s step) {
	cmd := exec.CommandContext(ctx, "sh", "-c", r.local(s.command))
	cmd.Dir = r.dir
	cmd.Env = []string{
		"PATH=" + r.dir + "/bin:" + os.Getenv("PATH"), "HOME=" + r.dir, "CI=true",
		"PLATFORM_ADMIN_URL=" + r.server.Admin(), "PLATFORM_INGRESS_URL=" + r.server.Client.Base(),
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(r, cmd.Run(), "%s\n%s%s", s.command, &stdout, &stderr)
	if len(s.output) == 0 {
		return
	}
	got := strings.TrimRight(stdout.String(), "\n")
	r.learn(strings.Join(s.output, "\n"), got)
	require.Regexp(r, expression(s.output), normal(got), s.command)
}

var invocationID = regexp.MustCompile(`inv_1\w+`)

// learn pairs the ids of the document's output with those of the actual one, in order.
func (r *runner) learn(documented, actual string) {
	found := invocationID.FindAllString(actual, -1)
	for i, id := range invocationID.FindAllString(documented, -1) {
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
	replace := []string{"localhost:8080", host(r, r.server.Client.Base()), "localhost:9070", host(r, r.server.Admin()), "localhost:9080", host(r, r.greeter.URI())}
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
	{regexp.MustCompile(`\b(inv|dp|vq)_1\w+`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+Z)?`), "TIME"},
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
		b.WriteString(regexp.QuoteMeta(normal(line)))
	}
	fmt.Fprint(&b, "$")
	return b.String()
}
