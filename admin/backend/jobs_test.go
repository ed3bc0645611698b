package backend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/admin"
	"platform/admin/rest"
	"platform/internal/ids"
	"platform/metadata"
	"platform/partition/listing"
	"platform/partition/machine"
)

// jobRecords is a JobStore in memory.
type jobRecords struct {
	mu          sync.Mutex // covers the fields below
	jobs        map[string]metadata.Job
	unavailable bool
}

func (s *jobRecords) Jobs() (list []metadata.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, job := range s.jobs {
		list = append(list, job)
	}
	return list
}

func (s *jobRecords) Job(id string) (metadata.Job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	job, known := s.jobs[id]
	return job, known
}

func (s *jobRecords) AdvanceJob(_ context.Context, id string, expected uint64, p metadata.JobProgress) (metadata.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	job := s.jobs[id]
	switch {
	case s.unavailable:
		s.unavailable = false
		return job, metadata.ErrUnavailable
	case job.Version != expected || job.State != metadata.JobRunning:
		return job, metadata.ErrJobChanged
	}
	job.JobProgress = p
	job.Version++
	s.jobs[id] = job
	return job, nil
}

func (s *jobRecords) stop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	job := s.jobs[id]
	job.State = metadata.JobStopped
	job.Version++
	s.jobs[id] = job
}

// jobTargets are the invocations that jobs are executed on.
type jobTargets struct {
	JobOperator // the operations that are not tested

	mu       sync.Mutex // covers the fields below
	all      []*admin.Invocation
	killed   map[string]int
	reject   map[string]error
	restarts map[string]bool            // of the new ones
	cancels  map[string]map[uint64]bool // by request
	onKill   func(n int)
	query    admin.Query
	failList int
}

func newTargets(n int) *jobTargets {
	f := &jobTargets{killed: map[string]int{}, reject: map[string]error{}, restarts: map[string]bool{}, cancels: map[string]map[uint64]bool{}}
	for i := range n {
		id := ids.NewInvocation(uint64(i), [16]byte{14: byte(i >> 8), 15: byte(i)})
		f.all = append(f.all, &admin.Invocation{ID: id.String(), CreatedAt: rest.Timestamp(i)})
	}
	return f
}

// Count counts those that were created before a time.
func (f *jobTargets) Count(_ context.Context, filter listing.Filter, _ bool) (*admin.Counts, error) {
	counts := new(admin.Counts)
	for _, inv := range f.all {
		if int64(inv.CreatedAt) < filter.Created.Before {
			counts.Total++
		}
	}
	return counts, nil
}

// List lists those that were not killed.
func (f *jobTargets) List(_ context.Context, q admin.Query) (page admin.Page, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.query = q
	if f.failList > 0 {
		f.failList--
		return page, admin.ErrUnavailable
	}
	from := 0
	_, _ = fmt.Sscan(q.Cursor, &from)
	for i := from; i < len(f.all); i++ {
		if f.killed[f.all[i].ID] > 0 || q.Filter.Created.Before > 0 && int64(f.all[i].CreatedAt) >= q.Filter.Created.Before {
			continue
		}
		if len(page.Invocations) == q.Limit {
			page.Next = fmt.Sprint(i)
			break
		}
		page.Invocations = append(page.Invocations, f.all[i])
	}
	return page, nil
}

func (f *jobTargets) Kill(ctx context.Context, id ids.Invocation) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.reject[id.String()]; err != nil {
		if errors.Is(err, admin.ErrUnavailable) {
			delete(f.reject, id.String())
		}
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.killed[id.String()]++
	if f.onKill != nil {
		f.onKill(len(f.killed))
	}
	return nil
}

func (f *jobTargets) Resume(_ context.Context, id ids.Invocation, _ admin.DeploymentChoice) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reject[id.String()]
}

func (f *jobTargets) CancelOnce(_ context.Context, id ids.Invocation, request uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancels[id.String()] == nil {
		f.cancels[id.String()] = map[uint64]bool{}
	}
	f.cancels[id.String()][request] = true
	if err := f.reject[id.String()]; err != nil { // after it took effect
		delete(f.reject, id.String())
		return err
	}
	return nil
}

func (f *jobTargets) RestartOnce(_ context.Context, id ids.Invocation, unique [16]byte, _ admin.DeploymentChoice) (ids.Invocation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.reject[id.String()]; err != nil {
		return ids.Invocation{}, err
	}
	made := ids.NewInvocation(id.PartitionKey(), unique)
	f.restarts[made.String()] = true
	return made, nil
}

const jobCreated = 1_000_000

func records(job metadata.Job) *jobRecords {
	job.ID, job.State, job.Version, job.CreatedAt = "job_1", metadata.JobRunning, 1, time.UnixMilli(jobCreated)
	return &jobRecords{jobs: map[string]metadata.Job{"job_1": job}}
}

