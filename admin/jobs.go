package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/metadata"
)

// jobRegistry stores jobs.
type jobRegistry interface {
	// Jobs returns the jobs, sorted by ID.
	Jobs() []metadata.Job
	Job(id string) (metadata.Job, bool)
	CreateJob(context.Context, metadata.Job) (metadata.Job, error)
	StopJob(ctx context.Context, id string) (metadata.Job, error)
}

// JobOperation is the operation of a job on each invocation.
type JobOperation string

// The operations.
const (
	JobCancel  JobOperation = "cancel"
	JobKill    JobOperation = "kill"
	JobPause   JobOperation = "pause"
	JobResume  JobOperation = "resume"
	JobRestart JobOperation = "restart-as-new"
	JobPurge   JobOperation = "purge"
)

// jobOperations maps each operation to the statuses of the invocations that it applies to if the
// filter has none.
var jobOperations = map[JobOperation][]Status{
	JobCancel:  unfinished,
	JobKill:    unfinished,
	JobPause:   {StatusReady, StatusRunning, StatusBackingOff, StatusSuspended},
	JobResume:  {StatusPaused, StatusBackingOff},
	JobRestart: {StatusCompleted},
	JobPurge:   {StatusCompleted},
}

var unfinished = slices.DeleteFunc(slices.Clone(statuses), func(s Status) bool { return s == StatusCompleted })

// jobRequest is the body of POST /jobs.
type jobRequest struct {
	Operation     JobOperation               `json:"operation"`
	Filter        map[string]json.RawMessage `json:"filter"`
	InvocationIDs []string                   `json:"invocation_ids"`
	Deployment    string                     `json:"deployment"`
	Reason        string                     `json:"reason"`
}

// jobView is a job as shown to users.
type jobView struct {
	ID         string              `json:"id"`
	Operation  string              `json:"operation"`
	State      string              `json:"state"`
	Filter     map[string][]string `json:"filter,omitempty"`
	Deployment string              `json:"deployment,omitempty"`
	Reason     string              `json:"reason,omitempty"`
	By         string              `json:"by,omitempty"`
	CreatedAt  rest.Timestamp      `json:"created_at"`
	ModifiedAt rest.Timestamp      `json:"modified_at"`
	Total      uint64              `json:"total,omitempty"` // 0 if unknown
	Matched    uint64              `json:"matched"`
	Done       uint64              `json:"done"`
	Failed     uint64              `json:"failed"`
	Failures   []batchFailure      `json:"failures"`
	Skipped    uint64              `json:"skipped"`
	Skips      []jobSkip           `json:"skips"`
	Error      string              `json:"error,omitempty"`
}

// jobSkip is an invocation that a job left out.
type jobSkip struct {
	ID     string `json:"invocation_id"`
	Reason string `json:"reason"`
}

// excludedFilters are the parameters of GET /invocations that do not select invocations.
var excludedFilters = []string{"limit", "cursor", "oldest_first", "sort", "partial"}

func (s *Server) createJob(c echo.Context) error {
	var r jobRequest
	if err := s.bodies.ReadJSON(c, &r); err != nil {
		return err
	}
	job, err := newJob(c, &r)
	if err != nil {
		return err
	}
	rest.Concerns(c, strings.TrimSpace(job.Operation+" "+job.Filter))
	rest.ConcernsEach(c, job.Batch)
	job, err = s.registry.CreateJob(c.Request().Context(), job)
	if errors.Is(err, metadata.ErrTooManyJobs) {
		return &rest.Error{Status: http.StatusTooManyRequests, Message: err.Error()}
	}
	if err != nil {
		return err
	}
	return rest.Respond(c, http.StatusAccepted, viewJob(&job))
}

// newJob validates a request and converts it to a job.
func newJob(c echo.Context, r *jobRequest) (job metadata.Job, err error) {
	usual, known := jobOperations[r.Operation]
	if !known {
		return job, rest.Unprocessable("the field 'operation' must be one of %s, not %q", strings.Join(operationNames(), ", "), r.Operation)
	}
	if (r.Filter == nil) == (r.InvocationIDs == nil) {
		return job, rest.Unprocessable("a job needs either the field 'filter' or the field 'invocation_ids'")
	}
	if _, err := readDeployment(r.Deployment); err != nil {
		return job, rest.Unprocessable("the field 'deployment' is invalid: %v", err)
	}
	if r.Deployment != "" && r.Operation != JobResume && r.Operation != JobRestart {
		return job, rest.Unprocessable("the field 'deployment' is for %s and %s only", JobResume, JobRestart)
	}
	if r.Reason != "" && r.Operation != JobPause {
		return job, rest.Unprocessable("the field 'reason' is for %s only", JobPause)
	}
	pause, err := rest.PauseRequestOf(c, r.Reason)
	if err != nil {
		return job, err
	}
	job = metadata.Job{Operation: string(r.Operation), Deployment: r.Deployment, Reason: r.Reason, By: pause.By}
	if r.InvocationIDs != nil {
		job.Batch, err = distinctIDs(r.InvocationIDs)
		job.Exhausted, job.Matched, job.Total = true, uint64(len(job.Batch)), uint64(len(job.Batch))
		return job, err
	}
	job.Filter, err = jobFilter(r.Filter, usual)
	return job, err
}

