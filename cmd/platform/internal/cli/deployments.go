package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *app) deployments() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "deployments",
		Aliases: []string{"deployment", "dp"},
		Short:   "Register, show and update service endpoints",
	}, a.deploymentsRegister(), a.deploymentsList(), a.deploymentsDescribe(), a.deploymentsUpdate(), a.deploymentsRemove(), a.deploymentsPrune())
}

func (a *app) deploymentsList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List deployments",
		Args:    cobra.NoArgs,
		Example: "  platform deployments list\n  platform deployments list --extra",
	}
	extra := cmd.Flags().Bool("extra", false, "also show which deployments are still needed")
	request := func(ctx context.Context, _ []string) ([]client.Deployment, *client.Response, error) {
		return a.Client.Deployments(ctx)
	}
	return command.ViewResponse(a.App, cmd, request, func(ctx context.Context, deployments []client.Deployment) error {
		if len(deployments) == 0 {
			a.Say("No deployments. Register one: platform deployments register <address>")
			return nil
		}
		return a.deploymentTable(ctx, deployments, *extra)
	})
}

func (a *app) deploymentTable(ctx context.Context, deployments []client.Deployment, extra bool) error {
	header := []string{"DEPLOYMENT", "TYPE", "ID", "CREATED-AT", "SERVICES"}
	if extra {
		header = slices.Insert(header, 3, "STATUS", "ACTIVE-INVOCATIONS")
	}
	slices.SortFunc(deployments, func(a, b client.Deployment) int { return b.CreatedAt.Compare(a.CreatedAt) })
	rows := make([][]string, len(deployments))
	for i, d := range deployments {
		rows[i] = []string{term.Clean(d.Address()), transport(d), d.ID, a.Print.Time(d.CreatedAt), serviceLines(d.Services)}
		if extra {
			use, err := a.usage(ctx, d.ID)
			if err != nil {
				return err
			}
			rows[i] = slices.Insert(rows[i], 3, use.status(a.Print), use.count())
		}
	}
	a.Print.Table("", header, rows)
	return nil
}

func serviceLines(services []client.Service) string {
	lines := make([]string, len(services))
	for i, s := range services {
		lines[i] = fmt.Sprintf("- %s [%d]", term.Clean(s.Name), s.Revision)
	}
	return strings.Join(lines, "\n")
}

// usage is what still needs a deployment.
type usage struct {
	latest []string // services whose latest revision it serves
	active int      // invocations that are not completed and are pinned to it, or are not pinned and go to it
	more   bool     // there are more than active
}

// usage returns what needs a deployment; it counts up to a thousand invocations.
func (a *app) usage(ctx context.Context, id string) (usage, error) {
	services, _, err := a.Client.Services(ctx)
	if err != nil {
		return usage{}, err
	}
	pinned, more, err := a.collect(ctx, client.Query{Filter: client.Filter{Deployment: []string{id}, Status: openStatuses}, Limit: 1000}, nil)
	if err != nil {
		return usage{}, err
	}
	u := usage{active: len(pinned), more: more}
	q := client.Query{Filter: client.Filter{Status: openStatuses}, Limit: 1000}
	for _, s := range services {
		if s.DeploymentID == id {
			u.latest = append(u.latest, s.Name)
		}
	}
	if len(u.latest) == 0 {
		return u, nil
	}
	q.Service = u.latest
	all, more, err := a.collect(ctx, q, nil)
	for _, f := range all {
		if f.PinnedDeploymentID == "" { // it runs, or will, on the latest deployment
			u.active++
		}
	}
	u.more = u.more || more
	return u, err
}

func (u usage) status(p *term.Printer) string {
	switch {
	case len(u.latest) > 0:
		return p.Green("Active")
	case u.active > 0:
		return p.Yellow("Draining")
	}
	return p.Dim("Drained")
}

func (u usage) count() string {
	count := strconv.Itoa(u.active)
	if u.more {
		count += "+"
	}
	return count
}

func (a *app) deploymentsDescribe() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "describe <id or address>",
		Aliases: []string{"get"},
		Short:   "Show one deployment and its services",
		Args:    cobra.ExactArgs(1),
		Example: "  platform deployments describe dp_1…",
	}
	extra := cmd.Flags().Bool("extra", false, "also show whether the deployment is still needed")
	request := func(ctx context.Context, args []string) (client.Deployment, *client.Response, error) {
		id, err := a.deploymentID(ctx, args[0])
		if err != nil {
			return client.Deployment{}, nil, err
		}
		deployment, response, err := a.Client.Deployment(ctx, id)
		return deployment, response, deploymentNotFound(err)
	}
	return command.ViewResponse(a.App, cmd, request, func(ctx context.Context, deployment client.Deployment) error {
		return a.describeDeployment(ctx, deployment, *extra)
	})
}

