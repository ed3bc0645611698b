package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/errcode"
	"platform/internal/version"
)

func (a *app) whoami() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "whoami",
		Short:   "Show which server and which settings are in use",
		Args:    cobra.NoArgs,
		Example: "  platform whoami",
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = command.Run(func(ctx context.Context, _ []string) error {
		server, err := a.Client.Version(ctx)
		if client.HasStatus(err, http.StatusForbidden) { // the server is reached, and knows the token
			err = nil
		}
		identity, _ := a.Client.WhoAmI(ctx) // unknown to previous releases
		if *asJSON {
			return a.PrintJSON(map[string]any{ // which describes what can be reached
				"environment": a.Profile.Environment, "config_file": a.Profile.File, "config_file_exists": a.Profile.FileExists,
				"admin_base_url": a.Profile.AdminURL, "ingress_base_url": a.Profile.IngressURL, "authenticated": a.Profile.Token != "",
				"version": version.Version(), "commit": version.Commit(), "server_version": server.Version, "server_reachable": err == nil,
				"name": identity.Name, "roles": append([]string{}, identity.Roles...), "token_required": identity.TokenRequired,
			})
		}
		a.showSettings(server, identity, err)
		switch {
		case err != nil:
			return err
		case a.Profile.Token != "" && identity.Name == "" && identity.TokenRequired:
			return errors.New("the server does not know the token, or it has expired")
		}
		return nil
	})
	return cmd
}

func (a *app) showSettings(server client.Version, identity client.Identity, err error) {
	status := a.Print.Green("reachable")
	if err != nil {
		status = a.Print.Red(term.Clean(err.Error()))
	}
	file := a.Profile.File
	if !a.Profile.FileExists {
		file += " (does not exist)"
	}
	a.Print.Heading("Server")
	a.Print.Fields("  ",
		term.Field{Name: "Admin API", Value: a.Profile.AdminURL},
		term.Field{Name: "Ingress", Value: a.Profile.IngressURL},
		term.Field{Name: "Status", Value: status},
		term.Field{Name: "Version", Value: term.Clean(server.Version)},
		term.Field{Name: "Commit", Value: term.Clean(server.Commit)},
		term.Field{Name: "Logged in as", Value: term.Clean(identity.Name)},
		term.Field{Name: "Roles", Value: term.Clean(strings.Join(identity.Roles, ", "))},
		term.Field{Name: "Limited to", Value: term.Clean(limitsText(identity.Services, identity.Scopes))},
	)
	a.Print.Println()
	a.Print.Heading("Environment")
	a.Print.Fields("  ",
		term.Field{Name: "Name", Value: a.Profile.Environment},
		term.Field{Name: "Configuration file", Value: file},
		term.Field{Name: "Bearer token", Value: command.YesNo(a.Profile.Token != "")},
	)
	a.Print.Println()
	a.Print.Heading("This Program")
	a.Print.Fields("  ", a.buildFields()...)
}

func (a *app) buildFields() []term.Field {
	return []term.Field{
		{Name: "Version", Value: version.Version()},
		{Name: "Commit", Value: version.Commit()},
		{Name: "Built with", Value: version.Platform()},
	}
}

func (a *app) version() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs}
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = command.Run(func(context.Context, []string) error {
		if *asJSON {
			return a.PrintJSON(map[string]string{"version": version.Version(), "commit": version.Commit(), "built_with": version.Platform()})
		}
		a.Print.Println(version.Line("platform"))
		return nil
	})
	return cmd
}

