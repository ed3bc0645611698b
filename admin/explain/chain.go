package explain

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// maxChain limits the number of other invocations in a chain.
const maxChain = 12

// Follow adds to an explanation what the awaited invocations wait for themselves, in breadth-first
// order.
func Follow(ctx context.Context, r Reader, e *Explanation, now time.Time) error {
	type link struct {
		wait *Wait
		path []string // IDs of the invocations from the explained one to this wait
	}
	var links []link
	add := func(waits []Wait, path []string) {
		for i := range waits {
			links = append(links, link{&waits[i], path})
		}
	}
	add(e.WaitingFor, []string{e.ID})
	explained := map[string]bool{e.ID: true}
	for ; len(links) > 0; links = links[1:] {
		wait, path := links[0].wait, links[0].path
		if wait.Kind != ForInvocation && wait.Kind != ForObject || !strings.HasPrefix(wait.ID, "inv_") {
			continue
		}
		if slices.Contains(path, wait.ID) {
			wait.Cycle = true
			continue
		}
		if explained[wait.ID] || len(explained) > maxChain {
			continue
		}
		explained[wait.ID] = true
		other, err := Invocation(ctx, r, wait.ID, now)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		wait.Target, wait.Status, wait.Summary, wait.WaitingFor = other.Target, other.Status, other.Summary, other.WaitingFor
		add(wait.WaitingFor, append(slices.Clip(path), wait.ID))
	}
	return nil
}
