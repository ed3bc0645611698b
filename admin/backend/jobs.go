package backend

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"platform/admin"
	"platform/admin/rest"
	"platform/internal/cluster/fabric"
	"platform/internal/ids"
	"platform/metadata"
	"platform/partition/listing"
)

// Limits of the execution of jobs. All jobs of the cluster run on one node, and the limits
// leave room for other work.
const (
	jobBatch    = 500  // invocations listed, processed and recorded at a time
	jobParallel = 16   // operations in progress, of all jobs
	jobRate     = 1000 // operations per second, of all jobs, at most: see pace

	jobPoll       = 250 * time.Millisecond // between two polls for jobs
	jobRetryDelay = time.Second            // after a partition or the metadata was unavailable
	jobLookup     = time.Second            // of the lookup of the leader of a partition
	jobRetries    = 150                    // of an operation whose partition is unavailable
)

// JobStore has the records of jobs.
type JobStore interface {
	Jobs() []metadata.Job
	Job(id string) (metadata.Job, bool)
	AdvanceJob(ctx context.Context, id string, expected uint64, progress metadata.JobProgress) (metadata.Job, error)
}

// JobOperator executes the operations of jobs.
type JobOperator interface {
	List(ctx context.Context, q admin.Query) (admin.Page, error)
	Count(ctx context.Context, f listing.Filter, partial bool) (*admin.Counts, error)
	// CancelOnce cancels an invocation. Repetitions with the same request, which is not 0, have no
	// effect.
	CancelOnce(ctx context.Context, id ids.Invocation, request uint64) error
	Kill(ctx context.Context, id ids.Invocation) error
	Pause(ctx context.Context, id ids.Invocation, r rest.PauseRequest) (already bool, err error)
	Resume(ctx context.Context, id ids.Invocation, on admin.DeploymentChoice) error
	Purge(ctx context.Context, id ids.Invocation) error
	// RestartOnce restarts an invocation. Repetitions with the same unique part have no effect.
	RestartOnce(ctx context.Context, id ids.Invocation, unique [16]byte, on admin.DeploymentChoice) (ids.Invocation, error)
}

// JobRunner executes the jobs while this node leads the metadata. Each batch is recorded before
// it is processed, and processing is idempotent, so the next leader continues with the batch and
// the counts stay exact.
type JobRunner struct {
	store      JobStore
	operator   JobOperator
	leads      func() bool
	log        *slog.Logger
	slots      chan struct{}
	rate       *rate.Limiter
	retryDelay time.Duration
}

// NewJobRunner returns a runner; leads reports whether this node leads the metadata.
func NewJobRunner(store JobStore, operator JobOperator, leads func() bool, log *slog.Logger) *JobRunner {
	return &JobRunner{
		store: store, operator: operator, leads: leads, log: log, slots: make(chan struct{}, jobParallel),
		rate: rate.NewLimiter(jobRate, jobParallel), retryDelay: jobRetryDelay,
	}
}

