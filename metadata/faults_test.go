package metadata

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/internal/feature"
	"platform/internal/ids"
)

// faultRounds is the number of faults, METADATA_ROUNDS in the long form.
func faultRounds(t *testing.T) int {
	if s := os.Getenv("METADATA_ROUNDS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		return n
	}
	return 6
}

// changeHistory records the changes that clients request, per object.
type changeHistory struct {
	begin time.Time

	mu  sync.Mutex // covers the fields below
	ops map[string][]porcupine.Operation
	// definite, unknown and rejected count the outcomes.
	definite, unknown, rejected int
}

// jobChange is a change of a job: an advance of the expected version, or a stop.
type jobChange struct {
	stop     bool
	expected uint64
	cursor   string
}

// ruleChange replaces a rule, or removes it.
type ruleChange struct {
	remove      bool
	description string
}

// finalRead is the state after everything has ended.
type finalRead struct{}

// changed is the outcome of a change.
type changed struct {
	unknown  bool
	rejected bool // the object was not as expected
	job      Job
	rule     string // description, "" if there is none
}

// record adds a change. One that was certainly not made, because there was no leader, is left
// out: a change that has an effect nevertheless contradicts the model.
func (h *changeHistory) record(client int, object string, input any, call time.Duration, out changed, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end := int64(time.Since(h.begin))
	switch {
	case errors.Is(err, ErrUnavailable):
		h.definite++
		return
	case errors.Is(err, ErrJobChanged):
		h.rejected++
		out.rejected = true
	case err != nil:
		h.unknown++
		out.unknown, end = true, math.MaxInt64
	}
	h.ops[object] = append(h.ops[object], porcupine.Operation{ClientId: client, Input: input, Call: int64(call), Output: out, Return: end})
}

// jobVersion is the model's state of a job.
type jobVersion struct {
	Version uint64
	State   JobState
	Cursor  string
}

// jobModel is a job to which changes are applied one at a time. A change with an unknown
// outcome may have been made at any later time.
var jobModel = porcupine.Model{
	Init: func() any { return jobVersion{Version: 1, State: JobRunning} },
	Step: func(state, input, output any) (bool, any) {
		job, out := state.(jobVersion), output.(changed)
		switch in := input.(type) {
		case finalRead:
			return out.job.Version == job.Version && out.job.State == job.State && (job.State != JobRunning || out.job.Cursor == job.Cursor), job
		case jobChange:
			possible := job.State == JobRunning && (in.stop || in.expected == job.Version)
			next := job
			if possible {
				next.Version++
				next.Cursor = in.cursor
				if in.stop {
					next.State = JobStopped
				}
			}
			switch {
			case out.unknown:
				return true, next
			case out.rejected:
				return !in.stop && !possible, job
			case in.stop: // one that has ended is unchanged
				return out.job.Version == next.Version && out.job.State == JobStopped, next
			}
			return possible && out.job.Version == next.Version, next
		}
		return false, nil
	},
}

// ruleModel is a rule that is replaced and removed.
var ruleModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		out := output.(changed)
		switch in := input.(type) {
		case finalRead:
			return out.rule == state.(string), state
		case ruleChange:
			if in.remove {
				return true, ""
			}
			return out.unknown || out.rule == in.description, in.description
		}
		return false, nil
	},
}

// TestMetadataChangesUnderFaults changes jobs, rules and deployments on all nodes while nodes
// are killed, restarted and disconnected, and compares what is acknowledged with a model.
func TestMetadataChangesUnderFaults(t *testing.T) {
	c := newTestCluster(t)
	nodes := c.startAtLevel(3, feature.Supported())
	c.awaitVoters(3, 0, nodes...)
	f := &faultyCluster{testCluster: c, nodes: nodes, history: changeHistory{begin: time.Now(), ops: map[string][]porcupine.Operation{}}, deployments: map[ids.Deployment]bool{}}
	for range 3 {
		job, err := nodes[0].CreateJob(t.Context(), Job{Operation: "cancel"})
		require.NoError(t, err)
		f.jobs = append(f.jobs, job.ID)
	}
	c.mu.Lock()
	c.lost = func() bool { return rand.IntN(10) == 0 }
	c.mu.Unlock()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients sync.WaitGroup
	defer clients.Wait()
	defer cancel()
	for client := range 6 {
		clients.Go(func() { f.change(ctx, client) })
	}
	for round := range faultRounds(t) {
		f.inject(round)
	}
	cancel()
	clients.Wait()
	c.mu.Lock()
	c.lost, c.hung = nil, ""
	c.mu.Unlock()
	f.check()
}

