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

func (a *app) services() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "services",
		Aliases: []string{"service", "svc"},
		Short:   "Show registered services and change their options",
	}, a.servicesList(), a.servicesDescribe(), a.servicesStatus(), a.servicesPatch(), a.servicesConfig())
}

func (a *app) servicesList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List services",
		Args:    cobra.NoArgs,
		Example: "  platform services list\n  platform services list --json | jq '.services[].name'",
	}
	publicOnly := cmd.Flags().Bool("public-only", false, "leave out private services")
	extra := cmd.Flags().Bool("extra", false, "also show the handlers")
	request := func(ctx context.Context, _ []string) ([]client.Service, *client.Response, error) {
		return a.Client.Services(ctx)
	}
	return command.ViewResponse(a.App, cmd, request, func(ctx context.Context, services []client.Service) error {
		services = slices.DeleteFunc(services, func(s client.Service) bool { return *publicOnly && !s.Public })
		if len(services) == 0 {
			a.Say("No services. Register a deployment: platform deployments register <address>")
			return nil
		}
		return a.serviceTable(ctx, services, *extra)
	})
}

func (a *app) serviceTable(ctx context.Context, services []client.Service, extra bool) error {
	deployments, _, err := a.Client.Deployments(ctx)
	if err = permitted(err); err != nil {
		return err
	}
	kinds := map[string]string{}
	for _, d := range deployments {
		kinds[d.ID] = transport(d)
	}
	slices.SortFunc(services, func(a, b client.Service) int { return cmp.Compare(a.Name, b.Name) })
	header := []string{"NAME", "REVISION", "TYPE", "PUBLIC", "DEPLOYMENT-TYPE", "DEPLOYMENT-ID"}
	if extra {
		header = append(header, "HANDLERS")
	}
	rows := make([][]string, len(services))
	for i, s := range services {
		rows[i] = []string{
			term.Clean(s.Name), strconv.Itoa(s.Revision), s.Type, command.YesNo(s.Public), command.OrDash(kinds[s.DeploymentID]), s.DeploymentID,
		}
		if extra {
			rows[i] = append(rows[i], strings.Join(handlerNames(s.Handlers), "\n"))
		}
	}
	a.Print.Table("", header, rows)
	return nil
}

func (a *app) servicesDescribe() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "describe <name>",
		Aliases: []string{"get"},
		Short:   "Show one service and its handlers",
		Args:    cobra.ExactArgs(1),
		Example: "  platform services describe Greeter",
	}
	return command.ViewResponse(a.App, cmd, a.requestService, func(ctx context.Context, service client.Service) error {
		deployment, _, err := a.Client.Deployment(ctx, service.DeploymentID)
		if err = permitted(err); err != nil {
			return err
		}
		a.describeService(service, deployment)
		return nil
	})
}

// permitted returns err, or nil if it is a refusal: tokens that are limited to services or scopes
// may read these services, but not the deployments.
func permitted(err error) error {
	if client.HasStatus(err, http.StatusForbidden) {
		return nil
	}
	return err
}

// servicesHint follows the error that a service is not registered.
const servicesHint = "`platform services list` shows the registered services."

// requestService requests the service that the first argument names.
func (a *app) requestService(ctx context.Context, args []string) (client.Service, *client.Response, error) {
	service, response, err := a.Client.Service(ctx, args[0])
	return service, response, a.serviceNotFound(ctx, err, args[0], servicesHint)
}

func (a *app) describeService(s client.Service, d client.Deployment) {
	a.Print.Heading("Service Information")
	fields := []term.Field{
		{Name: "Name", Value: term.Clean(s.Name)},
		{Name: "Type", Value: s.Type},
		{Name: "Revision", Value: strconv.Itoa(s.Revision)},
		{Name: "Public", Value: command.YesNo(s.Public)},
		{Name: "Documentation", Value: term.Clean(s.Documentation)},
		{Name: "Deployment", Value: s.DeploymentID},
	}
	fields = append(fields, transportFields(a.Print, d)...)
	a.Print.Fields("  ", append(fields, term.Field{Name: "Metadata", Value: command.Pairs(s.Metadata)})...)
	a.notices(s.Info)

	a.Print.Println()
	a.Print.Heading("Behaviour")
	a.Print.Fields("  ", optionFields(s)[1:]...) // public is above
	a.Print.Println()
	a.Print.Heading("Handlers")
	a.handlerTable("  ", s.Handlers)

	var overridden []term.Field
	for _, h := range s.Handlers {
		if text := overrides(h); text != "" {
			overridden = append(overridden, term.Field{Name: term.Clean(h.Name), Value: text})
		}
	}
	if len(overridden) > 0 {
		a.Print.Println()
		a.Print.Heading("Overridden by handlers")
		a.Print.Fields("  ", overridden...)
	}
}

// overrides describes the options in which a handler differs from its service.
func overrides(h client.Handler) string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+term.Clean(value))
		}
	}
	add("idempotency retention", h.IdempotencyRetention)
	add("workflow retention", h.WorkflowCompletionRetention)
	add("journal retention", h.JournalRetention)
	add("inactivity timeout", h.InactivityTimeout)
	add("abort timeout", h.AbortTimeout)
	if h.EnableLazyState != nil {
		add("lazy state", command.YesNo(*h.EnableLazyState))
	}
	if p := h.RetryPolicy; p != nil {
		add("first retry after", p.InitialInterval)
		add("intervals growing by", p.ExponentiationFactor.String())
		add("up to", p.MaxInterval)
		if p.MaxAttempts != nil {
			parts = append(parts, fmt.Sprintf("%d attempts", *p.MaxAttempts))
		}
		add("then", strings.ToLower(p.OnMaxAttempts))
	}
	return strings.Join(parts, ", ")
}

func (a *app) handlerTable(indent string, handlers []client.Handler) {
	rows := make([][]string, len(handlers))
	typed := slices.ContainsFunc(handlers, func(h client.Handler) bool { return h.Type != "" })
	for i, h := range handlers {
		rows[i] = []string{term.Clean(h.Name)}
		if typed {
			rows[i] = append(rows[i], command.OrDash(h.Type))
		}
		rows[i] = append(rows[i], command.OrDash(term.Clean(h.InputDescription)), command.OrDash(term.Clean(h.OutputDescription)))
	}
	header := []string{"HANDLER", "INPUT", "OUTPUT"}
	if typed {
		header = slices.Insert(header, 1, "TYPE")
	}
	a.Print.Table(indent, header, rows)
}

// notices prints the server's notices.
func (a *app) notices(list []client.Notice) {
	for _, n := range list {
		code := ""
		if n.Code != "" {
			code = "[" + n.Code + "] "
		}
		a.Print.Printf("  %s %s%s\n", a.Print.Yellow("Notice:"), code, term.Clean(n.Message))
	}
}

func retries(policy *client.RetryPolicy) string {
	if policy == nil {
		return ""
	}
	attempts := "unlimited"
	if policy.MaxAttempts != nil {
		attempts = strconv.Itoa(*policy.MaxAttempts)
	}
	text := fmt.Sprintf("after %s, growing by %s up to %s, %s attempts", policy.InitialInterval, policy.ExponentiationFactor, policy.MaxInterval, attempts)
	if policy.MaxAttempts != nil {
		text += ", then " + strings.ToLower(policy.OnMaxAttempts)
	}
	return text
}

func handlerNames(handlers []client.Handler) []string {
	names := make([]string, len(handlers))
	for i, h := range handlers {
		names[i] = term.Clean(h.Name)
	}
	return names
}
