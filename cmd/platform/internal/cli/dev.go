package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/dev"
	"platform/deploy/sample"
)

const (
	serverProgram = "platform-server"
	// nodeDownTime is the delay before a killed node of several is restarted.
	nodeDownTime = 5 * time.Second
)

func (a *app) dev() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "dev",
		Aliases: []string{"up"},
		Short:   "Run a temporary server, or a cluster, until Ctrl-C",
		Long: `Runs one node in the foreground, or several as a cluster, with the data in a temporary
directory that is deleted at the end. With --sample it also runs the sample service, registers
it and makes the first call. In a cluster, a killed node is restarted after 5 s.`,
		Args:    cobra.NoArgs,
		Example: "  platform dev\n  platform dev --sample --ui\n  platform dev --nodes 3 --dir data\n  platform dev --use-random-ports --retain",
	}
	o := dev.Options{DownTime: nodeDownTime}
	withSample, withUI := false, false
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&o.Nodes, "nodes", 1, fmt.Sprintf("number of nodes, 1 to %d", dev.MostNodes))
	flags.BoolVar(&withSample, "sample", false, "run, register and call the sample service")
	flags.BoolVar(&withUI, "ui", false, "open the web UI in a browser")
	flags.BoolVar(&o.Once, "once", false, "with --sample: end after the first result")
	flags.StringVar(&o.Dir, "dir", "", "directory for data and logs, which is kept (default: a temporary one)")
	flags.BoolVar(&o.Retain, "retain", false, "keep the temporary directory")
	flags.BoolVarP(&o.RandomPorts, "use-random-ports", "r", false, "choose free ports")
	flags.IntVar(&o.Ports.Ingress, "ingress-port", 8080, "ingress port of the first node; other nodes use the ports after it")
	flags.IntVar(&o.Ports.Admin, "admin-port", 9070, "admin API port of the first node")
	flags.IntVar(&o.Ports.Node, "node-port", 5122, "port of the first node for other nodes")
	flags.IntVar(&o.SamplePort, "sample-port", 9080, "port of the sample service")
	flags.StringVar(&o.BindIP, "bind-ip", "127.0.0.1", "address to listen on; :: for all addresses")
	cmd.RunE = command.Run(func(ctx context.Context, _ []string) error {
		if o.Once && !withSample {
			return command.UsageError("--once needs --sample")
		}
		if wrong := o.Check(); wrong != "" {
			return command.UsageError(wrong)
		}
		if withUI {
			o.OpenUI = openBrowser
		}
		return a.runDev(ctx, o, withSample)
	})
	return cmd
}

func (a *app) runDev(ctx context.Context, o dev.Options, withSample bool) (err error) {
	if o.Server, err = findServer(); err != nil {
		return err
	}
	if withSample {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		o.Sample = []string{self, "sample", "--listen"}
	}
	o.Print, o.Say, o.Err, o.Self = a.Print, a.Say, a.Err, selfCommand(os.Args[0])
	err = dev.Run(ctx, o)
	if hinted, ok := errors.AsType[*dev.HintedError](err); ok {
		return command.WithHint(err, hinted.Hint)
	}
	return err
}

func (a *app) sample() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sample",
		Short: "Run the sample service until Ctrl-C",
		Long: `Runs a service endpoint with the service Greeter and the virtual object Counter, to try out
a server. Register it with "platform deployments register". Its source is in deploy/sample.`,
		Args:    cobra.NoArgs,
		Example: "  platform sample\n  platform sample --listen 0.0.0.0:9080",
	}
	listen := cmd.Flags().String("listen", "127.0.0.1:9080", "address that the server connects to")
	cmd.RunE = command.Run(func(ctx context.Context, _ []string) error {
		if err := sample.Serve(ctx, *listen); err != nil && ctx.Err() == nil {
			return fmt.Errorf("serve the sample on %s: %w", *listen, err)
		}
		return nil
	})
	return cmd
}

// selfCommand returns the command by which a shell in the same directory runs this program: its
// name if it is in PATH, otherwise the path that it was started by.
func selfCommand(arg0 string) string {
	name := filepath.Base(arg0)
	if _, err := exec.LookPath(name); err == nil {
		return name
	}
	return arg0
}

// findServer looks for the server in the directory of this program, then in PATH.
func findServer() (string, error) {
	if self, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		beside := filepath.Join(filepath.Dir(self), serverProgram)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return beside, nil
		}
	}
	program, err := exec.LookPath(serverProgram)
	if err != nil {
		return "", command.WithHint(
			errors.New(serverProgram+" is neither in the directory of this program nor in PATH"),
			"Build it with `make build`, or put it in the same directory.")
	}
	return program, nil
}
