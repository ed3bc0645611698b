package kafka

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/ids"
	"platform/internal/subscription"
	"platform/internal/target"
	"platform/partition/machine"
)

// routing defines which invocations the records of a stream become.
type routing struct {
	Service  string      `json:"service"`
	Handler  string      `json:"handler"`
	Type     target.Type `json:"type"`
	Scope    string      `json:"scope,omitempty"`
	LimitKey string      `json:"limit_key,omitempty"`

	scope, limitKey subscription.Template // of the texts above
}

func (r *routing) parse() (err error) {
	if r.scope, err = subscription.ParseTemplate(r.Scope); err == nil {
		r.limitKey, err = subscription.ParseTemplate(r.LimitKey)
	}
	return err
}

func (r *routing) equal(other *routing) bool {
	return r.Service == other.Service && r.Handler == other.Handler && r.Type == other.Type && r.Scope == other.Scope && r.LimitKey == other.LimitKey
}

// samePartitions reports whether records go to the same partitions with both.
func (r *routing) samePartitions(other *routing) bool {
	return r.Scope == other.Scope && (r.Scope != "" || r.Type.Keyed() == other.Type.Keyed())
}

// routes is what a stream stores about its routing. A change that assigns records to other
// partitions begins another generation: see stream.reroute.
type routes struct {
	// Generation is that of Current. The next one is announced to partitions while Announcing
	// is set; no record was sent in it.
	Generation uint64          `json:"generation,omitempty"`
	Announcing bool            `json:"announcing,omitempty"`
	Current    *routing        `json:"current"` // nil: nothing was sent yet
	Earlier    []formerRouting `json:"earlier,omitempty"`
}

// formerRouting is the routing of an earlier generation, of which no more records are stored.
type formerRouting struct {
	routing
	// Stored has the offsets of the last records by partition, without those that every
	// later generation is past.
	Stored map[uint32]int64 `json:"stored"`
}

func (r *routes) String() string {
	b, _ := json.Marshal(r) // it cannot fail
	return string(b)
}

// parseRoutes parses the text that a position has; it is empty before anything was sent.
func parseRoutes(text string) (r routes, err error) {
	if text == "" {
		return r, nil
	}
	if err = json.Unmarshal([]byte(text), &r); err == nil && r.Current != nil {
		err = r.Current.parse()
	}
	for i := range r.Earlier {
		if err == nil {
			err = r.Earlier[i].parse()
		}
	}
	if err != nil {
		err = fmt.Errorf("routing of a stream: %w", err)
	}
	return r, err
}

// prune returns earlier routings without offsets that the position has passed.
func prune(earlier []formerRouting, next int64) []formerRouting {
	var kept []formerRouting
	for _, f := range earlier {
		f.Stored = maps.Clone(f.Stored)
		maps.DeleteFunc(f.Stored, func(_ uint32, last int64) bool { return last < next })
		if len(f.Stored) > 0 {
			kept = append(kept, f)
		}
	}
	return slices.Clip(kept)
}

// stored returns the invocation that a record became in an earlier generation; false if it
// became none.
func (r *routes) stored(c *converter, stream *machine.Stream, rec *kgo.Record) (to uint32, id ids.Invocation, ok bool) {
	for i := range r.Earlier {
		f := &r.Earlier[i]
		inv := machine.Invoke{Target: machine.Target{Service: f.Service, Handler: f.Handler, Type: f.Type}}
		if c.key(&inv, rec) != nil || c.scope(&inv, &f.routing, rec) != nil {
			continue // so it was not sent
		}
		id := invocationID(stream, &inv.Target, rec.Offset)
		to := machine.PartitionOf(id.PartitionKey(), c.cfg.Partitions.Count())
		if last, some := f.Stored[to]; some && rec.Offset <= last {
			return to, id, true
		}
	}
	return 0, id, false
}
