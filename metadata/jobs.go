package metadata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pb "platform/proto/metadata"
)

// Bounds of jobs.
const (
	// MaxJobs is the number of jobs on record. The oldest ended ones are deleted.
	MaxJobs = 1000
	// MaxRunningJobs is the number of jobs that may run.
	MaxRunningJobs = 100
	// MaxJobBatch is the number of invocations in a batch.
	MaxJobBatch = 1000
	// MaxJobFailures is the number of failures on record of a job.
	MaxJobFailures = 20
	maxFailureText = 300
	maxJobText     = 16 << 10 // of the filter
)

// Reasons for rejecting a change of jobs.
var (
	ErrTooManyJobs = errors.New("too many jobs are running")
	ErrJobNotFound = errors.New("there is no such job")
	// ErrJobChanged means that a job has ended or was advanced by another node.
	ErrJobChanged = errors.New("job has changed")
)

// JobState is the state of a job.
type JobState uint8

// The states. They are stored: numbers are only added.
const (
	JobRunning JobState = iota + 1
	JobDone             // all invocations were processed, some perhaps without success
	JobStopped          // by an operator
	JobFailed           // it could not continue
)

var jobStateNames = map[JobState]string{JobRunning: "running", JobDone: "done", JobStopped: "stopped", JobFailed: "failed"}

// String returns the name of the state.
func (s JobState) String() string { return cmp.Or(jobStateNames[s], "unknown") }

// Job is an operation on many invocations. A value is immutable.
type Job struct {
	ID         string // ascending with the time of creation
	Operation  string
	Filter     string // as the query of GET /invocations; empty if IDs were given
	Deployment string
	Reason     string
	By         string // network address of the client that requested it
	CreatedAt  time.Time

	JobProgress
	ModifiedAt time.Time
	Version    uint64 // increases with every change
}

// JobProgress is how far a job has come.
type JobProgress struct {
	State JobState
	// Batch has the IDs of the invocations that come next, Cursor the position of the listing
	// behind them; Exhausted means that there are no others.
	Batch     []string
	Cursor    string
	Exhausted bool
	// Matched counts the invocations up to and including the batch, Done, Failed and Skipped
	// those that were processed. Skipped ones had been deleted before their turn.
	Matched, Done, Failed, Skipped uint64
	Total                          uint64       // invocations that matched when the job started; 0 if unknown
	Failures, Skips                []JobFailure // the first MaxJobFailures of each
	Error                          string       // why the job failed
}

// JobFailure is why the operation failed for one invocation, or why that was skipped.
type JobFailure struct{ Invocation, Message string }

// createJob adds a job.
type createJob struct{ job Job }

// advanceJob records the progress of a running job.
type advanceJob struct {
	id       string
	expected uint64 // version
	progress JobProgress
}

// stopJob ends a running job.
type stopJob struct{ id string }

func (*createJob) command()  {}
func (*advanceJob) command() {}
func (*stopJob) command()    {}

// Jobs returns the jobs on record by ID, that is in the order of their creation. The slice is
// shared.
func (s *Store) Jobs() []Job { return s.source.current().jobs }

// Job returns a job; false if there is none with that ID.
func (s *Store) Job(id string) (Job, bool) { return s.source.current().job(id) }

// CreateJob adds a running job, whose ID and times it sets. The error can be ErrTooManyJobs or an
// *InvalidError.
func (s *Store) CreateJob(ctx context.Context, job Job) (Job, error) {
	now, unique := s.now(), s.newID()
	job.ID = fmt.Sprintf("job_%012x%x", now.UnixMilli(), unique[10:])
	job.State, job.Version, job.CreatedAt, job.ModifiedAt = JobRunning, 1, fromMillis(now.UnixMilli()), fromMillis(now.UnixMilli())
	return propose[Job](ctx, s, &createJob{job})
}

// AdvanceJob records the progress of a running job that has the expected version. The error can
// be ErrJobChanged, ErrJobNotFound or an *InvalidError.
func (s *Store) AdvanceJob(ctx context.Context, id string, expected uint64, progress JobProgress) (Job, error) {
	return propose[Job](ctx, s, &advanceJob{id, expected, progress})
}

// StopJob ends a running job; one that has ended is unchanged. The error can be ErrJobNotFound.
func (s *Store) StopJob(ctx context.Context, id string) (Job, error) {
	return propose[Job](ctx, s, &stopJob{id})
}

func (s *state) job(id string) (Job, bool) {
	at, known := slices.BinarySearchFunc(s.jobs, id, compareJob)
	if !known {
		return Job{}, false
	}
	return s.jobs[at], true
}

func compareJob(j Job, id string) int { return cmp.Compare(j.ID, id) }

// check returns why progress cannot be stored, nil if it can.
func (p *JobProgress) check() error {
	switch {
	case len(p.Batch) > MaxJobBatch:
		return &InvalidError{fmt.Sprintf("a job processes at most %d invocations at a time, not %d", MaxJobBatch, len(p.Batch))}
	case max(len(p.Failures), len(p.Skips)) > MaxJobFailures:
		return &InvalidError{fmt.Sprintf("a job has at most %d failures and skipped invocations on record, not %d", MaxJobFailures, max(len(p.Failures), len(p.Skips)))}
	case jobStateNames[p.State] == "":
		return &InvalidError{fmt.Sprintf("a job has no state %d", p.State)}
	}
	return nil
}

