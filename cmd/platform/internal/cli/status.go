package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/client"
	"platform/cmd/platform/internal/term"
)

// statusOptions are the flags of services status.
type statusOptions struct {
	keys    int
	heldFor int // seconds
	samples int
	asJSON  *bool
}

// mostCounted bounds how many invocations are read for a status.
const mostCounted = 20_000

func (a *app) servicesStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [name]",
		Short: "Show what services are busy with",
		Long: `Counts the invocations of every handler that are not completed, and shows the keys
of objects that are held and for how long. With a name it also shows the newest
invocations of that service.`,
		Args:    cobra.MaximumNArgs(1),
		Example: "  platform services status\n  platform services status Counter --locked-keys-limit 20\n  platform services status --watch",
	}
	var o statusOptions
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&o.keys, "locked-keys-limit", 5, "keys to show of a service")
	flags.IntVar(&o.heldFor, "locked-key-held-threshold-second", 5, "note keys held for longer than this many `seconds`")
	flags.IntVar(&o.samples, "sample-invocations-limit", 5, "invocations to show of one service")
	o.asJSON = jsonFlag(flags)
	a.shows(cmd, func(ctx context.Context, args []string) error { return a.status(ctx, args, o) })
	return cmd
}

func (a *app) status(ctx context.Context, names []string, o statusOptions) error {
	services, err := a.servicesNamed(ctx, names)
	if err != nil {
		return err
	}
	open, more, err := a.collect(ctx, client.Query{Service: names, Status: openStatuses, Limit: mostCounted, OldestFirst: true}, nil)
	if err != nil {
		return err
	}
	list := make([]serviceStatus, len(services))
	for i, s := range sorted(services) {
		list[i] = statusOf(s, open)
	}
	if *o.asJSON {
		return a.printJSON(map[string]any{"services": list, "complete": !more})
	}
	if len(list) == 0 {
		a.say("No services. Register a deployment: platform deployments register <address>")
		return nil
	}
	a.showStatus(list, o)
	if more {
		a.say("%s", a.hint.Dim(fmt.Sprintf("There are more invocations; the oldest %d were counted.", mostCounted)))
	}
	if len(names) == 0 || o.samples == 0 {
		return nil
	}
	newest, more, err := a.collect(ctx, client.Query{Service: names, Limit: o.samples}, nil)
	if err != nil {
		return err
	}
	a.print.Println()
	a.print.Heading("Recent Invocations")
	a.listInvocations(newest, more, selection{all: true})
	return nil
}

func (a *app) servicesNamed(ctx context.Context, names []string) ([]client.Service, error) {
	if len(names) == 0 {
		services, _, err := a.client.Services(ctx)
		return services, err
	}
	service, _, err := a.client.Service(ctx, names[0])
	return []client.Service{service}, hintNotFound(err, "`platform services list` shows the services there are.")
}

// serviceStatus is what a service is busy with.
type serviceStatus struct {
	Name     string          `json:"name"`
	Handlers []handlerStatus `json:"handlers"`
	Keys     []keyStatus     `json:"active_keys,omitempty"` // the longest queue first
}

type handlerStatus struct {
	Name   string         `json:"name"`
	Counts map[string]int `json:"counts"` // by status
	// Oldest is the oldest one that is not suspended, nil if there is none.
	Oldest *client.Invocation `json:"-"`
	// OldestID names it.
	OldestID string `json:"oldest_non_suspended,omitempty"`
}

type keyStatus struct {
	Key    string             `json:"key"`
	Scope  string             `json:"scope,omitempty"`
	Queue  int                `json:"queue"`
	Holder *client.Invocation `json:"-"` // nil if none is known
	HeldBy string             `json:"held_by,omitempty"`
}