// Run executes jobs until ctx ends.
func (r *JobRunner) Run(ctx context.Context) error {
	ticker := time.NewTicker(jobPoll)
	defer ticker.Stop()
	for {
		if r.leads() {
			r.lead(ctx, ticker.C)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// lead executes jobs until this node no longer leads, and waits for what it has begun.
func (r *JobRunner) lead(ctx context.Context, tick <-chan time.Time) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var mu sync.Mutex // covers executing
	executing := map[string]bool{}
	for r.leads() {
		for _, job := range r.store.Jobs() {
			mu.Lock()
			start := job.State == metadata.JobRunning && !executing[job.ID]
			if start {
				executing[job.ID] = true
			}
			mu.Unlock()
			if !start {
				continue
			}
			wg.Go(func() {
				r.execute(ctx, job.ID)
				mu.Lock()
				delete(executing, job.ID)
				mu.Unlock()
			})
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
	}
}

// execute advances a job until it ends, another node has advanced it, or ctx ends.
func (r *JobRunner) execute(ctx context.Context, id string) {
	pace := newPace()
	for repeats := true; ; { // another node, or this one, may have processed the first batch
		job, known := r.store.Job(id)
		if !known || job.State != metadata.JobRunning || ctx.Err() != nil {
			return
		}
		progress, err := r.step(ctx, &job, pace, repeats)
		if err == nil {
			job, err = r.store.AdvanceJob(ctx, id, job.Version, progress)
		}
		repeats = err != nil
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, metadata.ErrJobChanged), errors.Is(err, metadata.ErrJobNotFound), errors.Is(err, errStopped):
			return
		case err != nil:
			r.log.Warn("job could not be advanced, retrying", "job_id", id, "err", err)
			if !r.pause(ctx) {
				return
			}
		case job.State != metadata.JobRunning:
			r.log.Info("job ended", "job_id", id, "operation", job.Operation, "state", job.State.String(), "done", job.Done, "failed", job.Failed, "skipped", job.Skipped)
		}
	}
}

var errStopped = errors.New("the job was stopped")

func (r *JobRunner) pause(ctx context.Context) bool {
	select {
	case <-time.After(r.retryDelay):
		return true
	case <-ctx.Done():
		return false
	}
}

// step processes the batch of a job and lists the next one. repeats means that the batch may have
// been processed before.
func (r *JobRunner) step(ctx context.Context, job *metadata.Job, pace *pace, repeats bool) (metadata.JobProgress, error) {
	p := job.JobProgress
	if err := r.executeBatch(ctx, job, &p, pace, repeats); err != nil {
		return p, err
	}
	processed := len(p.Batch) > 0
	p.Batch = nil
	if p.Exhausted {
		p.State = metadata.JobDone
		return p, nil
	}
	err := r.list(ctx, job, &p)
	if err != nil && processed && ctx.Err() == nil {
		return p, nil //nolint:nilerr // record what was processed; the next step lists again
	}
	if err == nil && p.Exhausted && len(p.Batch) == 0 {
		p.State = metadata.JobDone
	}
	return p, err
}

// list reads the next batch: invocations that were created before the job, the oldest first, so
// that a job ends although new ones match.
func (r *JobRunner) list(ctx context.Context, job *metadata.Job, p *metadata.JobProgress) error {
	values, err := url.ParseQuery(job.Filter)
	if err != nil {
		return r.failed(p, err)
	}
	q, err := admin.ParseQuery(values)
	if err != nil {
		return r.failed(p, err)
	}
	if next := job.CreatedAt.UnixMilli() + 1; q.Filter.Created.Before == 0 || q.Filter.Created.Before > next {
		q.Filter.Created.Before = next
	}
	if p.Matched == 0 {
		p.Total = r.count(ctx, q.Filter, job)
	}
	q.Limit, q.Cursor, q.OldestFirst = jobBatch, p.Cursor, true
	page, err := r.operator.List(ctx, q)
	if errors.Is(err, rest.ErrCursor) {
		return r.failed(p, err)
	}
	if err != nil {
		return err
	}
	p.Cursor, p.Exhausted = page.Next, page.Next == ""
	for _, inv := range page.Invocations {
		p.Batch = append(p.Batch, inv.ID)
	}
	p.Matched += uint64(len(p.Batch))
	return nil
}

// count returns how many invocations a job will find, 0 if that cannot be determined now.
func (r *JobRunner) count(ctx context.Context, f listing.Filter, job *metadata.Job) uint64 {
	counts, err := r.operator.Count(ctx, f, false)
	if err != nil {
		r.log.Warn("invocations of a job could not be counted", "job_id", job.ID, "err", err)
		return 0
	}
	return uint64(counts.Total)
}

// failed ends a job that cannot continue.
func (r *JobRunner) failed(p *metadata.JobProgress, err error) error {
	p.State, p.Error = metadata.JobFailed, err.Error()
	return nil
}

// executeBatch executes the operation of a job on its batch. If the batch is repeated, an invocation
// that is in a later status counts as done: the operation may have caused that.
func (r *JobRunner) executeBatch(ctx context.Context, job *metadata.Job, p *metadata.JobProgress, pace *pace, repeats bool) error {
	errs := make([]error, len(job.Batch))
	var operations errgroup.Group
	operations.SetLimit(jobParallel)
	for i, text := range job.Batch {
		if r.stopped(job) || pace.wait(ctx) != nil || r.rate.Wait(ctx) != nil {
			break
		}
		operations.Go(func() error {
			errs[i] = r.operate(ctx, job, pace, text)
			return nil
		})
	}
	_ = operations.Wait() // errs has the errors
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.stopped(job) {
		return errStopped
	}
	for i, err := range errs {
		switch {
		case err == nil, repeats && isLater(err):
			p.Done++
		case errors.Is(err, rest.ErrNotFound):
			p.AddSkip(job.Batch[i], "the invocation was deleted before its turn: it was purged, or its retention ended")
		default:
			p.AddFailure(job.Batch[i], err.Error())
		}
	}
	return nil
}

// stopped reports whether a job no longer runs.
func (r *JobRunner) stopped(job *metadata.Job) bool {
	now, known := r.store.Job(job.ID)
	return !known || now.State != metadata.JobRunning
}

// operate executes the operation of a job on one invocation, and repeats it while its partition
// is unavailable. Between the attempts it holds no slot, since other jobs need them.
func (r *JobRunner) operate(ctx context.Context, job *metadata.Job, pace *pace, text string) error {
	id, err := ids.ParseInvocation(text)
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		start := time.Now()
		err := r.once(fabric.WithLookupDeadline(ctx, start.Add(jobLookup)), job, id)
		<-r.slots
		if err == nil {
			pace.record(time.Since(start))
		}
		if !errors.Is(err, admin.ErrUnavailable) || attempt == jobRetries || !r.pause(ctx) || r.stopped(job) {
			return err
		}
	}
}