// applyCreateJob returns the Job without its batch.
func applyCreateJob(d *draft, cmd *createJob) (outcome, error) {
	job := cmd.job
	if err := job.check(); err != nil {
		return outcome{rejection: err}, nil //nolint:nilerr // a rejection is a result that all replicas agree on
	}
	if len(job.Filter) > maxJobText {
		return outcome{rejection: &InvalidError{fmt.Sprintf("the filter of a job has %d bytes; at most %d are allowed", len(job.Filter), maxJobText)}}, nil
	}
	running := 0
	for i := range d.jobs {
		if d.jobs[i].State == JobRunning {
			running++
		}
	}
	if running >= MaxRunningJobs {
		return rejected(ErrTooManyJobs, "%d are; wait, or stop one", running), nil
	}
	for len(d.jobs) >= MaxJobs {
		oldest := slices.IndexFunc(d.jobs, func(j Job) bool { return j.State != JobRunning })
		d.deleteRecord(tableJobs, d.jobs[oldest].ID)
		d.jobs = slices.Delete(slices.Clone(d.jobs), oldest, oldest+1)
	}
	return d.putJob(job)
}

// applyAdvanceJob returns the Job without its batch.
func applyAdvanceJob(d *draft, at time.Time, cmd *advanceJob) (outcome, error) {
	job, known := d.job(cmd.id)
	switch {
	case !known:
		return rejected(ErrJobNotFound, "%s", cmd.id), nil
	case job.State != JobRunning:
		return rejected(ErrJobChanged, "it is %s", job.State), nil
	case job.Version != cmd.expected:
		return rejected(ErrJobChanged, "it is at version %d, not %d", job.Version, cmd.expected), nil
	}
	if err := cmd.progress.check(); err != nil {
		return outcome{rejection: err}, nil //nolint:nilerr // a rejection is a result that all replicas agree on
	}
	job.JobProgress = cmd.progress
	job.ModifiedAt = at
	job.Version++
	return d.putJob(job)
}

// applyStopJob returns the Job.
func applyStopJob(d *draft, at time.Time, cmd *stopJob) (outcome, error) {
	job, known := d.job(cmd.id)
	if !known {
		return rejected(ErrJobNotFound, "%s", cmd.id), nil
	}
	if job.State != JobRunning {
		return outcome{value: job}, nil
	}
	job.State, job.ModifiedAt = JobStopped, at
	job.Version++
	return d.putJob(job)
}

// putJob adds or replaces a job. One that has ended needs no batch.
func (d *draft) putJob(job Job) (outcome, error) {
	if job.State != JobRunning {
		job.Batch, job.Cursor = nil, ""
	}
	at, known := slices.BinarySearchFunc(d.jobs, job.ID, compareJob)
	d.jobs = placed(d.jobs, at, known, job)
	result := job
	result.Batch = nil // outcomes are kept
	return outcome{value: result}, d.put(tableJobs, job.ID, jobToProto(&job))
}

func jobToProto(j *Job) *pb.Job {
	out := &pb.Job{
		Id: j.ID, Operation: j.Operation, Filter: j.Filter, Deployment: j.Deployment, Reason: j.Reason, By: j.By, CreatedAtMs: millis(j.CreatedAt),
		Version: j.Version, ModifiedAtMs: millis(j.ModifiedAt),
	}
	progressToProto(&j.JobProgress, out)
	return out
}

func progressToProto(p *JobProgress, out *pb.Job) {
	out.State, out.Batch, out.Cursor, out.Exhausted = uint32(p.State), p.Batch, p.Cursor, p.Exhausted
	out.Matched, out.Done, out.Failed, out.Skipped, out.Error = p.Matched, p.Done, p.Failed, p.Skipped, p.Error
	out.Total, out.Failures, out.Skips = p.Total, failuresToProto(p.Failures), failuresToProto(p.Skips)
}

func failuresToProto(failures []JobFailure) (out []*pb.JobFailure) {
	for _, f := range failures {
		out = append(out, &pb.JobFailure{InvocationId: f.Invocation, Message: f.Message})
	}
	return out
}

func failuresFromProto(failures []*pb.JobFailure) (out []JobFailure) {
	for _, f := range failures {
		out = append(out, JobFailure{f.GetInvocationId(), f.GetMessage()})
	}
	return out
}

func jobFromProto(j *pb.Job) Job {
	return Job{
		ID: j.GetId(), Operation: j.GetOperation(), Filter: j.GetFilter(), Deployment: j.GetDeployment(), Reason: j.GetReason(), By: j.GetBy(),
		CreatedAt: fromMillis(j.GetCreatedAtMs()), JobProgress: progressFromProto(j), Version: j.GetVersion(), ModifiedAt: fromMillis(j.GetModifiedAtMs()),
	}
}

func progressFromProto(j *pb.Job) JobProgress {
	return JobProgress{
		State: JobState(j.GetState()), Batch: j.GetBatch(), Cursor: j.GetCursor(), Exhausted: j.GetExhausted(),
		Matched: j.GetMatched(), Done: j.GetDone(), Failed: j.GetFailed(), Skipped: j.GetSkipped(), Error: j.GetError(),
		Total: j.GetTotal(), Failures: failuresFromProto(j.GetFailures()), Skips: failuresFromProto(j.GetSkips()),
	}
}

// AddFailure counts a failure, and records it if there is room.
func (p *JobProgress) AddFailure(invocation, message string) {
	p.Failed++
	p.Failures = withFailure(p.Failures, invocation, message)
}

// AddSkip counts an invocation that was left out, and records it if there is room.
func (p *JobProgress) AddSkip(invocation, reason string) {
	p.Skipped++
	p.Skips = withFailure(p.Skips, invocation, reason)
}

func withFailure(failures []JobFailure, invocation, message string) []JobFailure {
	if len(failures) >= MaxJobFailures {
		return failures
	}
	if len(message) > maxFailureText {
		message = strings.ToValidUTF8(message[:maxFailureText], "") + "…"
	}
	return append(slices.Clone(failures), JobFailure{invocation, message})
}