func operationNames() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(jobOperations)) {
		names = append(names, string(name))
	}
	return names
}

// distinctIDs validates the IDs of a job and removes duplicates.
func distinctIDs(texts []string) (list []string, err error) {
	if len(texts) > metadata.MaxJobBatch {
		return nil, rest.Unprocessable("the field 'invocation_ids' has %d ids; at most %d are allowed. Use a filter", len(texts), metadata.MaxJobBatch)
	}
	seen := map[string]bool{}
	for i, text := range texts {
		id, err := ids.ParseInvocation(text)
		if err != nil {
			return nil, rest.Unprocessable("the field 'invocation_ids[%d]' is invalid: %v", i, err)
		}
		if !seen[id.String()] {
			seen[id.String()] = true
			list = append(list, id.String())
		}
	}
	return list, nil
}

// jobFilter converts a filter to a query of GET /invocations, validates it, and adds the default
// statuses of the operation.
func jobFilter(fields map[string]json.RawMessage, usual []Status) (string, error) {
	names := slices.DeleteFunc(descriptions.Operations["GET /invocations"].QueryNames(), func(name string) bool { return slices.Contains(excludedFilters, name) })
	values := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(names, name) {
			return "", rest.Unprocessable("unknown field 'filter.%s'%s", name, rest.Alternatives(name, "filters", names))
		}
		list, err := filterValues(fields[name])
		if err != nil {
			return "", rest.Unprocessable("the field 'filter.%s' is invalid: %v", name, err)
		}
		if len(list) == 0 { // ignored, it would select all
			return "", rest.Unprocessable("the field 'filter.%s' is empty; give it a value, or leave it out to select invocations whatever their %[1]s is", name)
		}
		values[name] = list
	}
	if len(values) == 0 {
		return "", rest.Unprocessable("the field 'filter' is empty, so it would select all invocations; name at least their status")
	}
	if _, given := values["status"]; !given {
		for _, status := range usual {
			values.Add("status", string(status))
		}
	}
	if _, err := ParseQuery(values); err != nil {
		return "", rest.Unprocessable("the field 'filter' is invalid: %s", err.Error())
	}
	return values.Encode(), nil
}

// filterValues decodes a filter value: a string, number or boolean, or a list of them.
func filterValues(raw json.RawMessage) ([]string, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	var values []string
	for _, element := range list {
		var value any
		if err := json.Unmarshal(element, &value); err != nil {
			return nil, err
		}
		switch v := value.(type) {
		case string:
			values = append(values, v)
		case float64, bool:
			values = append(values, strings.TrimSpace(string(element)))
		default:
			return nil, fmt.Errorf("%s is neither a string nor a list of strings", element)
		}
	}
	return values, nil
}

func (s *Server) listJobs(c echo.Context) error {
	views := []jobView{}
	jobs := s.registry.Jobs()
	for i := range jobs {
		views = append(views, viewJob(&jobs[len(jobs)-1-i])) // the newest first
	}
	return rest.Respond(c, http.StatusOK, map[string]any{"jobs": views})
}

func (s *Server) getJob(c echo.Context) error {
	job, known := s.registry.Job(c.Param("job"))
	if !known {
		return noJob(c.Param("job"))
	}
	return rest.Respond(c, http.StatusOK, viewJob(&job))
}

func (s *Server) stopJob(c echo.Context) error {
	job, err := s.registry.StopJob(c.Request().Context(), c.Param("job"))
	if errors.Is(err, metadata.ErrJobNotFound) {
		return noJob(c.Param("job"))
	}
	if err != nil {
		return err
	}
	return rest.Respond(c, http.StatusOK, viewJob(&job))
}

func noJob(id string) *rest.Error {
	return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("The requested job '%s' does not exist", id)}
}

func viewJob(j *metadata.Job) jobView {
	view := jobView{
		ID: j.ID, Operation: j.Operation, State: j.State.String(), Deployment: j.Deployment, Reason: j.Reason, By: j.By,
		CreatedAt: rest.TimestampOf(j.CreatedAt), ModifiedAt: rest.TimestampOf(j.ModifiedAt),
		Total: j.Total, Matched: j.Matched, Done: j.Done, Failed: j.Failed, Failures: []batchFailure{}, Skipped: j.Skipped, Skips: []jobSkip{}, Error: j.Error,
	}
	if j.Filter != "" {
		view.Filter, _ = url.ParseQuery(j.Filter) // validated on creation
	}
	for _, f := range j.Failures {
		view.Failures = append(view.Failures, batchFailure{f.Invocation, f.Message})
	}
	for _, f := range j.Skips {
		view.Skips = append(view.Skips, jobSkip{f.Invocation, f.Message})
	}
	return view
}

// ReadDeployment parses the choice of a deployment: Keep, Latest, or an ID; empty for none.
func ReadDeployment(text string) (DeploymentChoice, error) { return readDeployment(text) }