// statusOf sorts the invocations of a service, which come the oldest first, by
// handler and by key.
func statusOf(s client.Service, open []found) serviceStatus {
	status := serviceStatus{Name: s.Name, Handlers: make([]handlerStatus, len(s.Handlers))}
	exclusive := map[string]bool{}
	for i, h := range s.Handlers {
		status.Handlers[i] = handlerStatus{Name: h.Name, Counts: map[string]int{}}
		exclusive[h.Name] = h.Type == "Exclusive"
	}
	keys := map[[2]string]*keyStatus{} // by scope and key
	for i := range open {
		inv := &open[i].Invocation
		at := slices.IndexFunc(status.Handlers, func(h handlerStatus) bool { return h.Name == inv.TargetHandlerName })
		if inv.TargetServiceName != s.Name || at < 0 {
			continue
		}
		h := &status.Handlers[at]
		h.Counts[inv.Status]++
		if h.Oldest == nil && inv.Status != "suspended" {
			h.Oldest, h.OldestID = inv, inv.ID
		}
		if exclusive[h.Name] && inv.Status != "scheduled" {
			k := keys[[2]string{inv.Scope, inv.TargetServiceKey}]
			if k == nil {
				k = &keyStatus{Key: inv.TargetServiceKey, Scope: inv.Scope}
				keys[[2]string{inv.Scope, inv.TargetServiceKey}] = k
			}
			k.add(inv)
		}
	}
	for _, k := range keys {
		status.Keys = append(status.Keys, *k)
	}
	slices.SortFunc(status.Keys, func(a, b keyStatus) int {
		return cmp.Or(b.Queue-a.Queue, cmp.Compare(a.Key, b.Key), cmp.Compare(a.Scope, b.Scope))
	})
	return status
}

// add counts an invocation that waits for the key or holds it.
func (k *keyStatus) add(inv *client.Invocation) {
	if inv.Status == "pending" {
		k.Queue++
		return
	}
	k.Holder, k.HeldBy = inv, inv.ID
}

// columns of the summary, in the order of an invocation's life.
var statusColumns = []string{"pending", "scheduled", "ready", "running", "backing-off", "suspended", "paused"}

func (a *app) showStatus(list []serviceStatus, o statusOptions) {
	a.print.Heading("Summary")
	header := []string{"SERVICE", "HANDLER"}
	for _, column := range statusColumns {
		header = append(header, strings.ToUpper(column))
	}
	var rows, keys [][]string
	for _, s := range list {
		for i, h := range s.Handlers {
			row := []string{"", term.Clean(h.Name)}
			if i == 0 {
				row[0] = term.Clean(s.Name)
			}
			for _, column := range statusColumns {
				row = append(row, countText(h.Counts[column]))
			}
			rows = append(rows, append(row, a.oldest(h.Oldest)))
		}
		for _, k := range s.Keys[:min(len(s.Keys), o.keys)] {
			keys = append(keys, a.keyRow(s.Name, k, time.Duration(o.heldFor)*time.Second))
		}
		if left := len(s.Keys) - o.keys; left > 0 {
			keys = append(keys, []string{term.Clean(s.Name), fmt.Sprintf("(%d more keys)", left)})
		}
	}
	a.print.Table("", append(header, "OLDEST NOT SUSPENDED"), rows)
	if len(keys) > 0 {
		a.print.Println()
		a.print.Heading("Active Keys")
		a.print.Table("", []string{"SERVICE", "KEY", "QUEUE", "HELD-BY", "HANDLER", "NOTES"}, keys)
	}
}

// countText leaves zeros out, so that the eye finds the rest.
func countText(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func (a *app) oldest(inv *client.Invocation) string {
	if inv == nil {
		return "-"
	}
	return inv.ID + " " + a.statusText(*inv)
}

func (a *app) keyRow(service string, k keyStatus, threshold time.Duration) []string {
	row := []string{term.Clean(service), term.Clean(inScope(k.Key, k.Scope)), countText(k.Queue), "-", "-", ""}
	inv := k.Holder
	if inv == nil {
		return row
	}
	row[3], row[4] = inv.ID, term.Clean(inv.TargetHandlerName)
	var notes []string
	if since := inv.RunningAt; !since.IsZero() && time.Since(since) > threshold {
		notes = append(notes, "held for "+term.Duration(time.Since(since)))
	}
	if inv.Status != "running" {
		notes = append(notes, a.statusText(*inv))
	}
	if inv.LastFailureErrorCode != "" {
		notes = append(notes, inv.LastFailureErrorCode)
	}
	row[5] = strings.Join(notes, ", ")
	return row
}
