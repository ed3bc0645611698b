package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
)

// ruleFlags are the flags of `rules set`.
type ruleFlags struct {
	concurrency  uint32
	unlimited    bool
	rate         string
	noRate       bool
	queueLimit   uint64
	noQueueLimit bool
	description  string
	disabled     bool
	asJSON       *bool
}

func (a *app) rulesSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set <pattern>",
		Short: "Create or change a rule",
		Long: `Creates the rule if none has that pattern; otherwise changes only the given options.
A change applies immediately to waiting and new invocations; running ones are never
stopped.`,
		Args: cobra.ExactArgs(1),
		Example: `  platform rules set '*' --concurrency 10
  platform rules set tenant-1 --concurrency 50 --description "pays for more"
  platform rules set 'tenant-1/*' --rate 100/s --queue-limit 1000
  platform rules set internal --unlimited`,
	}
	var f ruleFlags
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Uint32Var(&f.concurrency, "concurrency", 0, "maximum concurrency of each matching scope or limit key")
	flags.BoolVar(&f.unlimited, "unlimited", false, "no concurrency limit")
	flags.StringVar(&f.rate, "rate", "", "maximum number of starts per `period`, such as 100/s, 30/min or 5/10s")
	flags.BoolVar(&f.noRate, "no-rate", false, "no rate limit")
	flags.Uint64Var(&f.queueLimit, "queue-limit", 0, "maximum number of waiting invocations; further ones are refused with status 429")
	flags.BoolVar(&f.noQueueLimit, "no-queue-limit", false, "no queue limit")
	flags.StringVar(&f.description, "description", "", "what the rule is for")
	flags.BoolVar(&f.disabled, "disabled", false, "create the rule disabled (new rules only)")
	f.asJSON = command.JSONFlag(flags)
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		if args[0] == "" {
			return command.UsageError("the pattern is empty: it is scope, scope/l1 or scope/l1/l2, with * for any")
		}
		if err := f.check(flags); err != nil {
			return err
		}
		return a.setRule(ctx, args[0], &f, flags)
	})
	return cmd
}

// check rejects combinations of flags that are invalid for any rule.
func (f *ruleFlags) check(flags *pflag.FlagSet) error {
	given := 0
	for _, name := range []string{"concurrency", "unlimited", "rate", "no-rate", "queue-limit", "no-queue-limit", "description", "disabled"} {
		if flags.Changed(name) {
			given++
		}
	}
	for _, pair := range [][2]string{{"concurrency", "unlimited"}, {"rate", "no-rate"}, {"queue-limit", "no-queue-limit"}} {
		if flags.Changed(pair[0]) && flags.Changed(pair[1]) {
			return command.UsageError("--" + pair[0] + " and --" + pair[1] + " exclude each other")
		}
	}
	switch {
	case given == 0:
		return command.UsageError("nothing to set: give --concurrency <n> or another option")
	case flags.Changed("concurrency") && f.concurrency == 0:
		return command.UsageError("--concurrency must be at least 1; --unlimited removes the limit")
	}
	return nil
}

func (a *app) setRule(ctx context.Context, pattern string, f *ruleFlags, flags *pflag.FlagSet) error {
	before, after, response, err := a.changeRule(ctx, pattern, func(r *client.Rule) error {
		if r.Version != 0 && flags.Changed("disabled") {
			return command.UsageError("--disabled is for new rules; use `platform rules disable` or `enable` for this one")
		}
		f.merge(r, flags)
		return nil
	})
	if err != nil {
		return err
	}
	a.sayFlowControlOff(ctx, "rules limit nothing")
	if *f.asJSON {
		return a.PrintRaw(response.Body)
	}
	did := "Updated rule '%s'"
	switch {
	case before.Version == 0:
		did = "Created rule '%s'"
	case before.LastModified == after.LastModified:
		did = "Rule '%s' is unchanged"
	}
	a.Print.Printf("%s "+did+" (version %s)\n", a.Print.Green("[OK]:"), after.Pattern, ruleVersion(after))
	if after.Disabled {
		a.Say("The rule is disabled: `platform rules enable '%s'` enables it.", after.Pattern)
	}
	return nil
}

// merge applies the given flags to a rule.
func (f *ruleFlags) merge(r *client.Rule, flags *pflag.FlagSet) {
	if flags.Changed("concurrency") {
		r.Limits.Concurrency = &f.concurrency
	}
	if f.unlimited {
		r.Limits.Concurrency = nil
	}
	if flags.Changed("rate") {
		r.Limits.Rate = &f.rate
	}
	if f.noRate {
		r.Limits.Rate = nil
	}
	if flags.Changed("queue-limit") {
		r.Limits.QueueLimit = &f.queueLimit
	}
	if f.noQueueLimit {
		r.Limits.QueueLimit = nil
	}
	if flags.Changed("description") {
		r.Description = strings.TrimSpace(f.description)
	}
	if flags.Changed("disabled") {
		r.Disabled = f.disabled
	}
}

// changeTries bounds the retries of a change after concurrent changes.
const changeTries = 5

// changeRule reads a rule, or creates one of version 0, applies change and stores it. It
// starts over if the rule was changed concurrently.
func (a *app) changeRule(ctx context.Context, pattern string, change func(*client.Rule) error) (before, after client.Rule, response *client.Response, err error) {
	for range changeTries {
		before, _, err = a.Client.Rule(ctx, pattern)
		if client.IsNotFound(err) {
			before, err = client.Rule{Pattern: pattern}, nil
		}
		if err != nil {
			return before, after, nil, err
		}
		wanted := before
		if err = change(&wanted); err != nil {
			return before, after, nil, err
		}
		after, response, err = a.Client.PutRule(ctx, wanted)
		if !client.IsConflict(err) {
			break
		}
	}
	return before, after, response, err
}

// sayFlowControlOff reports that flow control is off, if it is, and what that means.
func (a *app) sayFlowControlOff(ctx context.Context, so string) {
	v, err := a.Client.Version(ctx)
	if on, known := v.Features["vqueues"]; err == nil && known && !on {
		a.Say("Flow control is off on this cluster, so " + so + ". It is enabled on a fresh cluster by\n" +
			"experimental-enable-vqueues = true and experimental-enable-protocol-v7 = true in the configuration of its nodes.")
	}
}
