package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// JobRequest is a request to start a job.
type JobRequest struct {
	Operation     string              `json:"operation"`
	Filter        map[string][]string `json:"filter,omitempty"`
	InvocationIDs []string            `json:"invocation_ids,omitempty"`
	Deployment    string              `json:"deployment,omitempty"`
	Reason        string              `json:"reason,omitempty"`
}

// Job is an operation on many invocations.
type Job struct {
	ID         string              `json:"id"`
	Operation  string              `json:"operation"`
	State      string              `json:"state"`
	Filter     map[string][]string `json:"filter,omitempty"`
	Deployment string              `json:"deployment,omitempty"`
	Reason     string              `json:"reason,omitempty"`
	By         string              `json:"by,omitempty"`
	CreatedAt  time.Time           `json:"created_at"`
	ModifiedAt time.Time           `json:"modified_at"`
	Total      uint64              `json:"total,omitempty"` // 0 if unknown
	Matched    uint64              `json:"matched"`
	Done       uint64              `json:"done"`
	Failed     uint64              `json:"failed"`
	Failures   []JobFailure        `json:"failures"`
	Skipped    uint64              `json:"skipped"`
	Skips      []JobSkip           `json:"skips"`
	Error      string              `json:"error,omitempty"`
}

// JobFailure is the failure of a job on one invocation.
type JobFailure struct {
	ID    string `json:"invocation_id"`
	Error string `json:"error"`
}

// JobSkip is an invocation that a job left out.
type JobSkip struct {
	ID     string `json:"invocation_id"`
	Reason string `json:"reason"`
}

// Running reports whether the job has not ended.
func (j *Job) Running() bool { return j.State == "running" }

// StartJob starts a job.
func (c *Client) StartJob(ctx context.Context, r JobRequest) (j Job, err error) {
	_, err = c.adminJSON(ctx, http.MethodPost, "/jobs", r, &j)
	return j, err
}

// Jobs lists the jobs, the newest first.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	var list struct{ Jobs []Job }
	_, err := c.adminJSON(ctx, http.MethodGet, "/jobs", nil, &list)
	return list.Jobs, err
}

// Job returns a job.
func (c *Client) Job(ctx context.Context, id string) (j Job, err error) {
	_, err = c.adminJSON(ctx, http.MethodGet, "/jobs/"+url.PathEscape(id), nil, &j)
	return j, err
}

// StopJob ends a job.
func (c *Client) StopJob(ctx context.Context, id string) (j Job, err error) {
	_, err = c.adminJSON(ctx, http.MethodDelete, "/jobs/"+url.PathEscape(id), nil, &j)
	return j, err
}