// runUntil executes jobs until the job has ended or the runner no longer leads.
func runUntil(t *testing.T, r *JobRunner, s *jobRecords, leads *atomic.Bool) metadata.Job {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Run(ctx)
	}()
	for {
		time.Sleep(jobPoll)
		synctest.Wait()
		if job, _ := s.Job("job_1"); job.State != metadata.JobRunning || !leads.Load() {
			cancel()
			<-done
			job, _ = s.Job("job_1")
			return job
		}
	}
}

func runner(s *jobRecords, f *jobTargets) (*JobRunner, *atomic.Bool) {
	leads := new(atomic.Bool)
	leads.Store(true)
	return NewJobRunner(s, f, leads.Load, slog.New(slog.DiscardHandler)), leads
}

func TestAJobProcessesAllThatMatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTargets(3*jobBatch + 7)
		f.all[5].CreatedAt = jobCreated // as old as the job
		f.all = append(f.all, &admin.Invocation{ID: "inv_younger", CreatedAt: jobCreated + 1})
		f.reject[f.all[1].ID] = errors.New("no " + strings.Repeat("x", 1000))
		f.reject[f.all[2].ID] = alreadyCompleted()
		f.reject[f.all[3].ID] = admin.ErrUnavailable // once
		f.failList = 1
		s := records(metadata.Job{Operation: "kill", Filter: "service=A&status=running"})
		s.unavailable = true
		r, leads := runner(s, f)
		job := runUntil(t, r, s, leads)
		require.Equal(t, metadata.JobDone, job.State)
		require.EqualValues(t, 3*jobBatch+7, job.Matched)
		require.EqualValues(t, 3*jobBatch+7, job.Total)
		require.EqualValues(t, 3*jobBatch+6, job.Done)
		require.EqualValues(t, 1, job.Failed)
		require.Equal(t, f.all[1].ID, job.Failures[0].Invocation)
		require.Less(t, len(job.Failures[0].Message), 400)
		require.Len(t, f.killed, 3*jobBatch+5)
		require.Equal(t, []string{"A"}, f.query.Filter.Services)
		require.True(t, f.query.OldestFirst)
	})
}

// TestTheNextLeaderContinuesAJob ends the leadership in the middle of a batch, whose first
// invocations no longer match then.
func TestTheNextLeaderContinuesAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTargets(3 * jobBatch)
		s := records(metadata.Job{Operation: "kill", Filter: "status=running"})
		r, leads := runner(s, f)
		ctx, cancel := context.WithCancel(t.Context())
		f.onKill = func(n int) {
			if n == jobBatch+jobBatch/2 {
				leads.Store(false)
				cancel()
			}
		}
		require.NoError(t, r.Run(ctx))
		job, _ := s.Job("job_1")
		require.Equal(t, metadata.JobRunning, job.State)
		require.EqualValues(t, jobBatch, job.Done)

		f.onKill = nil
		r, leads = runner(s, f)
		job = runUntil(t, r, s, leads)
		require.Equal(t, metadata.JobDone, job.State)
		require.EqualValues(t, 3*jobBatch, job.Matched)
		require.EqualValues(t, 3*jobBatch, job.Done, "the counts are exact")
		require.Len(t, f.killed, 3*jobBatch, "none is missing")
	})
}

// TestRepeatedOperationsCountWhatHasEndedMeanwhile repeats a batch that another leader had processed, after
// which some of the invocations have ended or run.
func TestRepeatedOperationsCountWhatHasEndedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTargets(3)
		f.reject[f.all[0].ID] = alreadyCompleted()
		f.reject[f.all[1].ID] = &admin.Rejection{Status: http.StatusBadRequest, Message: "no such deployment"}
		var batch []string
		for _, inv := range f.all {
			batch = append(batch, inv.ID)
		}
		s := records(metadata.Job{Operation: "resume", JobProgress: metadata.JobProgress{Batch: batch, Matched: 3}})
		r, leads := runner(s, f)
		job := runUntil(t, r, s, leads)
		require.Equal(t, metadata.JobDone, job.State)
		require.EqualValues(t, 3, job.Done, "2 of the batch and 1 that the runner lists again")
		require.EqualValues(t, 1+2, job.Failed, "those of the second batch had ended before it was processed")
	})
}

// TestAJobSkipsWhatWasPurgedMeanwhile has invocations that were deleted after the job had listed
// them.
func TestAJobSkipsWhatWasPurgedMeanwhile(t *testing.T) {
	for _, operation := range []string{"restart-as-new", "kill", "resume"} {
		synctest.Test(t, func(t *testing.T) {
			f := newTargets(3)
			f.reject[f.all[0].ID] = rest.ErrNotFound
			f.reject[f.all[1].ID] = reject(http.StatusGone, "no input")
			s := records(metadata.Job{Operation: operation, Filter: "status=completed"})
			r, leads := runner(s, f)
			job := runUntil(t, r, s, leads)
			require.Equal(t, metadata.JobDone, job.State)
			require.EqualValues(t, 3, job.Matched)
			require.EqualValues(t, 1, job.Done)
			require.EqualValues(t, 1, job.Failed)
			require.Equal(t, f.all[1].ID, job.Failures[0].Invocation)
			require.EqualValues(t, 1, job.Skipped)
			require.Equal(t, f.all[0].ID, job.Skips[0].Invocation)
			require.Contains(t, job.Skips[0].Message, "purged")
		})
	}
}

