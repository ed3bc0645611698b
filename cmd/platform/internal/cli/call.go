package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

// input are the flags that call and send share.
type input struct {
	data        string
	contentType string
	headers     []string
	idempotency string
	scope       string
	limitKey    string
	priority    int
}

func (i *input) bind(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVarP(&i.data, "data", "d", "", "the body, @file for a file's content, @- for stdin")
	flags.StringVar(&i.contentType, "content-type", "application/json", "content type of the body")
	flags.StringArrayVar(&i.headers, "header", nil, "request header `name=value` (repeatable)")
	flags.StringVar(&i.idempotency, "idempotency-key", "", "requests with the same key get the same invocation")
	flags.StringVar(&i.scope, "scope", "", "scope whose concurrency limits apply")
	flags.StringVar(&i.limitKey, "limit-key", "", "limit key within the scope, like tenant/user")
	flags.IntVar(&i.priority, "priority", 0, "priority in the queue of the scope, 0 to 9 (most urgent)")
}

// callOf returns the call that the arguments specify: target and, optionally, body.
func (a *app) callOf(i input, flags *pflag.FlagSet, args []string) (client.Call, error) {
	target, err := client.ParseTarget(args[0])
	if strings.Contains(args[0], "://") {
		return client.Call{}, command.UsageError(fmt.Sprintf("%q is not a handler: expected Service/handler or Service/key/handler; the address of the ingress is set with --ingress-url or PLATFORM_INGRESS_URL", args[0]))
	}
	if err != nil {
		return client.Call{}, command.UsageError(fmt.Sprintf("%q is not a handler: %s", args[0], err))
	}
	call := client.Call{Target: target, Header: http.Header{}}
	given := flags.Changed("data")
	switch {
	case given && len(args) > 1:
		return client.Call{}, command.UsageError("give the body as an argument or with --data, not both")
	case given:
		if call.Body, err = a.readData(i.data); err != nil {
			return client.Call{}, err
		}
	case len(args) > 1:
		call.Body = []byte(args[1])
	}
	if given || len(args) > 1 || flags.Changed("content-type") {
		call.Header.Set("Content-Type", i.contentType)
	}
	headers, err := parseHeaders("--header", i.headers)
	for name, value := range headers {
		call.Header.Set(name, value)
	}
	if err != nil {
		return client.Call{}, err
	}
	if flags.Changed("idempotency-key") {
		if i.idempotency == "" {
			return client.Call{}, command.UsageError("--idempotency-key is empty: give it a value, or leave it out")
		}
		call.Header.Set("Idempotency-Key", i.idempotency)
	}
	return call, i.bindScope(&call, flags)
}

// bindScope adds the flags that apply only within a scope.
func (i input) bindScope(call *client.Call, flags *pflag.FlagSet) error {
	call.Scope = i.scope
	for _, name := range []string{"scope", "limit-key", "priority"} {
		if flags.Changed(name) && i.scope == "" {
			return command.UsageError("--" + name + " needs a scope: --scope <name>")
		}
	}
	if i.priority < 0 || i.priority > 9 {
		return command.UsageError("--priority is a digit from 0 to 9 (most urgent)")
	}
	if flags.Changed("limit-key") {
		call.Header.Set("X-Platform-Limit-Key", i.limitKey)
	}
	if flags.Changed("priority") {
		call.Header.Set("X-Platform-Priority", strconv.Itoa(i.priority))
	}
	return nil
}

func (a *app) readData(data string) ([]byte, error) {
	name, isFile := strings.CutPrefix(data, "@")
	if !isFile {
		return []byte(data), nil
	}
	if name == "-" {
		body, err := io.ReadAll(a.In)
		if err != nil {
			return nil, fmt.Errorf("read the body from stdin: %w", err)
		}
		return body, nil
	}
	body, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	return body, nil
}

func (a *app) call() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "call <Service[/key]/handler> [body]",
		Short: "Call a handler and print its result",
		Args:  cobra.RangeArgs(1, 2),
		Example: `  platform call Greeter/greet '"World"'
  platform call Counter/my-key/add 5
  platform call Greeter/greet -d @body.json --idempotency-key order-17`,
	}
	var in input
	in.bind(cmd.Flags())
	asJSON := cmd.Flags().Bool("json", false, "print an object with the invocation id and the result")
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		call, err := a.callOf(in, cmd.Flags(), args)
		if err != nil {
			return err
		}
		begin := time.Now()
		stop := a.noticeLater(ctx, func(ctx context.Context) { a.sayWaitingCall(ctx, call, time.Since(begin)) })
		response, err := a.Client.Call(ctx, call)
		stop()
		if err != nil {
			return a.hintCall(ctx, err, call)
		}
		return a.result(response, *asJSON)
	})
	return cmd
}

