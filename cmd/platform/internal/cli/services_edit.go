package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/pflag"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

// editService opens the options of a service as TOML in an editor, and applies those that were changed.
func (a *app) editService(ctx context.Context, name string, asJSON bool) error {
	service, _, err := a.Client.Service(ctx, name)
	if err != nil {
		return a.serviceNotFound(ctx, err, name, servicesHint)
	}
	before := optionsDocument(service)
	return a.EditDocument(ctx, before, "platform-service-*.toml", func(edited []byte) (again bool, err error) {
		change, err := readOptions(before, edited)
		if err != nil {
			return true, err
		}
		if change == (client.ServiceChange{}) {
			a.Say("Nothing was changed.")
			return false, nil
		}
		err = a.patchService(ctx, name, change, asJSON)
		return command.IsMistake(err), err
	})
}

// optionsDocument returns the options of a service as TOML, whose keys are the flags of services patch.
// Options without a value are in comments.
func optionsDocument(s client.Service) []byte {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	defineOptions(flags)
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Options of the service %s. Options that are removed or in comments are not changed.\n"+
		"# The next revision of the service uses what its endpoint declares.\n", term.Clean(s.Name))
	write := func(name, value, example string) {
		comment := ""
		if value == "" {
			comment, value = "# ", example
		}
		usage, _, _ := strings.Cut(flags.Lookup(name).Usage, "; =") // how to give the switch
		fmt.Fprintf(&b, "\n# %s\n%s%s = %s\n", strings.ReplaceAll(usage, "--", ""), comment, name, value)
	}
	text := func(name, value, example string) {
		if value != "" {
			value = strconv.Quote(value)
		}
		write(name, value, strconv.Quote(example))
	}
	write("public", strconv.FormatBool(s.Public), "")
	text("ingress-auth", s.IngressAuth, "none")
	forwarded := ""
	if s.ForwardHeaders != nil {
		forwarded = strconv.Quote(strings.Join(*s.ForwardHeaders, ", "))
	}
	write("forward-headers", forwarded, strconv.Quote("authorization"))
	text("idempotency-retention", s.IdempotencyRetention, "1d")
	if s.Type == "Workflow" {
		text("workflow-completion-retention", s.WorkflowCompletionRetention, "1d")
	}
	text("journal-retention", cmp.Or(s.JournalRetention, "0"), "")
	text("inactivity-timeout", s.InactivityTimeout, "1m")
	text("abort-timeout", s.AbortTimeout, "10m")
	write("lazy-state", strconv.FormatBool(s.EnableLazyState), "")
	if p := s.RetryPolicy; p != nil {
		if attempts := p.MaxAttempts; attempts != nil {
			write("max-attempts", strconv.Itoa(*attempts), "")
		} else {
			text("max-attempts", "unlimited", "")
		}
		text("on-max-attempts", strings.ToLower(p.OnMaxAttempts), "pause")
		text("retry-initial-interval", p.InitialInterval, "500ms")
		text("retry-max-interval", p.MaxInterval, "1m")
		write("retry-factor", p.ExponentiationFactor.String(), "2.0")
	}
	return b.Bytes()
}

// readOptions returns the change from the options of one document to those of another.
func readOptions(before, after []byte) (c client.ServiceChange, err error) {
	was, err := parseOptions(before)
	if err != nil {
		return c, err
	}
	is, err := parseOptions(after)
	if err != nil {
		return c, err
	}
	different := pflag.NewFlagSet("", pflag.ContinueOnError)
	defineOptions(different)
	for _, name := range slices.Sorted(maps.Keys(is)) {
		switch value := is[name]; {
		case different.Lookup(name) == nil:
			return c, fmt.Errorf("there is no option %q", name)
		case value == was[name]:
		default:
			if err := different.Set(name, value); err != nil {
				return c, fmt.Errorf("%s = %q: %w", name, value, err)
			}
		}
	}
	if different.NFlag() == 0 {
		return c, nil
	}
	c, err = readChange(different)
	if command.IsUsageError(err) { // it names a flag
		err = errors.New(strings.TrimPrefix(err.Error(), "--"))
	}
	return c, err
}

// parseOptions reads a document of options, as the texts that the flags take.
func parseOptions(document []byte) (map[string]string, error) {
	var values map[string]any
	if err := toml.Unmarshal(document, &values); err != nil {
		if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ := bad.Position()
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		return nil, err
	}
	texts := make(map[string]string, len(values))
	for name, value := range values {
		switch value.(type) {
		case string, bool, int64, float64:
			texts[strings.ReplaceAll(name, "_", "-")] = fmt.Sprint(value) // as in the admin API
		default:
			return nil, fmt.Errorf("%s: expected text, a number, true or false", name)
		}
	}
	return texts, nil
}
