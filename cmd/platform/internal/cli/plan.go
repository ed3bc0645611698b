package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

// plan is what a registration would change.
type plan struct {
	added   []client.Service
	updated []update
	removed []client.Service
}

// update is a service whose revision changes; before is the latest revision, or
// the one that is replaced in place.
type update struct{ before, after client.Service }

// showPlan prints, on stderr, what registering the deployment changes. replaced
// tells that a known deployment is overwritten.
func (a *app) showPlan(ctx context.Context, planned client.Deployment, replaced bool) error {
	latest, _, err := a.client.Services(ctx)
	if err != nil {
		return err
	}
	var old []client.Service
	if replaced {
		before, _, err := a.client.Deployment(ctx, planned.ID)
		if err != nil {
			return err
		}
		old = before.Services
		a.hint.Box(
			"This replaces deployment "+planned.ID+" in place.",
			"Invocations in flight on it may be unable to continue with the new code.",
		)
	}
	a.printPlan(makePlan(latest, old, planned.Services))
	return nil
}

// printPlan prints services and their handlers, those that come or go marked.
func (a *app) printPlan(p plan) {
	a.section("ADDED", len(p.added), a.hint.Green)
	for _, s := range p.added {
		a.hint.Printf("  %s %s (%s)\n", a.hint.Green("+"), a.hint.Bold(term.Clean(s.Name)), s.Type)
		a.handlerChanges(nil, s.Handlers)
	}
	a.section("UPDATED", len(p.updated), a.hint.Yellow)
	for _, u := range p.updated {
		a.hint.Printf("  %s %s (%s)  Revision: %s\n", a.hint.Yellow("~"), a.hint.Bold(term.Clean(u.after.Name)), typeChange(u), revisionChange(u))
		a.handlerChanges(u.before.Handlers, u.after.Handlers)
	}
	a.section("REMOVED", len(p.removed), a.hint.Red)
	for _, s := range p.removed {
		a.hint.Printf("  %s %s (%s)\n", a.hint.Red("-"), a.hint.Bold(term.Clean(s.Name)), s.Type)
	}
}

// makePlan compares what is planned with the latest revisions and, when a
// deployment is replaced, with what it served.
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
		a.hint.Printf("%s\n", style(fmt.Sprintf("%s (%d)", title, count)))
	}
}

// handlerChanges lists handlers, those that come or go marked.
func (a *app) handlerChanges(before, after []client.Handler) {
	had, has := handlerNames(before), handlerNames(after)
	for _, name := range has {
		mark := " "
		if before != nil && !slices.Contains(had, name) {
			mark = a.hint.Green("+")
		}
		a.hint.Printf("      %s %s\n", mark, name)
	}
	for _, name := range had {
		if !slices.Contains(has, name) {
			a.hint.Printf("      %s %s\n", a.hint.Red("-"), name)
		}
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