// TestAJobReportsCancelsThatAreRejected has an invocation that has ended, and one that accepts no more cancels and
// so continues.
func TestAJobReportsCancelsThatAreRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTargets(2)
		f.reject[f.all[0].ID] = alreadyCompleted()
		f.reject[f.all[1].ID] = rejection(machine.Outcome{Code: machine.SignalsFull})
		s := records(metadata.Job{Operation: "cancel", Filter: "status=running"})
		r, leads := runner(s, f)
		job := runUntil(t, r, s, leads)
		require.EqualValues(t, 1, job.Done)
		require.EqualValues(t, 1, job.Failed)
		require.Equal(t, f.all[1].ID, job.Failures[0].Invocation)
		require.Contains(t, job.Failures[0].Message, "kill it instead")
	})
}

func TestAStoppedJobEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTargets(3 * jobBatch)
		s := records(metadata.Job{Operation: "kill", Filter: "status=running"})
		r, leads := runner(s, f)
		f.onKill = func(n int) {
			if n == jobBatch+1 {
				s.stop("job_1")
			}
		}
		job := runUntil(t, r, s, leads)
		require.Equal(t, metadata.JobStopped, job.State)
		require.Less(t, len(f.killed), jobBatch+2*jobParallel+2)
	})
}

// unavailableTargets are invocations of which some are in a partition without a leader.
type unavailableTargets struct {
	*jobTargets
	down map[string]bool
}

func (f *unavailableTargets) Kill(ctx context.Context, id ids.Invocation) error {
	if f.down[id.String()] {
		return admin.ErrUnavailable
	}
	return f.jobTargets.Kill(ctx, id)
}

// TestAnUnavailablePartitionDelaysNoOtherJob runs a job on a partition without a leader beside
// another one.
func TestAnUnavailablePartitionDelaysNoOtherJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &unavailableTargets{newTargets(4 * jobParallel), map[string]bool{}}
		waits, ends := metadata.Job{Operation: "kill"}, metadata.Job{Operation: "kill"}
		for i, inv := range f.all {
			job := &ends
			if i < 2*jobParallel {
				job, f.down[inv.ID] = &waits, true
			}
			job.Batch, job.Exhausted = append(job.Batch, inv.ID), true
		}
		s := records(ends)
		waits.ID, waits.State, waits.Version = "job_0", metadata.JobRunning, 1
		s.jobs[waits.ID] = waits
		leads := func() bool { return true }
		r := NewJobRunner(s, f, leads, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()

		time.Sleep(5 * time.Second)
		synctest.Wait()
		job, _ := s.Job("job_1")
		require.Equal(t, metadata.JobDone, job.State)
		require.EqualValues(t, 2*jobParallel, job.Done)
		s.stop("job_0")
		time.Sleep(2 * jobRetryDelay)
		synctest.Wait()
		require.Empty(t, r.slots, "the operations of a stopped job are not repeated")
		cancel()
		require.NoError(t, <-done)
	})
}

func TestRestartsOfAJobAreRepeatable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTargets(3)
		for range 2 {
			var batch []string
			for _, inv := range f.all {
				batch = append(batch, inv.ID)
			}
			s := records(metadata.Job{Operation: "restart-as-new", JobProgress: metadata.JobProgress{Batch: slices.Clone(batch), Exhausted: true, Matched: 3}})
			r, leads := runner(s, f)
			require.EqualValues(t, 3, runUntil(t, r, s, leads).Done)
		}
		require.Len(t, f.restarts, 3)
	})
}

// TestAJobCancelsOnce repeats the operation on an invocation whose partition did not respond, and a
// whole batch, as the next leader does: a handler that compensates must not be cancelled again.
func TestAJobCancelsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTargets(3)
		f.reject[f.all[1].ID] = admin.ErrUnavailable
		for range 2 {
			var batch []string
			for _, inv := range f.all {
				batch = append(batch, inv.ID)
			}
			s := records(metadata.Job{Operation: "cancel", JobProgress: metadata.JobProgress{Batch: batch, Exhausted: true, Matched: 3}})
			r, leads := runner(s, f)
			require.EqualValues(t, 3, runUntil(t, r, s, leads).Done)
		}
		require.Len(t, f.cancels, 3)
		for id, requests := range f.cancels {
			require.Len(t, requests, 1, id)
			require.NotContains(t, requests, uint64(0))
		}
	})
}

func TestAJobOfAnUnknownOperationHasFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTargets(1)
		s := records(metadata.Job{Operation: "destroy", JobProgress: metadata.JobProgress{Batch: []string{f.all[0].ID, "x"}, Exhausted: true, Matched: 2}})
		r, leads := runner(s, f)
		job := runUntil(t, r, s, leads)
		require.EqualValues(t, 2, job.Failed)
		require.Contains(t, job.Failures[0].Message, `does not know the operation "destroy"`)
	})
}
