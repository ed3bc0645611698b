package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

func (a *app) state() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:     "state",
		Aliases: []string{"kv"},
		Short:   "Show and change the state of objects and workflows",
		Long: `Shows and changes the state of objects and workflows. A change is queued like a handler: it is
applied when no handler holds the key, after the invocations that already wait. Objects and
workflows of a scope have separate state: --scope selects it. Keys are written service/key, or
as two arguments.`,
	}, a.stateGet(), a.stateEditor(), a.statePatch(), a.stateClear())
}

const stateHint = "`platform services list` shows services and their types; only objects and workflows have state."

func (a *app) stateGet() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "get <service/key>",
		Short:   "Show the state of a key",
		Args:    cobra.RangeArgs(1, 2),
		Example: "  platform state get Counter/alice\n  platform state get Counter/alice --plain | jq .value",
	}
	asJSON := command.JSONFlag(cmd.Flags())
	plain := cmd.Flags().BoolP("plain", "p", false, "print one JSON object of keys and values")
	binary := cmd.Flags().Bool("binary", false, "print all values in base64")
	scope := scopeFlag(cmd)
	a.Shows(cmd, func(ctx context.Context, args []string) error {
		object, err := objectOf(args, *scope)
		if err != nil {
			return err
		}
		state, response, err := a.Client.State(ctx, object)
		if err != nil {
			return a.serviceNotFound(ctx, err, object.Service, stateHint)
		}
		switch {
		case *asJSON:
			return a.PrintRaw(response.Body)
		case *plain:
			document, err := stateDocument(state.Entries, *binary)
			if err != nil {
				return err
			}
			return a.PrintRaw(document)
		}
		a.showState(object, &state, *binary)
		if len(state.Entries) == 0 {
			if err := a.hintHandler(ctx, object); err != nil {
				return err
			}
			return a.hintScopes(ctx, object)
		}
		return nil
	})
	return cmd
}

// scopeFlag adds the flag that names the scope of objects.
func scopeFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("scope", "", "scope of the object (default: no scope)")
}

// hintHandler says that a key without state ends with the name of a handler, if it does: keys of
// objects are written without one.
func (a *app) hintHandler(ctx context.Context, o client.Object) error {
	at := strings.LastIndexByte(o.Key, '/')
	if at < 1 {
		return nil
	}
	service, _, err := a.Client.Service(ctx, o.Service)
	if err != nil {
		return err
	}
	key, handler := o.Key[:at], o.Key[at+1:]
	if slices.ContainsFunc(service.Handlers, func(h client.Handler) bool { return h.Name == handler }) {
		a.Say("%s was read as the key. Without the handler %s: `platform state get %s`", term.Clean(o.Key), term.Clean(handler), word(o.Service+"/"+key))
	}
	return nil
}

// hintScopes names the scopes that have state of an object without state outside scopes.
func (a *app) hintScopes(ctx context.Context, o client.Object) error {
	if o.Scope != "" {
		return nil
	}
	query := "SELECT DISTINCT scope FROM state WHERE scope IS NOT NULL AND " + whereObject(o)
	found, err := a.Client.Query(ctx, query+" ORDER BY scope LIMIT 3")
	if err != nil || len(found.Rows) == 0 {
		return err
	}
	var scopes []string
	for _, row := range found.Rows {
		scopes = append(scopes, "--scope "+term.Clean(row.Text("scope")))
	}
	a.Say("Scopes with state of it: %s.", strings.Join(scopes, ", "))
	return nil
}

// whereObject is a condition on the table state: the service and, if there is one, the key.
func whereObject(o client.Object) string {
	condition := "service_name = " + client.Quote(o.Service)
	if o.Key != "" {
		condition += " AND service_key = " + client.Quote(o.Key)
	}
	return condition
}

func (a *app) showState(o client.Object, state *client.State, binary bool) {
	a.Print.Heading("State")
	fields := []term.Field{{Name: "Service", Value: term.Clean(o.Service)}, {Name: "Key", Value: term.Clean(o.Key)}}
	if o.Scope != "" {
		fields = append(fields, term.Field{Name: "Scope", Value: term.Clean(o.Scope)})
	}
	a.Print.Fields("  ", append(fields, term.Field{Name: "Version", Value: state.Version})...)
	if len(state.Entries) == 0 {
		a.Print.Println("\n  There is no state.")
		return
	}
	rows := make([][]string, len(state.Entries))
	for i, e := range state.Entries {
		rows[i] = []string{term.Clean(e.Key), valueText(e.Value, binary)}
	}
	a.Print.Println()
	a.Print.Table("  ", []string{"KEY", "VALUE"}, rows)
}

// valueText formats a value for display: JSON indented, other text unchanged, bytes in base64.
func valueText(value []byte, binary bool) string {
	if !binary && json.Valid(value) {
		var indented strings.Builder
		encoder := json.NewEncoder(&indented)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if encoder.Encode(json.RawMessage(value)) == nil {
			return term.Clean(strings.TrimSpace(indented.String()))
		}
	}
	return base64.StdEncoding.EncodeToString(value)
}

// stateDocument is state as a JSON object: values as JSON, or in base64.
func stateDocument(entries []client.StateEntry, binary bool) ([]byte, error) {
	document := map[string]any{}
	for _, e := range entries {
		switch {
		case binary:
			document[e.Key] = e.Value
		case json.Valid(e.Value):
			document[e.Key] = json.RawMessage(e.Value)
		default:
			return nil, command.WithHint(fmt.Errorf("the value of %q is not JSON", e.Key), "With --binary, values are shown and edited in base64.")
		}
	}
	return json.MarshalIndent(document, "", "  ")
}

// parseDocument parses a state document. Values that are equal as JSON keep their bytes.
func parseDocument(document []byte, before []client.StateEntry, binary bool) ([]client.StateEntry, error) {
	var entries []client.StateEntry
	if binary {
		var values map[string][]byte
		if err := json.Unmarshal(document, &values); err != nil {
			return nil, fmt.Errorf("the state must be a JSON object with values in base64: %w", err)
		}
		for key, value := range values {
			entries = append(entries, client.StateEntry{Key: key, Value: value})
		}
		return entries, nil
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(document, &values); err != nil {
		return nil, fmt.Errorf("the state must be a JSON object: %w", err)
	}
	for key, value := range values {
		for _, e := range before {
			if e.Key == key && sameJSON(e.Value, value) {
				value = e.Value
			}
		}
		entries = append(entries, client.StateEntry{Key: key, Value: value})
	}
	return entries, nil
}

func sameJSON(a, b []byte) bool { return compacted(a) == compacted(b) }

// compacted is JSON without spaces; text that is not JSON is unchanged.
func compacted(raw []byte) string {
	var v any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if decoder.Decode(&v) != nil {
		return string(raw)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(b)
}