// startAtLevel is startAll with a feature level.
func (c *testCluster) startAtLevel(count int, level feature.Level) (nodes []*testNode) {
	for i := range count {
		n := c.start(fmt.Sprint("n", i+1), "a", "", i == 0)
		n.self.FeatureLevel = level
		if i == 0 {
			_, err := n.Provision(c.t.Context(), Cluster{Name: "local", Partitions: 2, Replication: 3, FeatureLevel: level})
			require.NoError(c.t, err)
		}
		nodes = append(nodes, n)
		_, err := nodes[0].AddNode(c.t.Context(), n.self, false)
		require.NoError(c.t, err)
	}
	return nodes
}

// faultyCluster is a cluster whose nodes come and go while clients change its metadata.
type faultyCluster struct {
	*testCluster
	jobs    []string
	history changeHistory

	lock        sync.Mutex // covers the fields below
	nodes       []*testNode
	deployments map[ids.Deployment]bool // registered ones; false: its removal was requested
	uris        int
}

// any returns a node, which may be stopped meanwhile.
func (f *faultyCluster) any() *testNode {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.nodes[rand.IntN(len(f.nodes))]
}

// inject injects a fault, and removes it again while clients continue.
func (f *faultyCluster) inject(round int) {
	i := rand.IntN(len(f.nodes))
	n := f.nodes[i]
	f.t.Logf("round %d: fault %d of %s, which leads: %v", round, round%4, n.self.Name, n.Group().IsLeader())
	switch round % 4 {
	case 0:
		n.kill()
		f.progress()
		f.restart(i)
	case 1:
		n.stop()
		f.progress()
		f.restart(i)
	case 2: // requests to the node are not answered
		f.mu.Lock()
		f.hung = n.address
		f.mu.Unlock()
		ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
		_ = f.nodes[i].Group().TransferLeadership(ctx, "")
		cancel()
		f.mu.Lock()
		f.hung = ""
		f.mu.Unlock()
	case 3: // all nodes
		for _, n := range f.nodes {
			n.kill()
		}
		for i := range f.nodes {
			f.restart(i)
		}
	}
	f.progress()
}

func (f *faultyCluster) restart(i int) {
	f.lock.Lock()
	old := f.nodes[i]
	f.lock.Unlock()
	n := f.start(old.self.Name, "a", string(old.address), false)
	n.self.FeatureLevel = old.self.FeatureLevel
	f.lock.Lock()
	f.nodes[i] = n
	f.lock.Unlock()
}

// acknowledged counts the changes that were acknowledged.
func (f *faultyCluster) acknowledged() (n int) {
	f.history.mu.Lock()
	defer f.history.mu.Unlock()
	for _, ops := range f.history.ops {
		n += len(ops)
	}
	return n - f.history.unknown
}

// progress waits until more changes are acknowledged.
func (f *faultyCluster) progress() {
	f.t.Helper()
	before := f.acknowledged()
	require.Eventually(f.t, func() bool { return f.acknowledged() >= before+20 }, 2*time.Minute, 5*time.Millisecond)
}

// change requests changes through random nodes until ctx ends.
func (f *faultyCluster) change(ctx context.Context, client int) {
	for i := 0; ctx.Err() == nil; i++ {
		n := f.any()
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		switch r := rand.IntN(20); {
		case r < 9:
			f.changeJob(limited, client, n, fmt.Sprint(client, "-", i))
		case r < 18:
			f.changeRule(limited, client, n, fmt.Sprint(client, "-", i))
		default:
			f.changeDeployment(limited, n)
		}
		cancel()
	}
}

func (f *faultyCluster) changeJob(ctx context.Context, client int, n *testNode, cursor string) {
	id := f.jobs[rand.IntN(len(f.jobs))]
	known, _ := n.Job(id) // may be outdated
	call := time.Since(f.history.begin)
	if rand.IntN(400) == 0 {
		job, err := n.StopJob(ctx, id)
		f.history.record(client, id, jobChange{stop: true}, call, changed{job: job}, err)
		return
	}
	job, err := n.AdvanceJob(ctx, id, known.Version, JobProgress{State: JobRunning, Cursor: cursor})
	f.history.record(client, id, jobChange{expected: known.Version, cursor: cursor}, call, changed{job: job}, err)
}

