package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The help of a command shows its own options only. The help of the program shows those
// that all commands share, and the commands in groups.
const helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{.UsageString}}`

const usageTemplate = `Usage:{{if .HasAvailableSubCommands}}
  {{.CommandPath}} <command>{{else}}
  {{.UseLine}}{{end}}
{{- if .Aliases}}

Aliases:
  {{.NameAndAliases}}
{{- end}}
{{- range $group := .Groups}}

{{$group.Title}}:
{{- range $.Commands}}{{if and .IsAvailableCommand (eq .GroupID $group.ID)}}
  {{rpad .Name .NamePadding}} {{.Short}}
{{- end}}{{end}}
{{- end}}
{{- if and .HasAvailableSubCommands (not .Groups)}}

Commands:
{{- range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}
{{- end}}{{end}}
{{- end}}
{{- if .HasAvailableLocalFlags}}

Options:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{- end}}
{{- if .HasExample}}

Examples:
{{.Example}}
{{- end}}
{{- if .HasParent}}

Options of all commands: {{.Root.Name}} --help
{{- end}}
`

// suggestFlag adds the most similar flag, or the format of the value, to an error.
func suggestFlag(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if numbers, ok := flagNumbers[invalid.GetFlag().Value.Type()]; ok {
			return fmt.Errorf("--%s takes %s, got %q", invalid.GetFlag().Name, numbers, invalid.GetValue())
		}
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	}
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	name := missing.GetSpecifiedName()
	if slices.Contains([]string{"o", "output", "format"}, name) && cmd.Flags().Lookup("json") != nil {
		return fmt.Errorf("%w; --json prints JSON", err)
	}
	best := ""
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if best == "" && len(name) > 2 && (strings.HasPrefix(f.Name, name) || strings.HasPrefix(name, f.Name) || oneEditApart(f.Name, name)) {
			best = f.Name
		}
	})
	if best == "" {
		return err
	}
	return fmt.Errorf("%w; did you mean --%s?", err, best)
}

// flagNumbers describes the numbers that flag types accept.
var flagNumbers = map[string]string{
	"int": "a whole number", "uint": "a whole number from 0", "uint32": "a whole number from 0 to 4294967295", "uint64": "a whole number from 0",
}

// oneEditApart reports whether one changed, missing, added or swapped letter makes
// a into b.
func oneEditApart(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	at := 0
	for at < len(a) && a[at] == b[at] {
		at++
	}
	if len(a) < len(b) {
		return a[at:] == b[at+1:]
	}
	if at == len(a) || a[at+1:] == b[at+1:] {
		return true
	}
	return at+1 < len(a) && a[at] == b[at+1] && a[at+1] == b[at] && a[at+2:] == b[at+2:]
}
