// Command quickstart shows the server at work: it starts one node on a temporary
// data directory and the sample service, registers the service, calls it, and
// keeps both running until Ctrl-C. `make quickstart` builds and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"platform/deploy/process"
)

// signalGrace is how much later than a child this process may see a signal that
// both get.
const signalGrace = 500 * time.Millisecond

// options is what the command line says.
type options struct {
	server, service                               string // binaries
	ingressPort, adminPort, nodePort, servicePort int
	once                                          bool
	out                                           io.Writer
}

func main() {
	o := options{out: os.Stdout}
	flag.StringVar(&o.server, "server", "bin/platform-server", "server binary")
	flag.StringVar(&o.service, "service", "bin/greeter", "sample service binary")
	flag.IntVar(&o.ingressPort, "ingress-port", 8080, "port to call services on")
	flag.IntVar(&o.adminPort, "admin-port", 9070, "port of the admin API")
	flag.IntVar(&o.nodePort, "node-port", 5122, "port for other nodes")
	flag.IntVar(&o.servicePort, "service-port", 9080, "port of the sample service")
	flag.BoolVar(&o.once, "once", false, "end after the answer")
	flag.Parse()

	// A terminal that is closed (SIGHUP) must not leave data behind either.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, o); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run starts both processes, makes the first call and waits for ctx. Both
// processes have ended and the data is gone when it returns.
func run(ctx context.Context, o options) error {
	if err := o.checkPorts(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "platform-quickstart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	log := filepath.Join(dir, "server.log")
	server, err := process.Start("the server", log, o.serverEnv(), o.server,
		"--node-name", "quickstart", "--base-dir", filepath.Join(dir, "data"), "--bind-ip", "127.0.0.1")
	if err != nil {
		return err
	}
	defer server.Stop()
	service, err := process.Start("the sample service", "", nil, o.service, "-listen", address(o.servicePort))
	if err != nil {
		return err
	}
	defer service.Stop()

	if err := o.show(ctx, dir, server, service); err != nil || o.once {
		return err
	}
	o.showNext()
	select {
	case <-ctx.Done():
		fmt.Fprintln(o.out, "\nStopping.")
		return nil
	case <-server.Ended():
		return o.ended(ctx, server)
	case <-service.Ended():
		return o.ended(ctx, service)
	}
}

// ended tells Ctrl-C from a failure: a terminal sends it to all processes at once,
// and a child may be gone before the signal is seen here.
func (o options) ended(ctx context.Context, p *process.Process) error {
	select {
	case <-ctx.Done():
		fmt.Fprintln(o.out, "\nStopping.")
		return nil
	case <-time.After(signalGrace):
		return p.Failure()
	}
}

// show walks through start, registration and first call.
func (o options) show(ctx context.Context, dir string, server, service *process.Process) error {
	if err := server.Await(ctx, o.admin("/health")); err != nil {
		return err
	}
	o.say("Server", "%s, data in %s (removed at the end)", o.server, dir)
	o.say("", "ingress %s, admin API %s", o.ingress(""), o.admin(""))

	if err := service.Await(ctx, "tcp:"+address(o.servicePort)); err != nil {
		return err
	}
	o.say("Service", "%s on http://%s", o.service, address(o.servicePort))

	body := fmt.Sprintf(`{"uri": "http://%s"}`, address(o.servicePort))
	o.say("Register", "POST %s %s", o.admin("/deployments"), body)
	services, err := register(ctx, o.admin("/deployments"), body)
	if err != nil {
		return err
	}
	for _, s := range services {
		o.say("", "%s", s)
	}

	o.say("Call", `POST %s "World"`, o.ingress("/Greeter/greet"))
	answer, err := call(ctx, o.ingress("/Greeter/greet"), `"World"`)
	if err != nil {
		return err
	}
	o.say("Answer", "%s", answer)
	return nil
}

// showNext tells what to try while everything is running.
func (o options) showNext() {
	fmt.Fprintf(o.out, `
Everything is up. In another terminal:

  # call a handler
  curl %[1]s --json '"Ada"'
  # an object keeps state per key
  curl %[2]s --json 5
  # one-way, and only in ten seconds
  curl '%[3]s?delay=10s' --json '"Later"'
  # what is registered, and what ran
  bin/platform services list
  bin/platform invocations list

The sample service is deploy/quickstart/greeter. Ctrl-C stops both processes.
`, o.ingress("/Greeter/greet"), o.ingress("/Counter/ada/add"), o.ingress("/Greeter/greet/send"))
}

// say prints one line under a heading.
func (o options) say(heading, format string, args ...any) {
	fmt.Fprintf(o.out, "%-9s %s\n", heading, fmt.Sprintf(format, args...))
}

func (o options) ingress(path string) string { return "http://" + address(o.ingressPort) + path }
func (o options) admin(path string) string   { return "http://" + address(o.adminPort) + path }

func (o options) serverEnv() []string {
	return []string{
		fmt.Sprintf("PLATFORM_BIND_PORT=%d", o.nodePort),
		fmt.Sprintf("PLATFORM_INGRESS__BIND_PORT=%d", o.ingressPort),
		fmt.Sprintf("PLATFORM_ADMIN__BIND_PORT=%d", o.adminPort),
	}
}
