package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
	"platform/internal/suggest"
	"platform/internal/units"
)

// stateEdit is a change in progress of the state of a key.
type stateEdit struct {
	object        client.Object
	scope         *string
	binary, force bool
	state         client.State
	document      []byte // the state as JSON
}

// changeFlags adds the flags of commands that change state.
func changeFlags(cmd *cobra.Command, c *stateEdit) {
	cmd.Flags().BoolVar(&c.binary, "binary", false, "values are in base64")
	cmd.Flags().BoolVarP(&c.force, "force", "f", false, "change the state even if it has changed in the meantime")
	c.scope = scopeFlag(cmd)
}

func (a *app) stateEditor() *cobra.Command {
	var c stateEdit
	cmd := &cobra.Command{
		Use:     "edit <service/key> [name=value]...",
		Aliases: []string{"set"},
		Short:   "Edit the state of a key",
		Long: `Sets entries of the state of a key: each name=value is an entry with a JSON value. Without
assignments it opens the state as JSON in an editor: PLATFORM_EDITOR, VISUAL or EDITOR. The
saved document becomes the state after a confirmation; removed entries are deleted. If a handler has
changed the state in the meantime, nothing is changed.`,
		Args: cobra.MinimumNArgs(1),
		Example: `  platform state edit Counter/alice
  platform state edit Counter/alice value=3 'unit="kg"'`,
	}
	changeFlags(cmd, &c)
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		object, assignments := splitAssignments(args)
		patch, err := assignmentPatch(assignments)
		if err != nil {
			return err
		}
		if err := a.readState(ctx, &c, object); err != nil {
			return err
		}
		if patch != nil {
			a.hintNewEntries(assignments, c.state.Entries)
			return a.patchState(ctx, &c, patch)
		}
		edited := c.document
		for {
			opened := edited
			var err error
			if edited, err = a.EditText(ctx, opened, "platform-state-*.json"); err != nil {
				return err
			}
			entries, err := parseDocument(edited, c.state.Entries, c.binary)
			if err == nil {
				return a.submit(ctx, &c, edited, entries)
			}
			if bytes.Equal(bytes.TrimSpace(edited), bytes.TrimSpace(opened)) { // an editor that does not correct the mistake
				return err
			}
			a.Say("%s", err)
			if err := a.Confirm("Edit again?"); err != nil {
				return err
			}
		}
	})
	return cmd
}

func (a *app) statePatch() *cobra.Command {
	var c stateEdit
	var patch string
	cmd := &cobra.Command{
		Use:   "patch <service/key>",
		Short: "Change the state of a key by a JSON patch",
		Long: `Changes the state of a key by a JSON patch: an array of operations (RFC 6902), or an object
whose members replace those of the state and whose nulls delete them (RFC 7396).`,
		Args: cobra.RangeArgs(1, 2),
		Example: `  platform state patch Counter/alice -p '[{"op":"replace","path":"/value","value":3}]'
  platform state patch Counter/alice -p '{"value":3,"old":null}'`,
	}
	cmd.Flags().StringVarP(&patch, "patch", "p", "", "the patch")
	_ = cmd.MarkFlagRequired("patch")
	changeFlags(cmd, &c)
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		if err := a.readState(ctx, &c, args); err != nil {
			return err
		}
		return a.patchState(ctx, &c, []byte(patch))
	})
	return cmd
}

// patchState applies a JSON patch to the state.
func (a *app) patchState(ctx context.Context, c *stateEdit, patch []byte) error {
	patched, err := applyPatch(c.document, patch)
	if err != nil {
		return command.WithHint(fmt.Errorf("the patch cannot be applied: %w", err), "`platform state get --plain` shows the document that it is applied to.")
	}
	entries, err := parseDocument(patched, c.state.Entries, c.binary)
	if err != nil {
		return err
	}
	return a.submit(ctx, c, patched, entries)
}

// splitAssignments separates the arguments that name an object, service/key or service and
// key, from the assignments after them.
func splitAssignments(args []string) (object, assignments []string) {
	n := 1
	if len(args) > 1 && !strings.Contains(args[0], "/") {
		n = 2
	}
	return args[:n], args[n:]
}

// assignmentPatch is the JSON patch that makes assignments name=value; nil if there are none.
func assignmentPatch(assignments []string) ([]byte, error) {
	if len(assignments) == 0 {
		return nil, nil
	}
	type operation struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	pointer := strings.NewReplacer("~", "~0", "/", "~1")
	var patch []operation
	for i, text := range assignments {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			example := ""
			if name != "" && i+1 < len(assignments) && !strings.Contains(assignments[i+1], "=") {
				example = "; write " + text + "=" + assignments[i+1]
			}
			return nil, command.UsageError(fmt.Sprintf("expected name=value after the key, got %q%s", text, example))
		}
		if !json.Valid([]byte(value)) {
			return nil, command.UsageError(fmt.Sprintf("the value of %q is not JSON; write text as '%s=\"…\"'", name, name))
		}
		patch = append(patch, operation{"add", "/" + pointer.Replace(name), json.RawMessage(value)})
	}
	return json.Marshal(patch)
}

// hintNewEntries notes which assignments make an entry whose name is similar to an existing one.
func (a *app) hintNewEntries(assignments []string, entries []client.StateEntry) {
	names := make([]string, len(entries))
	for i := range entries {
		names[i] = entries[i].Key
	}
	for _, text := range assignments {
		name, _, _ := strings.Cut(text, "=")
		if slices.Contains(names, name) {
			continue
		}
		if near := suggest.Nearest(name, names); near != "" {
			a.Say("%s is a new entry; did you mean %s?", term.Clean(name), term.Clean(near))
		}
	}
}