// rulePatterns are the patterns of the rules that clients change.
var rulePatterns = []string{"a", "b", "c"}

func (f *faultyCluster) changeRule(ctx context.Context, client int, n *testNode, description string) {
	text := rulePatterns[rand.IntN(len(rulePatterns))]
	pattern, err := flowcontrol.ParsePattern(text)
	if err != nil {
		panic(err)
	}
	call := time.Since(f.history.begin)
	if rand.IntN(5) == 0 {
		_, err := n.DeleteRules(ctx, []flowcontrol.Removal{{Pattern: pattern}})
		f.history.record(client, text, ruleChange{remove: true}, call, changed{}, err)
		return
	}
	out := changed{}
	rules, err := n.PutRules(ctx, []flowcontrol.Change{{Pattern: pattern, Limits: flowcontrol.Limits{Concurrency: 1}, Description: description}})
	if err == nil {
		out.rule = rules[0].Description
	}
	f.history.record(client, text, ruleChange{description: description}, call, out, err)
}

// changeDeployment registers a deployment, or removes one that was registered.
func (f *faultyCluster) changeDeployment(ctx context.Context, n *testNode) {
	f.lock.Lock()
	f.uris++
	uri := fmt.Sprintf("http://deployment-%d/", f.uris)
	f.lock.Unlock()
	got, err := n.RegisterDeployment(ctx, Registration{Deployment: &Deployment{URI: uri, Services: []*Service{{Name: "Greeter"}}}})
	if err != nil {
		return
	}
	if got.Change != Created {
		f.t.Errorf("the registration of %s was applied twice: %v", uri, got.Change)
	}
	remove := rand.IntN(2) == 0
	f.lock.Lock()
	f.deployments[got.Deployment.ID] = true
	f.lock.Unlock()
	if remove {
		err = n.DeleteDeployment(ctx, got.Deployment.ID)
		f.lock.Lock()
		defer f.lock.Unlock()
		switch {
		case err == nil:
			f.deployments[got.Deployment.ID] = false
		case !errors.Is(err, ErrUnavailable):
			delete(f.deployments, got.Deployment.ID) // unknown
		}
	}
}

// check compares the final state of all nodes with each other and with the model.
func (f *faultyCluster) check() {
	t, first := f.t, f.nodes[0]
	f.awaitVoters(3, 0, f.nodes...)
	_, err := first.CreateJob(t.Context(), Job{Operation: "cancel"}) // after everything else
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		book, _ := first.Rules()
		for _, n := range f.nodes[1:] {
			other, _ := n.Rules()
			assert.Equal(c, book, other)
			assert.Equal(c, first.Jobs(), n.Jobs())
			assert.Equal(c, first.Schemas().Deployments, n.Schemas().Deployments)
		}
	}, time.Minute, 10*time.Millisecond)
	for id, present := range f.deployments {
		require.Equal(t, present, first.Schemas().Deployments[id] != nil, "deployment %s", id)
	}
	h := &f.history
	t.Logf("%d changes acknowledged, %d of them refused, %d without effect, %d with an unknown outcome, %d deployments",
		f.acknowledged(), h.rejected, h.definite, h.unknown, len(f.deployments))
	now := int64(time.Since(h.begin))
	final := func(object string, model porcupine.Model, out changed) {
		ops := append(h.ops[object], porcupine.Operation{ClientId: 100, Input: finalRead{}, Call: now, Output: out, Return: now + 1})
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(model, ops, 2*time.Minute), "the changes of %s are not linearizable", object)
	}
	for _, id := range f.jobs {
		job, found := first.Job(id)
		require.True(t, found)
		final(id, jobModel, changed{job: job})
	}
	book, _ := first.Rules()
	for _, text := range rulePatterns {
		pattern, err := flowcontrol.ParsePattern(text)
		require.NoError(t, err)
		out := changed{}
		if rule := book.Find(pattern); rule != nil {
			out.rule = rule.Description
		}
		final(text, ruleModel, out)
	}
}
