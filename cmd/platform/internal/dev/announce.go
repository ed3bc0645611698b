package dev

import (
	"fmt"
	"strconv"
	"time"

	"platform/cmd/platform/internal/term"
)

// announce prints the addresses of the nodes and what to try.
func (r *running) announce(took time.Duration) {
	if len(r.nodes) == 1 {
		r.announceServer(r.nodes[0])
	} else {
		r.announceCluster(took)
	}
}

func (r *running) announceServer(n *node) {
	heading, data := "Temporary server", r.o.Dir+" (deleted at the end)"
	if r.o.Retain {
		heading, data = "Server", r.o.Dir
	}
	r.o.Print.Heading(heading)
	r.o.Print.Fields("  ",
		term.Field{Name: "Ingress", Value: n.ingress("/")},
		term.Field{Name: "Admin API", Value: n.admin("/")},
		term.Field{Name: "Web UI", Value: r.webUI(n)},
		term.Field{Name: "Data", Value: data},
	)
	r.o.Print.Printf("\nNext, in another terminal:\n  %s%s deployments register localhost:9080\n\nCtrl-C stops the server.\n", r.export(n), r.o.Self)
}

func (r *running) announceCluster(took time.Duration) {
	first, last := r.nodes[0], r.nodes[len(r.nodes)-1]
	r.o.Print.Printf("A cluster of %d nodes is up after %s. Data and logs are in %s.\n\n", len(r.nodes), took.Round(time.Millisecond), r.o.Dir)
	r.showNodes()
	r.o.Print.Printf(`
In another terminal:

  # the state of the cluster, from any node; in a browser: %[6]s
  PLATFORM_ADMIN_URL=%[1]s %[7]s cluster status --watch
  # a service: registered on one node, called on another
  %[7]s sample --listen 127.0.0.1:9080
  curl %[2]s --json '{"uri": "http://127.0.0.1:9080"}'
  curl %[3]s --json '"Ada"'
  # kill a node; it is started again after %[4]s
  kill -9 %[5]d

Ctrl-C stops the nodes.
`, last.admin(""), first.admin("/deployments"), last.ingress("/Greeter/greet"), r.o.DownTime, r.nodes[len(r.nodes)/2].current().PID(), r.webUI(first), r.o.Self)
}

// suggestCalls prints what to try while the sample is running.
func (r *running) suggestCalls(n *node) {
	if len(r.nodes) > 1 {
		r.o.Print.Println()
		r.showNodes()
	}
	r.o.Print.Printf(`
All processes are running. In another terminal:

  # call a handler
  curl %[1]s --json '"Ada"'
  # an object keeps state per key
  curl %[2]s --json 5
  # one-way, and only in ten seconds
  curl '%[3]s?delay=10s' --json '"Later"'
  # what is registered, and what ran
  %[4]s%[6]s services list
  %[6]s invocations list
  # the same in a browser
  %[5]s

The source of the sample is in deploy/sample. Ctrl-C stops everything.
`, n.ingress("/Greeter/greet"), n.ingress("/Counter/ada/add"), n.ingress("/Greeter/greet/send"), r.export(n), r.webUI(n), r.o.Self)
}

func (r *running) showNodes() {
	r.o.Print.Printf("%-6s%-10s%-26s%-26s\n", "NODE", "PID", "INGRESS", "ADMIN-API")
	for _, n := range r.nodes {
		r.o.Print.Printf("%-6s%-10s%-26s%-26s\n", n.name, strconv.Itoa(n.current().PID()), n.ingress(""), n.admin(""))
	}
}

// webUI is the address of the web UI of a node, with the token, if it requires one. Browsers do
// not send what follows # to servers.
func (r *running) webUI(n *node) string {
	if r.token == "" {
		return n.admin("/ui/")
	}
	return n.admin("/ui/#token=" + r.token)
}

// export is the shell command that makes the command-line client use a node, "" if it is the
// client's default.
func (r *running) export(n *node) string {
	if r.token != "" {
		return fmt.Sprintf("export PLATFORM_ADMIN_URL=%s PLATFORM_INGRESS_URL=%s PLATFORM_TOKEN=%s\n  ", n.admin("/"), n.ingress("/"), r.token)
	}
	if n.ports.Admin == 9070 && n.ports.Ingress == 8080 {
		return ""
	}
	return fmt.Sprintf("export PLATFORM_ADMIN_URL=%s PLATFORM_INGRESS_URL=%s\n  ", n.admin("/"), n.ingress("/"))
}
