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
	"platform/internal/suggest"
)

const noResultHint = "It may have completed without its result being kept, or never have existed."

// attach is the short form of invocations attach and, with --output, of invocations output.
func (a *app) attach() *cobra.Command {
	noWait := false
	get := func(ctx context.Context, ref client.InvocationRef) (*client.Response, error) {
		if noWait {
			return a.outputOf(ctx, ref)
		}
		return a.waitFor(ctx, ref)
	}
	cmd := a.resultOfInvocation(get, &cobra.Command{
		Use:     "attach <invocation id | Service[/key]/handler>",
		Short:   "Wait for the result of an invocation and print it",
		Example: "  platform attach inv_1…\n  platform attach inv_1… --output\n  platform attach Greeter/greet --idempotency-key order-17",
	})
	cmd.Flags().BoolVar(&noWait, "output", false, "do not wait: print the result if there is one")
	return cmd
}

func (a *app) invocationsAttach() *cobra.Command {
	return a.resultOfInvocation(a.waitFor, &cobra.Command{
		Use:     "attach <invocation id | Service[/key]/handler>",
		Short:   "Wait for the result of an invocation and print it",
		Example: "  platform invocations attach inv_1…\n  platform invocations attach Counter/ada/add --idempotency-key order-17",
	})
}

func (a *app) invocationsOutput() *cobra.Command {
	return a.resultOfInvocation(a.outputOf, &cobra.Command{
		Use:     "output <invocation id | Service[/key]/handler>",
		Short:   "Print the result of an invocation, if it has one",
		Example: "  platform invocations output inv_1…",
	})
}

func (a *app) invocationsPayload() *cobra.Command {
	return &cobra.Command{
		Use:   "payload <invocation id> [entry]",
		Short: "Print the payload of a journal entry as it is; without an entry, the input",
		Long: `Prints the bytes that a journal entry contains: the input of the invocation, the result of a step or
call, the parameter of a call, a value that was set. 'platform invocations describe' shows the entries.
Payloads can be binary and large: redirect them to a file.`,
		Args:    cobra.RangeArgs(1, 2),
		Example: "  platform invocations payload inv_1…\n  platform invocations payload inv_1… 7 > result.json",
		RunE: command.Run(func(ctx context.Context, args []string) error {
			var index uint64
			if len(args) > 1 {
				var err error
				if index, err = strconv.ParseUint(args[1], 10, 32); err != nil {
					return command.UsageError(fmt.Sprintf("%q is not the number of a journal entry", args[1]))
				}
			}
			payload, err := a.Client.EntryPayload(ctx, args[0], uint32(index))
			if err != nil {
				return err
			}
			if _, err := a.Out.Write(payload); err != nil {
				return fmt.Errorf("write the payload: %w", err)
			}
			return nil
		}),
	}
}

// fetch returns the result of an invocation.
type fetch func(context.Context, client.InvocationRef) (*client.Response, error)

func (a *app) waitFor(ctx context.Context, ref client.InvocationRef) (*client.Response, error) {
	defer a.noticeLater(ctx, func(ctx context.Context) { a.sayWaitingRef(ctx, ref) })()
	return a.Client.Attach(ctx, ref)
}

func (a *app) outputOf(ctx context.Context, ref client.InvocationRef) (*client.Response, error) {
	response, err := a.Client.Output(ctx, ref)
	if client.IsNotReady(err) {
		err = command.WithHint(err, "It has no result yet. `"+attachCommand(ref)+"` waits for it.")
	}
	return response, err
}

// word is a word of a command that a message suggests, for the user's shell.
func word(argument string) string { return suggest.Word(term.Clean(argument)) }

// attachCommand is the command that waits for the result of an invocation.
func attachCommand(ref client.InvocationRef) (command string) {
	switch {
	case ref.ID != "":
		return "platform attach " + word(ref.ID)
	case ref.IdempotencyKey != "":
		command = "platform attach " + word(ref.Target.String()) + " --idempotency-key " + word(ref.IdempotencyKey)
	default:
		command = "platform workflows attach " + word(ref.Target.Service+"/"+ref.Target.Key)
	}
	if ref.Scope != "" {
		command += " --scope " + word(ref.Scope)
	}
	return command
}

// resultOfInvocation returns a command that prints the result of an invocation, named by
// its id, or by target and idempotency key.
func (a *app) resultOfInvocation(get fetch, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	key := cmd.Flags().String("idempotency-key", "", "the invocation of the handler with this idempotency key")
	scope := cmd.Flags().String("scope", "", "scope of the invocation (with --idempotency-key)")
	asJSON := cmd.Flags().Bool("json", false, "print an object with the invocation id and the result")
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		ref := client.InvocationRef{ID: args[0]}
		switch target, err := client.ParseTarget(args[0]); {
		case *key != "":
			if err != nil {
				return command.UsageError(fmt.Sprintf("--idempotency-key needs a handler, got %q: %s", args[0], err))
			}
			ref = client.InvocationRef{Target: target, IdempotencyKey: *key, Scope: *scope}
		case *scope != "":
			return command.UsageError("--scope needs --idempotency-key; an invocation id alone is unique in all scopes")
		case err == nil && target.Keyed && a.isWorkflow(ctx, target.Service, target.Handler):
			ref = client.InvocationRef{Target: target}
		case err == nil:
			return command.UsageError(fmt.Sprintf("%q names a handler, not an invocation: specify an invocation id, or --idempotency-key", args[0]))
		}
		return a.printResult(ctx, get, ref, *asJSON)
	})
	return cmd
}

