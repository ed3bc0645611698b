package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Limits are the limits of a rule; nil is unlimited.
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

// Rules returns all rules, sorted by pattern.
func (c *Client) Rules(ctx context.Context) ([]Rule, *Response, error) {
	var book struct {
		Rules []Rule `json:"rules"`
	}
	response, err := c.adminJSON(ctx, http.MethodGet, "/limits/rules", nil, &book)
	return book.Rules, response, err
}

// Rule returns one rule; an *APIError with status 404 if there is none.
func (c *Client) Rule(ctx context.Context, pattern string) (r Rule, response *Response, err error) {
	response, err = c.adminJSON(ctx, http.MethodGet, rulePath(pattern), nil, &r)
	return r, response, err
}

// PutRule stores a rule if the stored one has the version of r, or if there is none and that
// version is 0. Otherwise IsConflict holds for the error.
func (c *Client) PutRule(ctx context.Context, r Rule) (stored Rule, response *Response, err error) {
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
	response, err = c.adminJSON(ctx, http.MethodPut, rulePath(r.Pattern), body, &stored)
	return stored, response, err
}

// DeleteRule deletes a rule if it has the given version.
func (c *Client) DeleteRule(ctx context.Context, pattern string, version uint32) error {
	path := rulePath(pattern) + "?expected_version=" + strconv.FormatUint(uint64(version), 10)
	_, err := c.adminJSON(ctx, http.MethodDelete, path, nil, nil)
	return err
}

func rulePath(pattern string) string { return "/limits/rules/" + url.PathEscape(pattern) }

// IsConflict reports whether the object of a change differs from what the request expected.
func IsConflict(err error) bool {
	api, ok := errors.AsType[*APIError](err)
	return ok && api.Status == http.StatusConflict
}

// IsNotFound reports whether err means that the requested object does not exist.
func IsNotFound(err error) bool {
	api, ok := errors.AsType[*APIError](err)
	return ok && api.Status == http.StatusNotFound
}
