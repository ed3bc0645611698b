package cli

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/units"
)

func (a *app) servicesPatch() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "patch <name>",
		Aliases: []string{"modify", "edit"},
		Short:   "Change options of a service",
		Long: `Changes options of the latest revision of a service. Retentions apply to new invocations,
timeouts and retries for new attempts. Options that a handler declares itself are not changed.
The next revision of the service uses the options that its endpoint declares.

As edit and without options, it opens the options in an editor: PLATFORM_EDITOR, VISUAL or EDITOR.
Shows the changes and prompts for confirmation.`,
		Args: cobra.ExactArgs(1),
		Example: `  platform services edit Greeter
  platform services patch Greeter --public=false
  platform services patch Greeter --journal-retention 7d --max-attempts unlimited --yes`,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	defineOptions(flags)
	asJSON := command.JSONFlag(flags)
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		change, err := readChange(flags)
		switch {
		case err != nil:
			return err
		case change != (client.ServiceChange{}):
			return a.patchService(ctx, args[0], change, *asJSON)
		case cmd.CalledAs() == "edit":
			return a.editService(ctx, args[0], *asJSON)
		}
		return command.UsageError("nothing to change: give an option, or open an editor with `platform services edit " + term.Clean(args[0]) + "`")
	})
	return cmd
}

// defineOptions adds the flags for the options of a service.
func defineOptions(flags *pflag.FlagSet) {
	flags.Bool("public", false, "whether the ingress can call it; =false: only other handlers")
	flags.String("forward-headers", "", "headers with credentials of callers, such as authorization, that handlers get, separated by commas; \"\" for none; later revisions keep it")
	flags.String("ingress-auth", "", "what callers must present: none, token, jwt (of the identity provider) or mtls (a client certificate); later revisions keep it")
	flags.String("idempotency-retention", "", "how long results of calls with an idempotency key are kept")
	flags.String("workflow-completion-retention", "", "how long a finished workflow is kept")
	flags.String("journal-retention", "", "how long journals are kept after completion")
	flags.String("inactivity-timeout", "", "how long an attempt may be inactive before it is asked to suspend")
	flags.String("abort-timeout", "", "how long it may take to suspend before it is aborted")
	flags.Bool("lazy-state", false, "send state only when it is read; =false sends it with each attempt")
	flags.String("max-attempts", "", "attempts before --on-max-attempts, a number or unlimited")
	flags.String("on-max-attempts", "", "pause or kill")
	flags.String("retry-initial-interval", "", "delay after the first failed attempt; the least is 10 ms")
	flags.String("retry-max-interval", "", "maximum delay between attempts")
	flags.Float64("retry-factor", 0, "factor by which the delay grows with each attempt")
}

// readChange returns the change that the given flags specify.
func readChange(flags *pflag.FlagSet) (c client.ServiceChange, err error) {
	var retry client.RetryChange
	durations := map[string]**string{
		"idempotency-retention": &c.IdempotencyRetention, "workflow-completion-retention": &c.WorkflowCompletionRetention,
		"journal-retention": &c.JournalRetention, "inactivity-timeout": &c.InactivityTimeout, "abort-timeout": &c.AbortTimeout,
		"retry-initial-interval": &retry.InitialInterval, "retry-max-interval": &retry.MaxInterval,
	}
	flags.Visit(func(f *pflag.Flag) {
		text := f.Value.String()
		switch into, isDuration := durations[f.Name]; {
		case isDuration:
			if _, parseErr := units.ParseDuration(text); parseErr != nil {
				err = command.UsageError("--" + f.Name + ": " + parseErr.Error())
			}
			*into = &text
		case f.Name == "ingress-auth":
			if c.IngressAuth = &text; !slices.Contains([]string{"none", "token", "jwt", "mtls"}, text) {
				err = command.UsageError("--ingress-auth takes none, token, jwt or mtls")
			}
		case f.Name == "forward-headers":
			names := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
			c.ForwardHeaders = &names
		case f.Name == "public":
			c.Public = isTrue(text)
		case f.Name == "lazy-state":
			c.EnableLazyState = isTrue(text)
		case f.Name == "retry-factor":
			retry.ExponentiationFactor, _ = strconv.ParseFloat(text, 64)
			if !(retry.ExponentiationFactor >= 1) || math.IsInf(retry.ExponentiationFactor, 1) { // or NaN
				err = command.UsageError("--retry-factor must be a number of 1 or more")
			}
		case f.Name == "on-max-attempts":
			retry.OnMaxAttempts = map[string]string{"pause": "Pause", "Pause": "Pause", "kill": "Kill", "Kill": "Kill"}[text]
			if retry.OnMaxAttempts == "" {
				err = command.UsageError("--on-max-attempts takes pause or kill")
			}
		case f.Name == "max-attempts":
			if n, parseErr := strconv.Atoi(text); parseErr == nil && n > 0 {
				retry.MaxAttempts = n
			} else if retry.MaxAttempts = text; text != "unlimited" {
				err = command.UsageError("--max-attempts takes a number of 1 or more, or unlimited")
			}
		}
	})
	if retry != (client.RetryChange{}) {
		c.RetryPolicy = &retry
	}
	return c, err
}

