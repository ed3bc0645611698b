package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

// plan is the changes of a registration.
type plan struct {
	added   []client.Service
	updated []update
	removed []client.Service
}

// update is a service whose revision changes; before is the latest revision, or
// the one that is replaced in place.
type update struct{ before, after client.Service }

// showPlan prints, on stderr, what registering the deployment changes. replaced
// reports that a registered deployment is overwritten.
func (a *app) showPlan(ctx context.Context, planned client.Deployment, replaced bool) error {
	latest, _, err := a.Client.Services(ctx)
	if err != nil {
		return err
	}
	var old []client.Service
	if replaced {
		before, _, err := a.Client.Deployment(ctx, planned.ID)
		if err != nil {
			return err
		}
		old = before.Services
		a.Hint.Box(
			"This replaces deployment "+planned.ID+" in place.",
			"Invocations in flight on it may be unable to continue with the new code.",
		)
	}
	a.printPlan(makePlan(latest, old, planned.Services))
	return nil
}

// printPlan prints services, handlers and options, and marks additions, removals and changes.
func (a *app) printPlan(p plan) {
	a.section("ADDED", len(p.added), a.Hint.Green)
	for _, s := range p.added {
		a.Hint.Printf("  %s %s (%s)\n", a.Hint.Green("+"), a.Hint.Bold(term.Clean(s.Name)), s.Type)
		a.handlerChanges(nil, s.Handlers)
	}
	a.section("UPDATED", len(p.updated), a.Hint.Yellow)
	for _, u := range p.updated {
		changes := optionChanges(u)
		note := ""
		if len(changes) == 0 && sameHandlers(u.before.Handlers, u.after.Handlers) {
			note = a.Hint.Dim("  handlers, options and schemas are the same; code is not compared")
		}
		a.Hint.Printf("  %s %s (%s)  Revision: %s%s\n", a.Hint.Yellow("~"), a.Hint.Bold(term.Clean(u.after.Name)), typeChange(u), revisionChange(u), note)
		a.changeLines("      ", changes)
		a.handlerChanges(u.before.Handlers, u.after.Handlers)
	}
	a.section("REMOVED", len(p.removed), a.Hint.Red)
	for _, s := range p.removed {
		a.Hint.Printf("  %s %s (%s)\n", a.Hint.Red("-"), a.Hint.Bold(term.Clean(s.Name)), s.Type)
	}
}

// makePlan compares the planned services with the latest revisions and, when a deployment is
// replaced, with its previous services.
func makePlan(latest, old, planned []client.Service) plan {
	named := func(list []client.Service, name string) int {
		return slices.IndexFunc(list, func(s client.Service) bool { return s.Name == name })
	}
	var p plan
	for _, s := range sorted(planned) {
		if at := named(latest, s.Name); at >= 0 {
			p.updated = append(p.updated, update{latest[at], s})
		} else {
			p.added = append(p.added, s)
		}
	}
	for _, s := range sorted(old) {
		if named(planned, s.Name) < 0 {
			p.removed = append(p.removed, s)
		}
	}
	return p
}

func (a *app) section(title string, count int, style func(string) string) {
	if count > 0 {
		a.Hint.Printf("%s\n", style(fmt.Sprintf("%s (%d)", title, count)))
	}
}

// handlerChanges lists handlers, and marks additions, removals and changes.
func (a *app) handlerChanges(before, after []client.Handler) {
	had, has := handlerNames(before), handlerNames(after)
	for _, name := range has {
		mark, changes := " ", []string(nil)
		switch {
		case before == nil:
		case !slices.Contains(had, name):
			mark = a.Hint.Green("+")
		default:
			if changes = fieldChanges(handlerNamed(before, name).Fields, handlerNamed(after, name).Fields); len(changes) > 0 {
				mark = a.Hint.Yellow("~")
			}
		}
		a.Hint.Printf("      %s %s\n", mark, name)
		a.changeLines("          ", changes)
	}
	for _, name := range had {
		if !slices.Contains(has, name) {
			a.Hint.Printf("      %s %s\n", a.Hint.Red("-"), name)
		}
	}
}

func (a *app) changeLines(indent string, changes []string) {
	for _, change := range changes {
		a.Hint.Printf("%s%s %s\n", indent, a.Hint.Yellow("~"), term.Clean(change))
	}
}

// handlerNamed returns the handler with a name as handlerNames formats it.
func handlerNamed(list []client.Handler, name string) client.Handler {
	for _, h := range list {
		if term.Clean(h.Name) == name {
			return h
		}
	}
	return client.Handler{}
}

func sameHandlers(before, after []client.Handler) bool {
	if !slices.Equal(slices.Sorted(slices.Values(handlerNames(before))), slices.Sorted(slices.Values(handlerNames(after)))) {
		return false
	}
	for _, name := range handlerNames(after) {
		if len(fieldChanges(handlerNamed(before, name).Fields, handlerNamed(after, name).Fields)) > 0 {
			return false
		}
	}
	return true
}

// optionChanges lists what differs between two revisions of a service besides its type
// and handlers, and which changes of operators end.
func optionChanges(u update) []string {
	var changes []string
	all := fieldChanges(u.before.Fields, u.after.Fields)
	for _, change := range all {
		name, _, _ := strings.Cut(change, ":")
		name, _ = strings.CutSuffix(name, " changed")
		group, _, _ := strings.Cut(name, ".")
		if slices.Contains([]string{"ty", "revision", "deployment_id", "info", "server_defaults", "overridden"}, group) {
			continue
		}
		if slices.ContainsFunc(all, func(c string) bool {
			return strings.HasPrefix(c, "overridden."+name+":") && strings.HasSuffix(c, " -> none")
		}) {
			change += " (an operator had changed it)"
		}
		changes = append(changes, change)
	}
	return changes
}

// fieldChanges lists the fields that differ, as "name: old -> new".
func fieldChanges(before, after map[string]json.RawMessage) []string {
	was, is := map[string]string{}, map[string]string{}
	flatten("", before, was)
	flatten("", after, is)
	all := maps.Clone(was)
	maps.Copy(all, is)
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		old, now := cmp.Or(was[name], "none"), cmp.Or(is[name], "none")
		switch {
		case old == now:
		case len(old)+len(now) > longestChange:
			changes = append(changes, name+" changed")
		default:
			changes = append(changes, name+": "+old+" -> "+now)
		}
	}
	return changes
}

// longestChange bounds the total length of both values of a displayed change.
const longestChange = 100

// flatten formats fields as text; nested options are named group.name.
func flatten(prefix string, fields map[string]json.RawMessage, into map[string]string) {
	for name, raw := range fields {
		var group map[string]json.RawMessage
		if !strings.HasSuffix(name, "_schema") && len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &group) == nil {
			flatten(prefix+name+".", group, into)
			continue
		}
		var text string
		switch {
		case string(raw) == "null" && name == "max_attempts":
			text = "unlimited"
		case json.Unmarshal(raw, &text) != nil:
			text = compacted(raw)
		}
		into[prefix+name] = text
	}
}

func revisionChange(u update) string {
	if u.before.Revision == u.after.Revision {
		return strconv.Itoa(u.after.Revision)
	}
	return fmt.Sprintf("%d -> %d", u.before.Revision, u.after.Revision)
}

func typeChange(u update) string {
	if strings.EqualFold(u.before.Type, u.after.Type) {
		return u.after.Type
	}
	return u.before.Type + " -> " + u.after.Type
}