func (a *app) readState(ctx context.Context, c *stateEdit, args []string) (err error) {
	if c.object, err = objectOf(args, *c.scope); err != nil {
		return err
	}
	if c.state, _, err = a.Client.State(ctx, c.object); err != nil {
		return a.serviceNotFound(ctx, err, c.object.Service, stateHint)
	}
	c.document, err = stateDocument(c.state.Entries, c.binary)
	return err
}

// submit shows the new state and stores it after a confirmation.
func (a *app) submit(ctx context.Context, c *stateEdit, document []byte, entries []client.StateEntry) error {
	if sameJSON(c.document, document) {
		a.Say("Nothing was changed.")
		return nil
	}
	a.Print.Printf("New state of %s:\n%s\n", term.Clean(c.object.String()), term.Clean(strings.TrimSpace(string(document))))
	if err := a.Confirm("Store this state?"); err != nil {
		return err
	}
	version := c.state.Version
	if c.force {
		version = ""
	}
	made, err := a.Client.SetState(ctx, c.object, entries, version)
	if client.IsConflict(err) {
		return command.WithHint(err, "Read the current state and try again, or use --force.")
	}
	if err != nil {
		return err
	}
	a.told(ctx, c.object, made)
	return nil
}

// told reports a change of the state and, if it waits, which invocation it waits for.
func (a *app) told(ctx context.Context, object client.Object, made client.StateChange) {
	if made.Status == "applied" {
		a.Print.Printf("%s The state was changed.\n", a.Print.Green("[OK]:"))
		return
	}
	a.Print.Printf("%s The state update is queued and applied when the key is free (operation %s).\n", a.Print.Green("[OK]:"), made.ID)
	detail, _, err := a.Client.Object(ctx, object)
	if err != nil || detail.Holder == "" {
		return
	}
	remedy := ""
	if service, _, err := a.Client.Service(ctx, object.Service); err == nil && service.Type != "Workflow" { // which runs once
		remedy = " If it fails because of the state, `platform invocations kill %[1]s` ends it, and `platform invocations restart-as-new %[1]s` runs it again with the changed state."
	}
	a.Say("%[1]s holds the key: `platform explain %[1]s` shows why."+remedy, detail.Holder)
}

func (a *app) stateClear() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "clear <service[/key]>",
		Short:   "Delete the state of a key, or of all keys of a service",
		Args:    cobra.RangeArgs(1, 2),
		Example: "  platform state clear Counter/alice\n  platform state clear Counter --yes",
	}
	force := cmd.Flags().BoolP("force", "f", false, "delete the state even if it has changed in the meantime")
	scope := scopeFlag(cmd)
	cmd.RunE = command.Run(func(ctx context.Context, args []string) error {
		object := client.Object{Service: args[0], Scope: *scope}
		if len(args) > 1 || strings.Contains(args[0], "/") {
			var err error
			if object, err = objectOf(args, *scope); err != nil {
				return err
			}
		}
		return a.clearState(ctx, object, *force)
	})
	return cmd
}

// clearState deletes the state of an object or, if what has no key, of all objects of a
// service and a scope.
func (a *app) clearState(ctx context.Context, what client.Object, force bool) error {
	scope := "scope IS NULL"
	if what.Scope != "" {
		scope = "scope = " + client.Quote(what.Scope)
	}
	keys, err := a.Client.Query(ctx, "SELECT service_key, COUNT(*) AS entries, SUM(value_length) AS bytes FROM state WHERE "+
		scope+" AND "+whereObject(what)+" GROUP BY service_key ORDER BY service_key")
	if err != nil {
		return err
	}
	if len(keys.Rows) == 0 {
		a.Say("There is no state of %s.", term.Clean(what.String()))
		return a.hintScopes(ctx, what)
	}
	rows := make([][]string, len(keys.Rows))
	for i, row := range keys.Rows {
		rows[i] = []string{term.Clean(row.Text("service_key")), row.Text("entries"), row.Text("bytes")}
	}
	a.Print.Table("", []string{"KEY", "ENTRIES", "BYTES"}, rows)
	if err := a.Confirm(fmt.Sprintf("Delete the state of %s of %s?", units.Counted(len(keys.Rows), "key"), term.Clean(client.Object{Service: what.Service, Scope: what.Scope}.String()))); err != nil {
		return err
	}
	queued := 0
	for _, row := range keys.Rows {
		object, version := what, ""
		object.Key = row.Text("service_key")
		if !force {
			state, _, err := a.Client.State(ctx, object)
			if err != nil {
				return fmt.Errorf("key %s: %w", object.Key, err)
			}
			version = state.Version
		}
		made, err := a.Client.SetState(ctx, object, nil, version)
		if err != nil {
			return fmt.Errorf("key %s: %w", object.Key, err)
		}
		if made.Status != "applied" {
			queued++
		}
	}
	if queued == 0 {
		a.Print.Printf("%s The state was deleted.\n", a.Print.Green("[OK]:"))
		return nil
	}
	a.Print.Printf("%s The deletion is queued for %s and applied when the key is free.\n", a.Print.Green("[OK]:"), units.Counted(queued, "key"))
	return nil
}
