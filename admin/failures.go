package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/admin/subscriptions"
	"platform/internal/ids"
	"platform/partition/listing"
)

// FailureGroup is a group of invocations that failed for the same reason: they completed with a
// failure, were paused after one, or are being retried. Cancelled and killed invocations are not
// included.
type FailureGroup struct {
	ID          string           `json:"id"` // fg_…, a hash of service, handler, codes and message
	Service     string           `json:"service"`
	Handler     string           `json:"handler"`
	ErrorCode   string           `json:"error_code,omitempty"` // catalogue code such as RT0007
	Code        uint32           `json:"code"`
	Message     string           `json:"message"` // numbers, IDs and quoted values are replaced by ?
	Sample      string           `json:"sample_invocation_id"`
	Count       int              `json:"count"`
	ByStatus    map[Status]int   `json:"by_status"`
	Keys        int              `json:"keys"` // of objects and workflows; at most 1,000 per partition are counted
	FirstSeen   rest.Timestamp   `json:"first_seen"`
	LastSeen    rest.Timestamp   `json:"last_seen"`
	Deployments []ids.Deployment `json:"deployments"`
	failureMark
}

// FailureGroups contains all failure groups, the one with the most recent failure first.
type FailureGroups struct {
	Groups []FailureGroup
	Other  int // failures beyond the maximum number of groups
	Extent Extent
}

// failurePage is a page of failure groups.
type failurePage struct {
	Groups   []FailureGroup `json:"groups"`
	Next     string         `json:"next_cursor,omitempty"`
	Other    int            `json:"other,omitempty"`
	Complete bool           `json:"complete"`
	// Blocked lists blocked topic partitions; present in the first page only.
	Blocked []subscriptions.BlockedPartition `json:"blocked_topic_partitions,omitempty"`
	// DeadLetters lists the subscriptions with dead letters; likewise.
	DeadLetters []subscriptions.DeadLetterCount `json:"dead_letters,omitempty"`
	Extent
}

func (s *Server) listFailures(c echo.Context) error {
	filter, partial, err := readPartialFilter(c)
	if err != nil {
		return err
	}
	limit, err := rest.Limit(c)
	if err != nil {
		return err
	}
	after, err := parseFailureCursor(c.QueryParam("cursor"))
	if err != nil {
		return err
	}
	muted, err := mutedFilter(c)
	if err != nil {
		return err
	}
	all, err := s.invocations.Failures(c.Request().Context(), filter, partial)
	if err != nil {
		return fmt.Errorf("list failures: %w", err)
	}
	s.marked(all.Groups)
	page := failurePage{Groups: []FailureGroup{}, Other: all.Other, Complete: all.Extent.Complete(), Extent: all.Extent}
	if after == nil {
		page.Blocked, page.DeadLetters = s.undeliveredFor(c.Request().Context(), filter)
	}
	for i := range all.Groups {
		g := &all.Groups[i]
		if after != nil && after.compare(cursorOf(g)) >= 0 || muted != nil && g.Muted != *muted {
			continue
		}
		if len(page.Groups) == limit {
			page.Next = cursorOf(&page.Groups[limit-1]).String()
			break
		}
		page.Groups = append(page.Groups, *g)
	}
	return rest.Respond(c, http.StatusOK, page)
}

func (s *Server) getFailure(c echo.Context) error {
	id, err := listing.ParseGroup(c.Param("group"))
	if err != nil {
		return rest.InvalidField("group", err)
	}
	group, err := s.failureGroup(c, id)
	if err != nil {
		return err
	}
	if group == nil {
		return noFailure(id.String())
	}
	return rest.Respond(c, http.StatusOK, group)
}

// failureGroup returns a failure group by ID, nil if no invocation belongs to it.
func (s *Server) failureGroup(c echo.Context, id listing.GroupID) (*FailureGroup, error) {
	all, err := s.invocations.Failures(c.Request().Context(), listing.Filter{Group: id}, false)
	if err != nil {
		return nil, fmt.Errorf("get failure group %s: %w", id, err)
	}
	s.marked(all.Groups)
	i := slices.IndexFunc(all.Groups, func(g FailureGroup) bool { return g.ID == id.String() })
	if i < 0 {
		return nil, nil //nolint:nilnil // no such group
	}
	return &all.Groups[i], nil
}

// mutedFilter returns whether to list muted groups or others; nil for both.
func mutedFilter(c echo.Context) (*bool, error) {
	if _, given := c.QueryParams()["muted"]; !given {
		return nil, nil //nolint:nilnil // all
	}
	muted, err := rest.QueryBool(c, "muted")
	return &muted, err
}

// failureCursor is the position of a group in the list, which the cursor of a page encodes.
type failureCursor struct {
	lastSeen rest.Timestamp
	id       string
}

func cursorOf(g *FailureGroup) failureCursor { return failureCursor{g.LastSeen, g.ID} }

func (p failureCursor) compare(q failureCursor) int {
	return cmp.Or(cmp.Compare(q.lastSeen, p.lastSeen), cmp.Compare(p.id, q.id))
}

func (p failureCursor) String() string { return strconv.FormatInt(int64(p.lastSeen), 36) + "." + p.id }

func parseFailureCursor(cursor string) (*failureCursor, error) {
	if cursor == "" {
		return nil, nil
	}
	at, id, _ := strings.Cut(cursor, ".")
	seen, err := strconv.ParseInt(at, 36, 64)
	if _, groupErr := listing.ParseGroup(id); err != nil || groupErr != nil {
		return nil, rest.ErrCursor
	}
	return &failureCursor{rest.Timestamp(seen), id}, nil
}

// undeliveredFor returns what event subscriptions could not deliver. It is no invocation: other
// filters than those for services and handlers exclude it.
func (s *Server) undeliveredFor(ctx context.Context, f listing.Filter) ([]subscriptions.BlockedPartition, []subscriptions.DeadLetterCount) {
	services, handlers := f.Services, f.Handlers
	f.Services, f.Handlers = nil, nil
	if !reflect.ValueOf(f).IsZero() {
		return nil, nil
	}
	return s.subscriptions.Undelivered(ctx, services, handlers)
}