func isTrue(text string) *bool {
	value := text == "true"
	return &value
}

func (a *app) patchService(ctx context.Context, name string, change client.ServiceChange, asJSON bool) error {
	before, _, err := a.Client.Service(ctx, name)
	if err != nil {
		return a.serviceNotFound(ctx, err, name, servicesHint)
	}
	different := changes(optionFields(before), optionFields(changed(before, change)))
	if len(different) > 0 {
		a.Hint.Printf("%s\n", a.Hint.Yellow("CHANGED"))
		a.Hint.Fields("  ", different...)
	} else {
		a.Say("The options have these values already.")
	}
	if err := a.Confirm("Apply these changes to " + term.Clean(name) + "?"); err != nil {
		return err
	}
	after, response, err := a.Client.ModifyService(ctx, name, change)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintRaw(response.Body)
	}
	done := "Changed service"
	if len(different) == 0 {
		done = "No change of service"
	}
	a.Print.Printf("%s %s %s\n\n", a.Print.Green("[OK]:"), done, term.Clean(after.Name))
	a.Print.Fields("  ", optionFields(after)...)
	a.notices(after.Info)
	return nil
}

// optionFields are the options of a service.
func optionFields(s client.Service) []term.Field {
	return []term.Field{
		{Name: "Public", Value: command.YesNo(s.Public)},
		{Name: "Ingress authentication", Value: s.IngressAuth},
		{Name: "Forwarded credentials", Value: headerList(s.ForwardHeaders)},
		{Name: "Idempotency retention", Value: s.IdempotencyRetention},
		{Name: "Workflow retention", Value: s.WorkflowCompletionRetention},
		{Name: "Journal retention", Value: cmp.Or(s.JournalRetention, "none")},
		{Name: "Inactivity timeout", Value: s.InactivityTimeout},
		{Name: "Abort timeout", Value: s.AbortTimeout},
		{Name: "Lazy state", Value: command.YesNo(s.EnableLazyState)},
		{Name: "Retries", Value: retries(s.RetryPolicy)},
	}
}

// headerList names the headers that a service gets; empty if the setting of the server applies.
func headerList(names *[]string) string {
	switch {
	case names == nil:
		return ""
	case len(*names) == 0:
		return "none"
	}
	return term.Clean(strings.ToLower(strings.Join(*names, ", ")))
}

// changed returns a service with a change applied, without the server's limits.
func changed(s client.Service, c client.ServiceChange) client.Service {
	take(&s.Public, c.Public)
	take(&s.IngressAuth, c.IngressAuth)
	if c.ForwardHeaders != nil {
		s.ForwardHeaders = c.ForwardHeaders
	}
	take(&s.EnableLazyState, c.EnableLazyState)
	takeDuration(&s.IdempotencyRetention, c.IdempotencyRetention)
	takeDuration(&s.WorkflowCompletionRetention, c.WorkflowCompletionRetention)
	takeDuration(&s.JournalRetention, c.JournalRetention)
	takeDuration(&s.InactivityTimeout, c.InactivityTimeout)
	takeDuration(&s.AbortTimeout, c.AbortTimeout)
	if r := c.RetryPolicy; r != nil && s.RetryPolicy != nil {
		policy := *s.RetryPolicy
		takeDuration(&policy.InitialInterval, r.InitialInterval)
		takeDuration(&policy.MaxInterval, r.MaxInterval)
		policy.OnMaxAttempts = cmp.Or(r.OnMaxAttempts, policy.OnMaxAttempts)
		if f := r.ExponentiationFactor; f != 0 {
			policy.ExponentiationFactor = factorText(f)
		}
		switch n := r.MaxAttempts.(type) {
		case int:
			policy.MaxAttempts = &n
		case string:
			policy.MaxAttempts = nil
		}
		s.RetryPolicy = &policy
	}
	return s
}

func take[T any](into *T, value *T) {
	if value != nil {
		*into = *value
	}
}

// takeDuration formats a duration as the server does.
func takeDuration(into *string, text *string) {
	if text == nil {
		return
	}
	*into = *text
	if d, err := units.ParseDuration(*text); err == nil {
		*into = units.FormatDuration(d)
	}
}