func (a *app) send() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "send <Service[/key]/handler> [body]",
		Short: "Invoke a handler without waiting for its result",
		Args:  cobra.RangeArgs(1, 2),
		Example: `  platform send Greeter/greet '"World"'
  platform send Greeter/greet '"World"' --delay 10s
  platform send Mailer/deliver -d @mail.json --scope acme --limit-key eu --priority 5`,
	}
	var in input
	in.bind(cmd.Flags())
	delay := cmd.Flags().String("delay", "", "delay of the start, such as 10s or 1h 30m")
	asJSON := command.JSONFlag(cmd.Flags())
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		call, err := a.callOf(in, cmd.Flags(), args)
		if err != nil {
			return err
		}
		call.Delay = *delay
		response, err := a.Client.Send(ctx, call)
		if err != nil {
			return a.hintCall(ctx, err, call)
		}
		return a.sent(call, response, *asJSON)
	})
	return cmd
}

// hintCall adds what to do next to an error of a call or send.
func (a *app) hintCall(ctx context.Context, err error, call client.Call) error {
	target := call.Target.Service
	if call.Target.Keyed {
		target += "/" + call.Target.Key
	}
	if errors.Is(err, context.Canceled) {
		return command.WithHint(err, "If the invocation was accepted, it continues: `platform invocations list "+word(target)+" --active` shows it.")
	}
	if response, failed := errors.AsType[*client.APIError](err); failed && response.Source == "invocation" {
		return hintFailedCall(err, response, call)
	}
	lost, ok := errors.AsType[*client.UnreachableError](err)
	if !ok || !lost.Sent {
		response, refused := errors.AsType[*client.APIError](err)
		switch {
		case refused && strings.Contains(response.Message, "has no handler"):
			return command.HintNotFound(err, "`platform services describe "+term.Clean(call.Target.Service)+"` shows its handlers.")
		case refused && response.Status == http.StatusBadRequest && len(call.Body) == 0 && strings.Contains(response.Message, "a body with content-type"):
			return command.WithHint(err, "Give the body after the handler, such as '{\"id\": 7}', or with -d @file.")
		}
		return a.serviceNotFound(ctx, err, call.Target.Service, servicesHint)
	}
	hint := "The outcome is unknown: the handler may have been invoked. `platform invocations list " + word(target) + "` shows its invocations.\n" +
		"With --idempotency-key <key>, a command can be repeated safely: the handler runs once per key."
	if call.Header.Get("Idempotency-Key") != "" {
		hint = "The outcome is unknown: the handler may have been invoked. Run the command again with the same idempotency key: the handler runs once per key."
	}
	return command.WithHint(err, hint)
}

// hintFailedCall adds what to do next to the failure of an invocation.
func hintFailedCall(err error, response *client.APIError, call client.Call) error {
	switch {
	case response.Status == http.StatusConflict && strings.Contains(response.Message, "already invoked") && call.Target.Keyed:
		return command.WithHint(err, "A workflow runs once for each key. `platform workflows attach "+term.Clean(call.Target.Service+"/"+call.Target.Key)+"` waits for its result.")
	case response.Status == http.StatusBadRequest && len(call.Body) > 0 && !json.Valid(call.Body) && call.Header.Get("Content-Type") == "application/json":
		return command.WithHint(err, "The body is not JSON. Write text with quotes: '\"text\"'.")
	}
	return err
}

func (a *app) sent(call client.Call, response *client.Response, asJSON bool) error {
	if asJSON {
		return a.PrintRaw(response.Body)
	}
	var accepted struct {
		ID            string `json:"invocationId"`
		Status        string `json:"status"`
		ExecutionTime string `json:"executionTime"`
	}
	if err := json.Unmarshal(response.Body, &accepted); err != nil {
		return fmt.Errorf("unexpected response; is this the address of the ingress?: %w", err)
	}
	a.Print.Println(accepted.ID)
	note := "accepted"
	if accepted.Status == "PreviouslyAccepted" {
		note = "accepted before, with the same idempotency key"
		if call.Header.Get("Idempotency-Key") == "" {
			note = "accepted before: a workflow runs once for each key"
		}
	}
	if at, err := time.Parse(time.RFC3339Nano, accepted.ExecutionTime); err == nil {
		note += ", starts at " + a.Hint.Time(at)
	}
	a.Say("%s", a.Hint.Dim(note+"; wait for it with `platform attach "+accepted.ID+"`"))
	return nil
}

// result prints the result of a handler: unchanged into pipes, and on terminals with a line
// end and JSON indented.
func (a *app) result(response *client.Response, asJSON bool) error {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	isJSON := kind == "application/json" && json.Valid(response.Body)
	if asJSON {
		shown := struct {
			ID     string `json:"invocationId"`
			Output any    `json:"output"`
		}{ID: response.Header.Get("x-platform-id")}
		switch {
		case isJSON:
			shown.Output = json.RawMessage(response.Body)
		case len(response.Body) > 0 && utf8.Valid(response.Body):
			shown.Output = string(response.Body)
		case len(response.Body) > 0:
			shown.Output = response.Body // base64
		}
		return a.PrintJSON(shown)
	}
	if term.IsTerminal(a.Out) && isJSON {
		return a.PrintRaw(response.Body)
	}
	body := response.Body
	text := isJSON || strings.HasPrefix(kind, "text/")
	if text && len(body) > 0 && body[len(body)-1] != '\n' {
		body = append(body, '\n')
	}
	if _, err := a.Out.Write(body); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