func (a *app) explain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [code|invocation]",
		Short: "Explain an error code, or the status of an invocation",
		Long: `Explains an error code, or lists all codes. For an invocation, explains its status: what it waits
for, why it failed, and what to do next. A target, such as <object>/<key>, selects its only unfinished
invocation or, if it has none, the only one that is kept.`,
		Args:    cobra.MaximumNArgs(1),
		Example: "  platform explain RT0016\n  platform explain inv_1eZuh3e9kYOt41qu4r6Lc4GeOvsM3b1KoN\n  platform explain Signup/ada/run",
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	a.Shows(cmd, func(ctx context.Context, args []string) error {
		if len(args) == 1 && (strings.HasPrefix(args[0], "inv_") || strings.Contains(args[0], "/")) {
			id, err := a.invocationID(ctx, args[0])
			if err != nil {
				return err
			}
			return a.explainInvocation(ctx, id, *asJSON)
		}
		entries := errcode.All()
		if len(args) == 1 {
			if meaning, ok := statusMeanings[strings.ToLower(args[0])]; ok && !*asJSON {
				a.Print.Printf("%s: %s\n", a.Print.Bold(strings.ToLower(args[0])), wrap(meaning, 80))
				a.Say("An invocation: platform explain <id>. All that have the status: platform invocations list --status %s", strings.ToLower(args[0]))
				return nil
			}
			entry, ok := errcode.Lookup(errorCode(args[0]))
			if !ok {
				if shortCode.MatchString(args[0]) {
					return command.WithHint(fmt.Errorf("there is no error code %q", args[0]), "`platform explain` lists all codes.")
				}
				return command.WithHint(fmt.Errorf("%q is neither an error code nor a status of invocations", args[0]),
					command.Nearest(args[0], slices.Sorted(maps.Keys(statusMeanings)),
						"`platform explain` lists all codes. `platform invocations list "+word(args[0])+" --active` shows the invocations of a service, whose ids can be explained."))
			}
			entries = []errcode.Entry{entry}
		}
		switch {
		case *asJSON:
			return a.PrintJSON(explanations(entries, len(args) == 1))
		case len(args) == 1:
			a.explainOne(entries[0])
		default:
			rows := make([][]string, len(entries))
			for i, e := range entries {
				rows[i] = []string{string(e.Code), e.Title}
			}
			a.Print.Table("", []string{"CODE", "MEANING"}, rows)
		}
		return nil
	})
	return cmd
}

// statusMeanings explains the statuses of invocations.
var statusMeanings = map[string]string{
	"scheduled":   "the invocation is delayed: it starts at a later time.",
	"pending":     "the invocation waits for the key of its object, or in a queue of flow control.",
	"ready":       "the invocation is about to start.",
	"running":     "an attempt is in progress: the server is connected to the handler.",
	"backing-off": "the last attempt failed; the next one follows automatically. `platform invocations resume` retries immediately.",
	"suspended":   "the handler waits for an event, such as the end of a sleep or of a call, without a connection to it. It continues when the event has happened.",
	"paused":      "the invocation is stopped until `platform invocations resume`: all attempts have failed, or an operator paused it.",
	"completed":   "the invocation has ended, with success or with a failure. Its result is kept for the retention time of the service.",
}

// shortCode matches a code with fewer digits, or in lower case: rt16.
var shortCode = regexp.MustCompile(`^(?i)\[?(RT|META)0*(\d{1,4})\]?$`)

// errorCode returns the code that a user means.
func errorCode(text string) errcode.Code {
	if parts := shortCode.FindStringSubmatch(text); parts != nil {
		return errcode.Code(fmt.Sprintf("%s%04s", strings.ToUpper(parts[1]), parts[2]))
	}
	return errcode.Code(text)
}

func (a *app) explainOne(e errcode.Entry) {
	a.Print.Heading(string(e.Code) + ": " + e.Title)
	a.Print.Printf("%s\n\n%s\n%s\n", wrap(e.Meaning, 80), a.Print.Bold("What to do"), wrap(e.Remedy, 80))
}

func explanations(entries []errcode.Entry, single bool) any {
	type explanation struct {
		Code    errcode.Code `json:"code"`
		Title   string       `json:"title"`
		Meaning string       `json:"meaning"`
		Remedy  string       `json:"remedy"`
		Status  int          `json:"http_status"`
	}
	list := make([]explanation, len(entries))
	for i, e := range entries {
		list[i] = explanation{e.Code, e.Title, e.Meaning, e.Remedy, e.HTTPStatus}
	}
	if single {
		return list[0]
	}
	return list
}

// wrap breaks text into lines of at most width characters.
func wrap(text string, width int) string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, line), "\n")
}
