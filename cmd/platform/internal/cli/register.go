package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *app) deploymentsRegister() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "register <URL or ARN>",
		Aliases: []string{"discover", "add"},
		Short:   "Register the services of an endpoint",
		Long: `Discovers the services of the endpoint, shows the changes, and registers them after a
confirmation. An address that is already registered is not changed: --dry-run compares its current
services with the registered ones, --force replaces them. Only services, handlers, options and
schemas are compared, not code.`,
		Args: cobra.ExactArgs(1),
		Example: `  platform deployments register http://localhost:9080
  platform deployments register localhost:9080 --force --yes
  platform deployments register https://my-endpoint.example --extra-header authorization="Bearer abc"`,
	}
	var r registration
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&r.Force, "force", false, "replace the deployment that has this address")
	flags.BoolVar(&r.Breaking, "breaking", false, "allow services to change their type")
	flags.BoolVar(&r.UseHTTP11, "use-http1.1", false, "use HTTP/1.1 for the endpoint")
	flags.StringArrayVar(&r.headers, "extra-header", nil, "header `name=value` of every request to the endpoint (repeatable)")
	flags.StringArrayVar(&r.labels, "metadata", nil, "label `name=value` kept with the deployment (repeatable)")
	flags.StringVar(&r.AssumeRoleARN, "assume-role-arn", "", "role to assume before invoking a function")
	flags.BoolVar(&r.planOnly, "dry-run", false, "only show the changes, also for a registered address")
	r.asJSON = command.JSONFlag(flags)
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error { return a.register(ctx, args[0], r) })
	return cmd
}

// registration is the request of the command line.
type registration struct {
	client.Registration
	headers, labels []string
	planOnly        bool
	asJSON          *bool
}

func (a *app) register(ctx context.Context, address string, r registration) error {
	if err := r.complete(address); err != nil {
		return err
	}
	r.DryRun = true
	if r.planOnly {
		r.Force = true // otherwise a registered address is not compared
	}
	planned, response, err := a.Client.Register(ctx, r.Registration)
	if err != nil {
		return err
	}
	known := response.Status == http.StatusOK
	if known && !r.Force {
		return a.alreadyRegistered(address, &r, planned, response)
	}
	if err := a.showPlan(ctx, planned, known); err != nil {
		return err
	}
	if !known {
		if err := a.hintAliases(ctx, r.URI); err != nil {
			return err
		}
	}
	if r.planOnly {
		if *r.asJSON {
			return a.PrintRaw(response.Body)
		}
		to := r.repeat(address, "")
		if known {
			to = r.repeat(address, "--force")
		}
		a.Say("Nothing was changed. To apply: %s", to)
		return nil
	}
	if err := a.Confirm("Apply these changes?"); err != nil {
		return err
	}
	r.DryRun = false
	done, response, err := a.Client.Register(ctx, r.Registration)
	if err != nil {
		return err
	}
	if *r.asJSON {
		return a.PrintRaw(response.Body)
	}
	a.Print.Printf("%s Registered deployment %s\n\n", a.Print.Green("[OK]:"), done.ID)
	rows := make([][]string, len(done.Services))
	for i, s := range sorted(done.Services) {
		rows[i] = []string{term.Clean(s.Name), s.Type, strconv.Itoa(s.Revision), strings.Join(handlerNames(s.Handlers), ", ")}
	}
	a.Print.Table("", []string{"SERVICE", "TYPE", "REVISION", "HANDLERS"}, rows)
	a.notices(done.Info)
	if !announcedAlike(planned.Services, done.Services) {
		a.notices([]client.Notice{{Message: "the endpoint announced other services or handlers than when the changes above were shown; do versions of it run side by side at this address?"}})
	}
	return nil
}

// announcedAlike reports whether two discoveries of an endpoint found the same services and handlers.
func announcedAlike(planned, done []client.Service) bool {
	return slices.EqualFunc(sorted(planned), sorted(done), func(a, b client.Service) bool {
		return a.Name == b.Name && a.Type == b.Type && slices.Equal(handlerNames(a.Handlers), handlerNames(b.Handlers))
	})
}

// complete sets the request's fields from address and flags.
func (r *registration) complete(address string) (err error) {
	if strings.HasPrefix(address, "arn:") {
		r.ARN = address
	} else if r.URI, err = endpointURL(address); err != nil {
		return err
	}
	if r.AdditionalHeaders, err = parseHeaders("--extra-header", r.headers); err != nil {
		return err
	}
	r.Metadata, err = parsePairs("--metadata", r.labels)
	return err
}

// endpointURL completes abbreviated addresses: 9080, :9080, localhost:9080.
func endpointURL(address string) (string, error) {
	full, ok := command.CompleteAddress(address)
	if !ok {
		return "", command.UsageError(fmt.Sprintf("%q is not an address such as http://localhost:9080, nor an ARN", address))
	}
	return full, nil
}

// parsePairs reads repeated name=value flags; nil when there are none.
func parsePairs(flag string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	table := make(map[string]string, len(list))
	for _, pair := range list {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, command.UsageError(fmt.Sprintf("%s expects name=value, got %q", flag, pair))
		}
		if _, twice := table[name]; twice {
			return nil, command.UsageError(fmt.Sprintf("%s is given twice with the name %q", flag, name))
		}
		table[name] = value
	}
	return table, nil
}

// parseHeaders is parsePairs for headers, whose names do not depend on case.
func parseHeaders(flag string, list []string) (map[string]string, error) {
	table, err := parsePairs(flag, list)
	names := map[string]bool{}
	for name := range table {
		name = http.CanonicalHeaderKey(name)
		if names[name] {
			return nil, command.UsageError(fmt.Sprintf("%s is given twice with the name %q", flag, name))
		}
		names[name] = true
	}
	return table, err
}

// repeat returns the command that registers an address with a flag, or describes it if there are other
// flags: they would be lost in the command, or their secrets shown.
func (r *registration) repeat(address, flag string) string {
	if len(r.headers) == 0 && len(r.labels) == 0 && r.AssumeRoleARN == "" && !r.UseHTTP11 && !r.Breaking {
		return strings.TrimSpace("platform deployments register " + address + " " + flag)
	}
	to := "the same command"
	if flag != "" {
		to += " with " + flag
	}
	if r.planOnly {
		to += " without --dry-run"
	}
	return to
}

func (a *app) alreadyRegistered(address string, r *registration, d client.Deployment, response *client.Response) error {
	if *r.asJSON {
		return a.PrintRaw(response.Body)
	}
	a.Print.Printf("The deployment already exists with id %s; nothing was changed.\n", d.ID)
	a.notices(d.Info)
	a.Print.Printf("To see what would change: %s\n", r.repeat(address, "--dry-run"))
	a.Print.Printf("To replace it:            %s\n", r.repeat(address, "--force"))
	return nil
}

func sorted(services []client.Service) []client.Service {
	slices.SortFunc(services, func(a, b client.Service) int { return cmp.Compare(a.Name, b.Name) })
	return services
}
