package admin

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/access"
)

// ObjectQuery selects keys of a virtual object or a workflow.
type ObjectQuery struct {
	Service, Scope string
	Prefix         string  // of the keys
	After          *string // last key of the previous page; nil for the first page
	Limit          int
}

// ObjectSummary is a key that has state or is held by an invocation.
type ObjectSummary struct {
	Service string `json:"service"`
	Key     string `json:"key"`
	Scope   string `json:"scope,omitempty"`
	Entries int    `json:"state_entries"`
	Bytes   int64  `json:"state_bytes"` // total size of the values
	Holder  string `json:"held_by,omitempty"`
	Waiting uint64 `json:"waiting,omitempty"` // invocations that wait for the key; with a scope at most MaxCountedWaiting
}

// ObjectDetail is a key with its waiting invocations and promises.
type ObjectDetail struct {
	ObjectSummary
	HeldSince rest.Timestamp    `json:"held_since,omitzero"`
	Queue     []string          `json:"queue"` // the first MaxObjectQueue waiting invocations
	Promises  []WorkflowPromise `json:"promises,omitempty"`
}

// Limits of what is read of a key or of a service.
const (
	MaxObjectQueue    = 100
	MaxObjectPromises = 1000
	MaxCountedWaiting = 1000
	MaxScopes         = 1000
	// MaxPromiseBytes is the size of the values of the promises of a workflow, in total.
	MaxPromiseBytes = 16 << 20
)

// WorkflowPromise is a promise of a workflow.
type WorkflowPromise struct {
	Name      string  `json:"name"`
	Completed bool    `json:"completed"`
	Value     *[]byte `json:"-"`
	// Text is the value if it is valid UTF-8; otherwise Base64 is set.
	Text    *string `json:"value_utf8,omitempty"`
	Base64  *string `json:"value_base64,omitempty"`
	Failure string  `json:"failure,omitempty"`
	// Omitted reports that there is a value, but that the values are larger than MaxPromiseBytes.
	Omitted bool `json:"value_omitted,omitempty"`
}

type objectPage struct {
	Objects []ObjectSummary `json:"objects"`
	Next    string          `json:"next_cursor,omitempty"`
}

type scopeList struct {
	Scopes    []string `json:"scopes"`
	Truncated bool     `json:"truncated,omitempty"`
}

func (s *Server) listObjects(c echo.Context) error {
	q := ObjectQuery{Prefix: c.QueryParam("prefix")}
	var err error
	if q.Service, err = singleValue(c, "service"); err != nil {
		return err
	}
	if q.Service == "" {
		return rest.BadRequest("The query parameter 'service' is missing: the name of a virtual object or workflow")
	}
	if q.Scope, err = singleValue(c, "scope"); err != nil {
		return err
	}
	if q.Limit, err = rest.Limit(c); err != nil {
		return err
	}
	if text := c.QueryParam("cursor"); text != "" {
		key, err := parseObjectCursor(text)
		if err != nil {
			return err
		}
		q.After = &key
	}
	if _, err := s.object(q.Service, "", q.Scope, false); err != nil {
		return err
	}
	objects, more, err := s.invocations.Objects(c.Request().Context(), q)
	if err != nil {
		return fmt.Errorf("list objects of %s: %w", q.Service, err)
	}
	page := objectPage{Objects: append([]ObjectSummary{}, objects...)}
	if more {
		page.Next = objectCursor(objects[len(objects)-1].Key)
	}
	return rest.Respond(c, http.StatusOK, page)
}

// afterEmptyKey is the cursor of a page that ends with the empty key. It is not base64.
const afterEmptyKey = "-"

// objectCursor returns the cursor of the page after a key.
func objectCursor(key string) string {
	if key == "" {
		return afterEmptyKey
	}
	return base64.RawURLEncoding.EncodeToString([]byte(key))
}

func parseObjectCursor(text string) (key string, err error) {
	if text == afterEmptyKey {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || !utf8.Valid(b) {
		return "", rest.ErrCursor
	}
	return string(b), nil
}

// listScopes lists the scopes in which a virtual object or workflow has keys.
func (s *Server) listScopes(c echo.Context) error {
	ctx, service := c.Request().Context(), c.Param("service")
	p := access.From(ctx)
	if _, err := s.object(service, "", "", false); err != nil {
		return err
	}
	scopes, err := s.invocations.Scopes(ctx, service, p.Scopes)
	if err != nil {
		return fmt.Errorf("list scopes of %s: %w", service, err)
	}
	if scopes == nil {
		scopes = []string{}
	}
	return rest.Respond(c, http.StatusOK, scopeList{Scopes: scopes, Truncated: len(scopes) == MaxScopes})
}

// singleValue parses a query parameter that has at most one value. The limits of a principal can
// have added several values.
func singleValue(c echo.Context, name string) (string, error) {
	switch values := c.QueryParams()[name]; len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		return "", rest.BadRequest("The query parameter '%s' must have one value, which is one of %q", name, values)
	}
}

func (s *Server) getObject(c echo.Context) error {
	ctx, service, key, scope := c.Request().Context(), c.Param("service"), c.Param("key"), c.QueryParam("scope")
	p := access.From(ctx)
	if p.Limited() && !p.AllowsTarget(service, scope) {
		return outsideLimits(p)
	}
	object, err := s.object(service, key, scope, false)
	if err != nil {
		return err
	}
	detail, err := s.invocations.Object(ctx, object)
	if err != nil {
		return fmt.Errorf("read object %s/%s: %w", service, key, err)
	}
	readable := p.Allows(access.Payloads)
	if readable && slices.ContainsFunc(detail.Promises, func(p WorkflowPromise) bool { return p.Completed }) {
		if err := s.recordRead(c, "GET /objects/:service/:key", c.Request().URL.RequestURI()); err != nil {
			return err
		}
	}
	for i := range detail.Promises {
		detail.Promises[i].show(readable)
	}
	if detail.Queue == nil {
		detail.Queue = []string{}
	}
	return rest.Respond(c, http.StatusOK, detail)
}

// show sets the text or base64 form of the value if the principal may read it.
func (p *WorkflowPromise) show(permitted bool) {
	switch {
	case !permitted:
		p.Failure, p.Omitted = "", false
	case p.Value == nil:
	case utf8.Valid(*p.Value):
		text := string(*p.Value)
		p.Text = &text
	default:
		text := base64.StdEncoding.EncodeToString(*p.Value)
		p.Base64 = &text
	}
}
