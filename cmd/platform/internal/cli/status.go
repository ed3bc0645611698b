package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"platform/cmd/platform/internal/cli/command"
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

func (a *app) servicesStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [name]",
		Short: "Show the activity of services",
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
	o.asJSON = command.JSONFlag(flags)
	a.Shows(cmd, func(ctx context.Context, args []string) error { return a.status(ctx, args, o) })
	return cmd
}

func (a *app) status(ctx context.Context, names []string, o statusOptions) error {
	services, err := a.servicesNamed(ctx, names)
	if err != nil {
		return err
	}
	list, err := a.busy(ctx, sorted(services), o.keys)
	if err != nil {
		return err
	}
	if *o.asJSON {
		return a.PrintJSON(map[string]any{"services": list})
	}
	if len(list) == 0 {
		a.Say("No services. Register a deployment: platform deployments register <address>")
		return nil
	}
	a.showStatus(list, o)
	if len(names) == 0 || o.samples == 0 {
		return nil
	}
	newest, more, err := a.collect(ctx, client.Query{Filter: client.Filter{Service: names}, Limit: o.samples}, nil)
	if err != nil {
		return err
	}
	a.Print.Println()
	a.Print.Heading("Recent Invocations")
	a.listInvocations(newest, more, selection{active: true})
	return nil
}

func (a *app) servicesNamed(ctx context.Context, names []string) ([]client.Service, error) {
	if len(names) == 0 {
		services, _, err := a.Client.Services(ctx)
		return services, err
	}
	service, _, err := a.Client.Service(ctx, names[0])
	return []client.Service{service}, a.serviceNotFound(ctx, err, names[0], servicesHint)
}

// serviceStatus is the activity of a service.
type serviceStatus struct {
	Name     string          `json:"name"`
	Handlers []handlerStatus `json:"handlers"`
	Keys     []keyStatus     `json:"active_keys,omitempty"` // the longest queue first
	// AllKeys is the number of active keys.
	AllKeys int `json:"num_active_keys,omitempty"`
}

type handlerStatus struct {
	Name   string         `json:"name"`
	Counts map[string]int `json:"counts"` // by status
	// Oldest is the start of the oldest invocation that is not suspended, nil if there is none.
	Oldest *client.Invocation `json:"-"`
	// OldestID is its id.
	OldestID string `json:"oldest_non_suspended,omitempty"`
}

type keyStatus struct {
	Key    string             `json:"key"`
	Scope  string             `json:"scope,omitempty"`
	Queue  int                `json:"queue"`
	Holder *client.Invocation `json:"-"` // nil if none is known
	HeldBy string             `json:"held_by,omitempty"`
}

// busy requests the activity of services, and up to limit keys of each.
func (a *app) busy(ctx context.Context, services []client.Service, limit int) ([]serviceStatus, error) {
	names := make([]string, len(services))
	for i, s := range services {
		names[i] = s.Name
	}
	if len(names) == 0 {
		return []serviceStatus{}, nil
	}
	counts, err := a.Client.HandlerCounts(ctx, names, openStatuses)
	if err != nil {
		return nil, err
	}
	list := make([]serviceStatus, len(services))
	exclusive := map[string][]string{}
	for i, s := range services {
		list[i] = serviceStatus{Name: s.Name, Handlers: make([]handlerStatus, len(s.Handlers))}
		for j, h := range s.Handlers {
			status := &list[i].Handlers[j]
			*status = handlerStatus{Name: h.Name, Counts: map[string]int{}}
			if err := a.count(ctx, s.Name, status, counts); err != nil {
				return nil, err
			}
			if h.Type == "Exclusive" {
				exclusive[s.Name] = append(exclusive[s.Name], h.Name)
			}
		}
	}
	if len(exclusive) == 0 {
		return list, nil
	}
	return list, a.busyKeys(ctx, list, exclusive, limit)
}

// count adds the counts of a handler and determines its oldest invocation.
func (a *app) count(ctx context.Context, service string, h *handlerStatus, counts []client.HandlerCount) error {
	for i := range counts {
		c := &counts[i]
		if c.Service != service || c.Handler != h.Name {
			continue
		}
		h.Counts[c.Status] = c.Count
		if c.Status == "suspended" {
			continue
		}
		inv, err := a.Client.InvocationRow(ctx, c.Oldest)
		if err != nil {
			return err
		}
		if inv != nil && (h.Oldest == nil || inv.CreatedAt.Before(h.Oldest.CreatedAt)) {
			h.Oldest, h.OldestID = inv, inv.ID
		}
	}
	return nil
}

// busyKeys adds the keys that handlers hold or wait for.
func (a *app) busyKeys(ctx context.Context, list []serviceStatus, handlers map[string][]string, limit int) error {
	started := slices.DeleteFunc(slices.Clone(openStatuses), func(s string) bool { return s == "scheduled" })
	keys, err := a.Client.BusyKeys(ctx, handlers, started, limit)
	if err != nil {
		return err
	}
	for _, k := range keys {
		at := slices.IndexFunc(list, func(s serviceStatus) bool { return s.Name == k.Service })
		if at < 0 {
			continue
		}
		status := keyStatus{Key: k.Key, Scope: k.Scope, Queue: k.Queue, HeldBy: k.Holder}
		if k.Holder != "" {
			if status.Holder, err = a.Client.InvocationRow(ctx, k.Holder); err != nil {
				return err
			}
		}
		list[at].Keys = append(list[at].Keys, status)
		list[at].AllKeys = k.All
	}
	return nil
}

// statusColumns are the columns of the summary, in the order of an invocation's life.
var statusColumns = []string{"pending", "scheduled", "ready", "running", "backing-off", "suspended", "paused"}

func (a *app) showStatus(list []serviceStatus, o statusOptions) {
	a.Print.Heading("Summary")
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
		for _, k := range s.Keys {
			keys = append(keys, a.keyRow(s.Name, k, time.Duration(o.heldFor)*time.Second))
		}
		if left := s.AllKeys - len(s.Keys); left > 0 {
			keys = append(keys, []string{term.Clean(s.Name), fmt.Sprintf("(%d more keys)", left)})
		}
	}
	a.Print.Table("", append(header, "OLDEST-NOT-SUSPENDED"), rows)
	if len(keys) > 0 {
		a.Print.Println()
		a.Print.Heading("Active Keys")
		a.Print.Table("", []string{"SERVICE", "KEY", "QUEUE", "HELD-BY", "HANDLER", "NOTES"}, keys)
	}
}

// countText omits zeros, so that other numbers stand out.
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
