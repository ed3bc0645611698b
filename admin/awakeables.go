package admin

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"platform/admin/openapi"
	"platform/admin/rest"
	"platform/internal/ids"
	"platform/partition/listing"
)

// Awakeable is an awakeable that an invocation waits for.
type Awakeable struct {
	ID                string         `json:"id"`
	InvocationID      string         `json:"invocation_id"`
	InvocationStatus  Status         `json:"invocation_status"` // suspended, or running while its handler waits
	Target            string         `json:"target"`
	TargetServiceName string         `json:"target_service_name"`
	TargetServiceKey  string         `json:"target_service_key,omitempty"`
	TargetHandlerName string         `json:"target_handler_name"`
	TargetServiceType string         `json:"target_service_ty"`
	Scope             string         `json:"scope,omitempty"`
	WaitingSince      rest.Timestamp `json:"waiting_since,omitzero"` // when the invocation was suspended; of a running one, when it was last active
	CreatedAt         rest.Timestamp `json:"created_at,omitzero"`    // arrival of the invocation
}

// AwakeablePage is a page of awakeables. Next is the cursor of the following page, which can exist
// although this one is empty.
type AwakeablePage struct {
	Awakeables []Awakeable `json:"awakeables"`
	Next       string      `json:"next_cursor,omitempty"`
}

// AwakeablesOf returns the awakeables that an invocation waits for.
func AwakeablesOf(inv *Invocation) ([]Awakeable, error) {
	signals := awakeablesIn(inv.AwaitingOn, nil)
	if len(signals) == 0 {
		return nil, nil
	}
	id, err := ids.ParseInvocation(inv.ID)
	if err != nil {
		return nil, fmt.Errorf("awakeables of invocation %s: %w", inv.ID, err)
	}
	slices.Sort(signals)
	var list []Awakeable
	for _, signal := range slices.Compact(signals) {
		list = append(list, Awakeable{
			ID: ids.Awakeable{Invocation: id, Signal: signal}.String(), InvocationID: inv.ID, InvocationStatus: inv.Status,
			Target: inv.Target, TargetServiceName: inv.TargetServiceName, TargetServiceKey: inv.TargetServiceKey, TargetHandlerName: inv.TargetHandlerName,
			TargetServiceType: inv.TargetServiceType, Scope: inv.Scope, WaitingSince: inv.AwaitingSince, CreatedAt: inv.CreatedAt,
		})
	}
	return list, nil
}

// awakeablesIn appends the numbers of the awakeables in a tree.
func awakeablesIn(a *Await, signals []uint32) []uint32 {
	if a == nil {
		return signals
	}
	for _, signal := range a.Signals {
		if signal >= ids.FirstAwakeable {
			signals = append(signals, signal)
		}
	}
	for _, nested := range a.Nested {
		signals = awakeablesIn(nested, signals)
	}
	return signals
}

// awakeableParameters are the parameters of a list that select awakeables by their invocation.
var awakeableParameters = []object{
	openapi.QueryParameter("id", "Id of one awakeable, sign_1….", object{"type": "string"}),
	openapi.QueryParameter("service", "Names of services.", textList),
	openapi.QueryParameter("handler", "Names of handlers.", textList),
	openapi.QueryParameter("key", "Keys of objects or workflows; repeated, since keys may contain commas.", textList),
	openapi.QueryParameter("scope", "Scopes.", textList),
}

func (s *Server) listAwakeables(c echo.Context) error {
	query, err := ParseQuery(c.QueryParams())
	if err != nil {
		return err
	}
	page := AwakeablePage{}
	if c.QueryParams().Has("id") {
		page.Awakeables, err = s.awakeable(c, &query.Filter)
	} else {
		page, err = s.invocations.Awakeables(c.Request().Context(), query)
	}
	if err != nil {
		return fmt.Errorf("list awakeables: %w", err)
	}
	if page.Awakeables == nil {
		page.Awakeables = []Awakeable{}
	}
	return rest.Respond(c, http.StatusOK, page)
}

// awakeable returns the awakeable that the parameters name, if an invocation that matches f waits
// for it.
func (s *Server) awakeable(c echo.Context, f *listing.Filter) ([]Awakeable, error) {
	text, err := singleValue(c, "id")
	if err != nil {
		return nil, err
	}
	id, err := ids.ParseAwakeable(text)
	if err != nil {
		return nil, rest.BadRequest("The query parameter 'id' is invalid: %v", err)
	}
	inv, err := s.invocations.Get(c.Request().Context(), id.Invocation, false)
	if errors.Is(err, rest.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, condition := range []struct {
		wanted []string
		value  string
	}{{f.Services, inv.TargetServiceName}, {f.Handlers, inv.TargetHandlerName}, {f.Keys, inv.TargetServiceKey}, {f.Scopes, inv.Scope}} {
		if len(condition.wanted) > 0 && !slices.Contains(condition.wanted, condition.value) {
			return nil, nil
		}
	}
	list, err := AwakeablesOf(inv)
	return slices.DeleteFunc(list, func(a Awakeable) bool { return a.ID != id.String() }), err
}
