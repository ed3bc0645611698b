package admin

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"platform/admin/openapi"
	"platform/admin/rest"
	"platform/partition/listing"
)

// Extent reports what is missing in a list or a count.
type Extent struct {
	// CompleteFrom is set if invocations created earlier are omitted.
	CompleteFrom rest.Timestamp `json:"complete_from,omitzero"`
	// Missing lists the partitions that did not respond.
	Missing []uint32 `json:"missing_partitions,omitempty"`
}

// Complete reports whether nothing is missing.
func (e Extent) Complete() bool { return e.CompleteFrom == 0 && len(e.Missing) == 0 }

// Result is the outcome of a completed invocation: success, failure, cancelled or killed.
type Result string

// Counts contains numbers of invocations.
type Counts struct {
	Total     int             `json:"total"`
	ByStatus  map[Status]int  `json:"by_status"` // has all statuses
	ByResult  map[Result]int  `json:"by_result"` // has all results; completed invocations only
	ByService []HandlerCounts `json:"by_service"`
	Complete  bool            `json:"complete"`
	Extent
	AsOf rest.Timestamp `json:"as_of"`
}

// HandlerCounts contains the numbers of invocations of a handler. Statuses and results without
// invocations are omitted.
type HandlerCounts struct {
	Service  string         `json:"service"`
	Handler  string         `json:"handler"`
	ByStatus map[Status]int `json:"by_status"`
	ByResult map[Result]int `json:"by_result"`
}

// partialParameter describes the parameter that accepts a response without unavailable partitions.
var partialParameter = openapi.QueryParameter("partial", "Respond even if some partitions are unavailable, which missing_partitions then names, or if the memory for lists (admin.listing-memory) does not suffice for the oldest invocations, in which case complete_from is the creation time from which on all are included.", object{"type": "boolean", "default": false})

func (s *Server) countInvocations(c echo.Context) error {
	filter, partial, err := readPartialFilter(c)
	if err != nil {
		return err
	}
	counts, err := s.invocations.Count(c.Request().Context(), filter, partial)
	if err != nil {
		return fmt.Errorf("count invocations: %w", err)
	}
	counts.Complete = counts.Extent.Complete()
	return rest.Respond(c, http.StatusOK, counts)
}

func readPartialFilter(c echo.Context) (f listing.Filter, partial bool, err error) {
	if f, err = readFilter(c.QueryParams()); err == nil {
		partial, err = rest.QueryBool(c, "partial")
	}
	return f, partial, err
}
