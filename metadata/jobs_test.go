package metadata

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
)

// fullJob has all fields set.
func fullJob() Job {
	return Job{
		ID: "job_1", Operation: "resume", Filter: "service=Greeter&status=paused", Deployment: "latest", Reason: "a deploy", By: "::1", CreatedAt: goldenTime,
		JobProgress: JobProgress{
			State: JobRunning, Batch: []string{"inv_1a", "inv_1b"}, Cursor: "x.y", Exhausted: true, Matched: 302, Done: 299, Failed: 1,
			Failures: []JobFailure{{"inv_1z", "no"}}, Error: "none",
		},
		ModifiedAt: goldenTime, Version: 300,
	}
}

// atLevel4 is a store of a cluster at feature level 4.
func atLevel4(t *testing.T) *memStore {
	m := newMemStore()
	_, err := m.Provision(t.Context(), Cluster{Name: "local", Partitions: 2, FeatureLevel: feature.Level4})
	require.NoError(t, err)
	return m
}

func TestJobAdvancesAndEnds(t *testing.T) {
	m := atLevel4(t)
	created, err := m.CreateJob(t.Context(), Job{Operation: "kill", JobProgress: JobProgress{Batch: []string{"inv_1"}}})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(created.ID, "job_"), created.ID)
	require.Equal(t, JobRunning, created.State)
	stored, known := m.Job(created.ID)
	require.True(t, known)
	require.Equal(t, []string{"inv_1"}, stored.Batch)

	progress := stored.JobProgress
	progress.Done, progress.Batch = 1, []string{"inv_2"}
	progress.AddSkip("inv_3", "gone")
	advanced, err := m.AdvanceJob(t.Context(), created.ID, created.Version, progress)
	require.NoError(t, err)
	require.EqualValues(t, 1, advanced.Done)
	require.EqualValues(t, 1, advanced.Skipped)
	require.Equal(t, []JobFailure{{"inv_3", "gone"}}, jobFromProto(jobToProto(&advanced)).Skips)
	require.Equal(t, "kill", advanced.Operation)
	_, err = m.AdvanceJob(t.Context(), created.ID, created.Version, progress)
	require.ErrorIs(t, err, ErrJobChanged, "another node has advanced it")

	stopped, err := m.StopJob(t.Context(), created.ID)
	require.NoError(t, err)
	require.Equal(t, JobStopped, stopped.State)
	again, err := m.StopJob(t.Context(), created.ID)
	require.NoError(t, err)
	require.Equal(t, stopped, again)
	stored, _ = m.Job(created.ID)
	require.Empty(t, stored.Batch)
	_, err = m.AdvanceJob(t.Context(), created.ID, stopped.Version, progress)
	require.ErrorIs(t, err, ErrJobChanged)
	_, err = m.StopJob(t.Context(), "job_0")
	require.ErrorIs(t, err, ErrJobNotFound)
	_, err = m.AdvanceJob(t.Context(), "job_0", 1, progress)
	require.ErrorIs(t, err, ErrJobNotFound)
}

func TestJobsAreBounded(t *testing.T) {
	m := atLevel4(t)
	var ids []string
	for range MaxRunningJobs {
		job, err := m.CreateJob(t.Context(), Job{Operation: "kill"})
		require.NoError(t, err)
		ids = append(ids, job.ID)
	}
	_, err := m.CreateJob(t.Context(), Job{Operation: "kill"})
	require.ErrorIs(t, err, ErrTooManyJobs)
	for range MaxJobs {
		_, err := m.StopJob(t.Context(), ids[0])
		require.NoError(t, err)
		job, err := m.CreateJob(t.Context(), Job{Operation: "kill"})
		require.NoError(t, err)
		ids = append(ids[1:], job.ID)
	}
	require.Len(t, m.Jobs(), MaxJobs)
	for _, id := range ids {
		_, known := m.Job(id)
		require.True(t, known, "running jobs are kept")
	}

	for name, job := range map[string]Job{
		"at most 1000 invocations at a time": {JobProgress: JobProgress{Batch: make([]string, MaxJobBatch+1)}},
		"at most 20 failures":                {JobProgress: JobProgress{Failures: make([]JobFailure, MaxJobFailures+1)}},
		"the filter of a job has":            {Filter: strings.Repeat("x", maxJobText+1)},
	} {
		_, err := m.CreateJob(t.Context(), job)
		require.ErrorContains(t, err, name)
	}
	var p JobProgress
	for i := range 2 * MaxJobFailures {
		p.AddFailure(fmt.Sprint(i), strings.Repeat("x", 2*maxFailureText))
	}
	require.Len(t, p.Failures, MaxJobFailures)
	require.EqualValues(t, 2*MaxJobFailures, p.Failed)
}

func TestTextsOfFailuresAreCutBetweenCharacters(t *testing.T) {
	for shift := range 3 {
		var p JobProgress
		p.AddFailure("inv_1", strings.Repeat("x", shift)+strings.Repeat("…", maxFailureText))
		message := p.Failures[0].Message
		require.True(t, utf8.ValidString(message))
		require.NotContains(t, message, "\uFFFD")
		require.Greater(t, len(message), maxFailureText-3)
	}
}

func TestJobsNeedTheirFeatureLevel(t *testing.T) {
	m := provisioned(t)
	_, err := m.CreateJob(t.Context(), Job{Operation: "kill"})
	require.ErrorContains(t, err, "a job needs feature level 4")
}

func TestJobsDoNotWakeReadersOfTheRegistry(t *testing.T) {
	m := atLevel4(t)
	_, changed := m.Watch()
	_, moved := m.Layout()
	_, err := m.CreateJob(t.Context(), Job{Operation: "kill"})
	require.NoError(t, err)
	select {
	case <-changed:
		t.Fatal("jobs are not part of the registry")
	case <-moved:
		t.Fatal("jobs are not part of the layout")
	default:
	}
}
