package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *app) servicesConfig() *cobra.Command {
	return command.Group(&cobra.Command{Use: "config", Short: "Explain and change the options of a service"}, a.servicesConfigView(), a.servicesPatch())
}

func (a *app) servicesConfigView() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "view <name>",
		Aliases: []string{"get"},
		Short:   "Show the options of a service and what they mean",
		Args:    cobra.ExactArgs(1),
		Example: "  platform services config view Greeter",
	}
	return command.ViewResponse(a.App, cmd, a.requestService, func(_ context.Context, service client.Service) error {
		a.Print.Heading("Options of " + term.Clean(service.Name))
		for _, f := range optionFields(service) {
			if f.Value == "" {
				continue
			}
			a.Print.Fields("", f)
			for line := range strings.Lines(wrap(optionMeanings[f.Name], 76)) {
				a.Print.Printf("    %s\n", a.Print.Dim(strings.TrimSuffix(line, "\n")))
			}
		}
		a.notices(service.Info)
		return nil
	})
}

// optionMeanings explains the options of a service by their displayed names.
var optionMeanings = map[string]string{
	"Public":                "Whether the ingress can call the service. Other handlers always can.",
	"Idempotency retention": "How long the result of a call with an idempotency key is kept. Until then a request with the same key gets that result; afterwards it starts a new invocation.",
	"Workflow retention":    "How long a workflow is kept once it has ended: its result, state and promises. Until then it cannot be run again with the same id.",
	"Journal retention":     "How long the journal is kept once an invocation has ended. Until then it can be inspected, and the invocation restarted from one of its entries.",
	"Inactivity timeout":    "How long an attempt may wait without a message before it is asked to suspend, which frees the endpoint. It has no effect in request-response mode.",
	"Abort timeout":         "How long an attempt that was asked to suspend may take before its connection is closed. It must be longer than the longest work between two steps.",
	"Lazy state":            "Whether state is sent only when the handler reads it, rather than all of it with each attempt. Useful for large state of which little is read.",
	"Retries":               "How failed attempts are retried. After the last attempt, the invocation is paused until it is resumed, or killed.",
}
