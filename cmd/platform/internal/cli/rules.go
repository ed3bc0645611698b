package cli

import (
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

const ruleHint = "`platform rules list` shows the rules there are."

func (a *app) rules() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:        "rules",
		Aliases:    []string{"rule"},
		SuggestFor: []string{"limit", "limits"},
		Short:      "Limit the concurrency of scopes",
		Long: `Rules limit how many invocations run concurrently in the scopes that callers name. A pattern is a scope,
or scope/l1 or scope/l1/l2 for the parts of limit keys within it; * matches any.
Each matching scope and limit key has a separate budget, and the most specific rule applies:
in tenant-1, a rule for tenant-1 replaces one for *.`,
	}, a.rulesSet(), a.rulesList(), a.rulesSwitch(true), a.rulesSwitch(false), a.rulesDelete())
}

func (a *app) rulesList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List rules",
		Args:    cobra.NoArgs,
		Example: "  platform rules list\n  platform rules list --extra",
	}
	extra := cmd.Flags().BoolP("extra", "x", false, "also show descriptions, versions and when rules changed")
	request := func(ctx context.Context, _ []string) ([]client.Rule, *client.Response, error) {
		return a.Client.Rules(ctx)
	}
	return command.ViewResponse(a.App, cmd, request, func(_ context.Context, rules []client.Rule) error {
		if len(rules) == 0 {
			a.Say("No rules. Create one: platform rules set <pattern> --concurrency <n>")
			return nil
		}
		a.ruleTable(a.Print, rules, *extra)
		return nil
	})
}

// ruleTable shows rules. It omits the columns of limits that no rule has.
func (a *app) ruleTable(p *term.Printer, rules []client.Rule, extra bool) {
	rated := slices.ContainsFunc(rules, func(r client.Rule) bool { return r.Limits.Rate != nil })
	bounded := slices.ContainsFunc(rules, func(r client.Rule) bool { return r.Limits.QueueLimit != nil })
	header := []string{"PATTERN", "CONCURRENCY"}
	if rated {
		header = append(header, "RATE")
	}
	if bounded {
		header = append(header, "QUEUE-LIMIT")
	}
	header = append(header, "DISABLED")
	if extra {
		header = append(header, "DESCRIPTION", "VERSION", "LAST-MODIFIED")
	}
	rows := make([][]string, len(rules))
	for i, r := range rules {
		row := []string{term.Clean(r.Pattern), limitText(r.Limits.Concurrency)}
		if rated {
			row = append(row, rateText(r.Limits.Rate))
		}
		if bounded {
			row = append(row, limitText(r.Limits.QueueLimit))
		}
		row = append(row, command.YesNo(r.Disabled))
		if extra {
			row = append(row, command.OrDash(term.Clean(r.Description)), ruleVersion(r), p.Time(r.ModifiedAt()))
		}
		rows[i] = row
	}
	p.Table("", header, rows)
}

func limitText[N uint32 | uint64](limit *N) string {
	if limit == nil {
		return "unlimited"
	}
	return strconv.FormatUint(uint64(*limit), 10)
}

func rateText(rate *string) string {
	if rate == nil {
		return "unlimited"
	}
	return term.Clean(*rate)
}

func ruleVersion(r client.Rule) string { return "v" + strconv.FormatUint(uint64(r.Version), 10) }

// rulesSwitch returns the command enable or disable.
func (a *app) rulesSwitch(on bool) *cobra.Command {
	verb, done, short := "disable", "Disabled", "Disable a rule without deleting it"
	if on {
		verb, done, short = "enable", "Enabled", "Enable a disabled rule"
	}
	cmd := &cobra.Command{
		Use:     verb + " <pattern>",
		Short:   short,
		Args:    cobra.ExactArgs(1),
		Example: "  platform rules " + verb + " tenant-1",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		change := func(r *client.Rule) error {
			if r.Version == 0 {
				return command.WithHint(fmt.Errorf("there is no rule '%s'", term.Clean(args[0])), ruleHint)
			}
			r.Disabled = !on
			return nil
		}
		before, after, response, err := a.changeRule(ctx, args[0], change)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.PrintRaw(response.Body)
		}
		if before.Version == after.Version {
			a.Print.Printf("%s Rule '%s' was already %sd (version %s)\n", a.Print.Green("[OK]:"), after.Pattern, verb, ruleVersion(after))
			return nil
		}
		a.Print.Printf("%s %s rule '%s' (version %s)\n", a.Print.Green("[OK]:"), done, after.Pattern, ruleVersion(after))
		return nil
	})
	return cmd
}

// sayWaitingForRule says how many invocations wait in the scope that a pattern names: without the rule they may all
// start. Errors are left to the deletion.
func (a *app) sayWaitingForRule(ctx context.Context, pattern string) {
	scope, _, _ := strings.Cut(pattern, "/")
	if scope == "*" {
		return
	}
	if use, err := a.Client.ScopeUse(ctx, scope); err == nil && use.Inbox > 0 {
		a.Say("%d invocations wait in the scope %s. Those that only this rule holds back start as soon as nodes have free slots.", use.Inbox, term.Clean(scope))
	}
}

func (a *app) rulesDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "delete <pattern>",
		Aliases: []string{"rm", "remove"},
		Short:   "Delete a rule",
		Args:    cobra.ExactArgs(1),
		Example: "  platform rules delete tenant-1\n  platform rules delete 'tenant-1/*' --yes",
	}
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		rule, _, err := a.Client.Rule(ctx, args[0])
		if err != nil {
			return command.HintNotFound(err, ruleHint)
		}
		a.ruleTable(a.Hint, []client.Rule{rule}, true)
		a.sayWaitingForRule(ctx, rule.Pattern)
		if err := a.Confirm(fmt.Sprintf("Delete rule '%s'?", rule.Pattern)); err != nil {
			return err
		}
		// Only the version that was shown is deleted.
		if err := a.Client.DeleteRule(ctx, rule.Pattern, rule.Version); err != nil {
			return err
		}
		a.Print.Printf("%s Deleted rule '%s'\n", a.Print.Green("[OK]:"), rule.Pattern)
		return nil
	})
	return cmd
}
