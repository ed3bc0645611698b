package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Limits are what a rule allows; nil is no limit.
type Limits struct {
	Concurrency *uint32 `json:"concurrency,omitempty"`
	Rate        *string `json:"rate,omitempty"` // such as 100/s
	QueueLimit  *uint64 `json:"queue_limit,omitempty"`
}

// Rule is a rule of flow control.
type Rule struct {
	Pattern      string `json:"pattern"`
	Limits       Limits `json:"limits"`
	Description  string `json:"description,omitempty"`
	Disabled     bool   `json:"disabled"`
	Version      uint32 `json:"version"`
	LastModified int64  `json:"last_modified_millis_since_epoch"`
}

// ModifiedAt is the time of the last change.
func (r *Rule) ModifiedAt() time.Time { return time.UnixMilli(r.LastModified) }

// Rules is the rule book, sorted by pattern.
func (c *Client) Rules(ctx context.Context) ([]Rule, *Response, error) {
	var book struct {
		Rules []Rule `json:"rules"`
	}
	answer, err := c.adminJSON(ctx, http.MethodGet, "/limits/rules", nil, &book)
	return book.Rules, answer, err
}

// Rule returns one rule; an *APIError with status 404 if there is none.
func (c *Client) Rule(ctx context.Context, pattern string) (r Rule, answer *Response, err error) {
	answer, err = c.adminJSON(ctx, http.MethodGet, rulePath(pattern), nil, &r)
	return r, answer, err
}

// PutRule stores a rule if it still has the version that r has, or if there is none
// and the version is 0. IsConflict tells that this was not so.
func (c *Client) PutRule(ctx context.Context, r Rule) (stored Rule, answer *Response, err error) {
	type precondition struct {
		Type    string `json:"type"`
		Version uint32 `json:"version,omitempty"`
	}
	body := struct {
		Pattern      string       `json:"pattern"`
		Limits       Limits       `json:"limits"`
		Description  string       `json:"description,omitempty"`
		Disabled     bool         `json:"disabled"`
		Precondition precondition `json:"precondition"`
	}{r.Pattern, r.Limits, r.Description, r.Disabled, precondition{"matches", r.Version}}
	if r.Version == 0 {
		body.Precondition.Type = "does_not_exist"
	}
	answer, err = c.adminJSON(ctx, http.MethodPut, rulePath(r.Pattern), body, &stored)
	return stored, answer, err
}

// DeleteRule deletes a rule if it has that version.
func (c *Client) DeleteRule(ctx context.Context, pattern string, version uint32) error {
	path := rulePath(pattern) + "?expected_version=" + strconv.FormatUint(uint64(version), 10)
	_, err := c.adminJSON(ctx, http.MethodDelete, path, nil, nil)
	return err
}

func rulePath(pattern string) string { return "/limits/rules/" + url.PathEscape(pattern) }

// IsConflict reports whether what was to be changed is not as the request expected.
func IsConflict(err error) bool {
	api, ok := errors.AsType[*APIError](err)
	return ok && api.Status == http.StatusConflict
}

// IsNotFound reports whether the server does not know what was asked for.
func IsNotFound(err error) bool {
	api, ok := errors.AsType[*APIError](err)
	return ok && api.Status == http.StatusNotFound
}