func (r *JobRunner) once(ctx context.Context, job *metadata.Job, id ids.Invocation) error {
	on, err := admin.ReadDeployment(job.Deployment)
	if err != nil {
		return err
	}
	switch admin.JobOperation(job.Operation) {
	case admin.JobCancel:
		// A second cancel would interrupt what the handler does because of the first one.
		unique := uniqueOf(job, id)
		return unlessEnded(r.operator.CancelOnce(ctx, id, binary.BigEndian.Uint64(unique[:])|1))
	case admin.JobKill:
		return unlessEnded(r.operator.Kill(ctx, id))
	case admin.JobPause:
		_, err := r.operator.Pause(ctx, id, rest.PauseRequest{By: job.By, Reason: job.Reason})
		return err
	case admin.JobResume:
		return r.operator.Resume(ctx, id, on)
	case admin.JobPurge:
		if err := r.operator.Purge(ctx, id); !errors.Is(err, rest.ErrNotFound) {
			return err
		}
		return nil
	case admin.JobRestart:
		_, err := r.operator.RestartOnce(ctx, id, uniqueOf(job, id), on)
		return err
	}
	return fmt.Errorf("this server does not know the operation %q", job.Operation)
}

// uniqueOf identifies the operation of a job on an invocation, also when it is repeated.
func uniqueOf(job *metadata.Job, id ids.Invocation) [16]byte {
	sum := sha256.Sum256([]byte(job.ID + "/" + id.String()))
	return [16]byte(sum[:16])
}

func isLater(err error) bool {
	rejection, ok := errors.AsType[*admin.Rejection](err)
	return ok && rejection.Later
}

// unlessEnded drops the error of an invocation that has already ended, since the operation would have
// ended it. Other conflicts, such as that of an invocation that accepts no more cancels, are failures.
func unlessEnded(err error) error {
	if isLater(err) {
		return nil
	}
	return err
}