func (a *app) describeDeployment(ctx context.Context, d client.Deployment, extra bool) error {
	services, _, err := a.Client.Services(ctx)
	if err != nil {
		return err
	}
	fields := append([]term.Field{{Name: "ID", Value: d.ID}}, transportFields(a.Print, d)...)
	fields = append(fields, term.Field{Name: "Metadata", Value: command.Pairs(d.Metadata)})
	if extra {
		use, err := a.usage(ctx, d.ID)
		if err != nil {
			return err
		}
		fields = append(fields, term.Field{Name: "Status", Value: use.status(a.Print)}, term.Field{Name: "Active invocations", Value: use.count()})
	}
	a.Print.Heading("Deployment Information")
	a.Print.Fields("  ", fields...)
	a.notices(d.Info)
	slices.SortFunc(d.Services, func(a, b client.Service) int { return cmp.Compare(a.Name, b.Name) })
	var latest []string
	for _, s := range d.Services {
		mark := ""
		if slices.ContainsFunc(services, func(l client.Service) bool { return l.Name == s.Name && l.Revision == s.Revision }) {
			latest = append(latest, s.Name)
			mark = " " + a.Print.Green("[Latest]")
		}
		a.Print.Println()
		a.Print.Heading(term.Clean(s.Name))
		a.Print.Fields("  ", term.Field{Name: "Type", Value: s.Type}, term.Field{Name: "Revision", Value: strconv.Itoa(s.Revision) + mark})
		a.handlerTable("  ", s.Handlers)
	}
	return a.deploymentFailures(ctx, latest)
}

// deploymentFailures shows why attempts of services fail now. Without failures, it prints nothing.
func (a *app) deploymentFailures(ctx context.Context, services []string) error {
	if len(services) == 0 {
		return nil
	}
	const most = 5
	page, _, err := a.Client.Failures(ctx, client.Filter{Service: services, Status: []string{"backing-off", "paused", "running"}}, most)
	if client.IsNotFound(err) { // an older server
		return nil
	}
	if err != nil || len(page.Groups) == 0 {
		return err
	}
	a.Print.Println()
	a.Print.Heading("Failing now")
	a.failureTable(client.FailurePage{Groups: page.Groups})
	return nil
}

func (a *app) deploymentsRemove() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "remove <id or address>",
		Aliases: []string{"rm"},
		Short:   "Remove a deployment that is no longer needed",
		Args:    cobra.ExactArgs(1),
		Example: "  platform deployments remove dp_1…\n  platform deployments remove dp_1… --force",
	}
	force := cmd.Flags().Bool("force", false, "remove it even while invocations need it")
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error { return a.removeDeployment(ctx, args[0], *force) })
	return cmd
}

func (a *app) removeDeployment(ctx context.Context, name string, force bool) error {
	id, err := a.deploymentID(ctx, name)
	if err != nil {
		return err
	}
	deployment, _, err := a.Client.Deployment(ctx, id)
	if err != nil {
		return deploymentNotFound(err)
	}
	use, err := a.usage(ctx, id)
	if err != nil {
		return err
	}
	if !force && use.needed() {
		return command.WithHint(fmt.Errorf("deployment %s is still needed: %s", id, use.reason()), use.remedy(id))
	}
	if force && use.needed() {
		a.Hint.Box(append([]string{"This deployment is still needed: " + use.reason() + "."}, use.loss()...)...)
	}
	if err := a.Confirm(fmt.Sprintf("Remove deployment %s (%s)?", id, term.Clean(deployment.Address()))); err != nil {
		return err
	}
	// The server checks again: an invocation may have started meanwhile.
	if err := a.Client.RemoveDeployment(ctx, id, force); err != nil {
		return err
	}
	a.Print.Printf("%s Removed deployment %s\n", a.Print.Green("[OK]:"), id)
	return nil
}

func (u usage) reason() string {
	var reasons []string
	if len(u.latest) > 0 {
		reasons = append(reasons, "it serves the latest revision of "+term.Clean(enumerate(u.latest)))
	}
	if u.active > 0 {
		noun := " invocations need it"
		if u.active == 1 && !u.more {
			noun = " invocation needs it"
		}
		reasons = append(reasons, u.count()+noun)
	}
	return strings.Join(reasons, " and ")
}

func (u usage) needed() bool { return len(u.latest) > 0 || u.active > 0 }

// remedy returns what is required before the deployment can be removed.
func (u usage) remedy(id string) string {
	var steps []string
	if len(u.latest) > 0 {
		steps = append(steps, "Register a deployment that serves "+term.Clean(enumerate(u.latest))+".")
	}
	if u.active > 0 {
		steps = append(steps, "Wait until its invocations have ended, or resume them on the latest deployment: `platform invocations list --active --deployment "+id+"` lists those that have started on it.")
	}
	return strings.Join(append(steps, "--force removes it nevertheless. "+strings.Join(u.loss(), " ")), "\n")
}

// loss returns what follows from removing the deployment now.
func (u usage) loss() (follows []string) {
	if len(u.latest) > 0 {
		follows = append(follows, "New invocations then go to the previous revision of each service, or fail if no other deployment has it.")
	}
	if u.active > 0 {
		follows = append(follows, "Its invocations fail with RT0011 until they are resumed on another deployment or killed.")
	}
	return follows
}

// enumerate joins the first names for a sentence and counts the others.
func enumerate(names []string) string {
	const shown = 5
	if more := len(names) - shown; more > 0 {
		return strings.Join(names[:shown], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	return strings.Join(names, "")
}