func (a *app) printResult(ctx context.Context, get fetch, ref client.InvocationRef, asJSON bool) error {
	response, err := get(ctx, ref)
	if err != nil {
		return command.HintNotFound(err, noResultHint)
	}
	return a.result(response, asJSON)
}

func (a *app) workflows() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "workflows",
		Aliases: []string{"workflow", "wf"},
		Short:   "List the runs of workflows and print their results",
		Long: `Lists the runs of workflows and prints their results. 'platform send Workflow/key/run' starts one,
'platform promises list' shows its promises, 'platform invocations list Workflow/key' all its invocations.`,
	},
		a.workflowsList(),
		a.resultOfWorkflow(a.waitFor, &cobra.Command{
			Use: "attach <Workflow/key>", Short: "Wait for the result of a workflow and print it", Example: "  platform workflows attach Signup/ada",
		}),
		a.resultOfWorkflow(a.outputOf, &cobra.Command{
			Use: "output <Workflow/key>", Short: "Print the result of a workflow, if it has one", Example: "  platform workflows output Signup/ada",
		}))
}

func (a *app) resultOfWorkflow(get fetch, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.RangeArgs(1, 2)
	scope := cmd.Flags().String("scope", "", "scope of the workflow (default: none)")
	asJSON := cmd.Flags().Bool("json", false, "print an object with the invocation id and the result")
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		object, err := objectOf(args, *scope)
		if err != nil {
			return err
		}
		ref := client.InvocationRef{Target: client.Target{Service: object.Service, Key: object.Key, Keyed: true}, Scope: *scope}
		response, err := get(ctx, ref)
		if err != nil {
			return a.hintWorkflow(ctx, err, ref)
		}
		return a.result(response, *asJSON)
	})
	return cmd
}

// isWorkflow reports whether a handler is the run of a workflow.
func (a *app) isWorkflow(ctx context.Context, service, handler string) bool {
	s, _, err := a.Client.Service(ctx, service)
	return err == nil && slices.ContainsFunc(s.Handlers, func(h client.Handler) bool { return h.Name == handler && h.Type == "Workflow" })
}

// hintWorkflow explains why there is no such workflow.
func (a *app) hintWorkflow(ctx context.Context, err error, ref client.InvocationRef) error {
	if command.HintNotFound(err, "") == err { //nolint:errorlint // other errors are returned unchanged
		return err
	}
	name, key := ref.Target.Service, ref.Target.Key
	service, _, lookup := a.Client.Service(ctx, name)
	switch {
	case client.IsNotFound(lookup):
		return command.WithHint(fmt.Errorf("there is no workflow %s", term.Clean(name)), a.nearestService(ctx, name, servicesHint))
	case lookup != nil:
		return command.HintNotFound(err, noResultHint)
	case service.Type != "Workflow":
		return command.WithHint(fmt.Errorf("%s is not a workflow but a %s", term.Clean(name), service.Type), "`platform attach <invocation id>` waits for the result of an invocation.")
	}
	for _, h := range service.Handlers {
		if before, found := strings.CutSuffix(key, "/"+h.Name); found {
			return command.WithHint(fmt.Errorf("no run of %s has the key %q", term.Clean(name), term.Clean(key)), "The argument is Workflow/key, without a handler: "+term.Clean(name+"/"+before)+".")
		}
	}
	return command.WithHint(fmt.Errorf("no run of %s has the key %q", term.Clean(name), term.Clean(key)),
		"It was never started, or its retention time is over. `platform send "+term.Clean(name+"/"+key)+"/run` starts it.")
}

// objectOf parses the name of an object or workflow: Service/key, or both as separate
// arguments. The key may contain slashes.
func objectOf(args []string, scope string) (client.Object, error) {
	object := client.Object{Service: args[0], Scope: scope}
	if len(args) > 1 && strings.Contains(args[0], "/") {
		return client.Object{}, command.UsageError(fmt.Sprintf("%q is a service and a key, so %q is one argument too many", args[0], args[1]))
	}
	if len(args) > 1 {
		object.Key = args[1]
		return object, nil
	}
	service, key, keyed := strings.Cut(args[0], "/")
	if !keyed || service == "" || key == "" {
		return client.Object{}, command.UsageError(fmt.Sprintf("expected Service/key, got %q", args[0]))
	}
	object.Service, object.Key = service, key
	return object, nil
}
