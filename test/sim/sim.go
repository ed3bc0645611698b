package sim

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/internal/target"
	"platform/metadata"
	"platform/partition/machine"
)

// Options are the settings of a run besides the seed. Zero values are filled from the seed.
type Options struct {
	Nodes      int
	Partitions uint32
	Faults     time.Duration // how long faults are injected
	Defect     string        // a defect to activate, see defects.go
	FaultKinds []string      // names of the faults to inject, nil: drawn from the seed
	Frames     bool          // record each message between nodes in the trace
	Log        io.Writer     // what the servers log, nil: nothing
}

// Sim is one run.
type Sim struct {
	seed  uint64
	opts  Options
	log   *slog.Logger
	trace *trace
	net   *network
	nodes []*node
	wg    sync.WaitGroup

	schemas  *metadata.Schemas
	handlers map[string]handler
	rules    ruleTable
	history  *history
	settings raftgroup.Profile
	// batch bounds the commands of a log entry, 0: the default. Further entries are proposed while a
	// full one is in flight.
	batch   int
	table   table
	level   clusterLevel
	pauses  pauses
	topics  []*topic
	started atomic.Bool // all partitions were led
	suspect atomic.Pointer[node]

	mu         sync.Mutex // covers the fields below
	violations []string
	minSkew    time.Duration // smallest clock offset
	maxSkew    time.Duration // largest clock offset
	suspended  time.Duration // total
}

const deployment = ids.Deployment("dp_10000000000000000000001")

func newSim(seed uint64, opts Options) *Sim {
	rng := newRand(seed, "shape")
	if opts.Nodes == 0 {
		opts.Nodes = []int{3, 3, 3, 3, 3, 4, 4, 4, 4, 5}[rng.IntN(10)]
	}
	if opts.Partitions == 0 {
		opts.Partitions = uint32(2 + rng.IntN(2))
	}
	if opts.Faults == 0 {
		opts.Faults = 8 * time.Second
	}
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	s := &Sim{
		seed: seed, opts: opts, trace: newTrace(),
		log:      slog.New(slog.NewTextHandler(opts.Log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		settings: profileOf(rng), batch: []int{1, 4, 0}[rng.IntN(3)],
	}
	s.trace.logFrames = opts.Frames
	s.net = newNetwork(seed, s.trace)
	s.history = &history{sim: s}
	s.handlers = s.services()
	s.schemas = newSchemas(s.handlers)
	s.rules.set()
	for i := range opts.Nodes {
		s.nodes = append(s.nodes, s.newNode(string(rune('a'+i))))
	}
	s.initialLayout(rng)
	s.initialLevels(rng)
	s.initPauses()
	s.newTopics()
	return s
}

// profileOf draws the settings of the Raft groups: sometimes followers that were briefly
// unavailable need snapshots.
func profileOf(rng *rand.Rand) raftgroup.Profile {
	p := raftgroup.Test()
	p.TrailingLogs = []uint64{4, 64, 8192}[rng.IntN(3)]
	p.MaxAppendEntries = []int{4, 64, 256}[rng.IntN(3)]
	return p
}

func (s *Sim) profile() raftgroup.Profile { return s.settings }

// addresses are those of all nodes but one.
func (s *Sim) addresses(except string) (all []string) {
	for _, n := range s.nodes {
		if n.name != except {
			all = append(all, addressOf(n.name))
		}
	}
	return all
}

// violate records a violation.
func (s *Sim) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.trace.add("VIOLATION: %s", text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.violations, text) {
		s.violations = append(s.violations, text)
	}
}

// Schemas implements invoker.Registry.
func (s *Sim) Schemas() *metadata.Schemas { return s.schemas }

// newSchemas registers the handlers, which are named as in the path of a request.
func newSchemas(handlers map[string]handler) *metadata.Schemas {
	out := &metadata.Schemas{Version: 1, Deployments: map[ids.Deployment]*metadata.Deployment{}, Services: map[string]*metadata.Service{}}
	d := &metadata.Deployment{ID: deployment, URI: "http://" + services + "/", Bidirectional: true, MinProtocol: 5, MaxProtocol: 5}
	for _, spec := range serviceDefinitions {
		service := &metadata.Service{Name: spec.service, Type: metadata.PlainService, Revision: 1, Deployment: deployment}
		switch {
		case spec.kind == target.WorkflowRun:
			service.Type = metadata.Workflow
		case spec.kind.Keyed():
			service.Type = metadata.VirtualObject
		}
		for i, name := range spec.handlers {
			if handlers[spec.service+"/"+name] == nil {
				panic("no handler " + spec.service + "/" + name)
			}
			kind := spec.kind
			if kind == target.WorkflowRun && i > 0 {
				kind = target.WorkflowShared
			}
			service.Handlers = append(service.Handlers, &metadata.Handler{Name: name, Type: kind, Input: metadata.InputRules{Any: true}})
		}
		d.Services = append(d.Services, service)
		out.Services[spec.service] = service
	}
	out.Deployments[deployment] = d
	return out
}

// runningNodes returns the nodes that are running.
func (s *Sim) runningNodes() (up []*node) {
	for _, n := range s.nodes {
		if n.running() != nil {
			up = append(up, n)
		}
	}
	return up
}

// leader returns a node that leads and serves a partition, nil if there is none.
func (s *Sim) leader(id uint32) *node {
	for _, n := range s.runningNodes() {
		if l := n.running(); l != nil {
			if p := l.partition(id); p != nil && p.Leading() {
				return n
			}
		}
	}
	return nil
}

func (s *Sim) owner(id ids.Invocation) uint32 {
	return machine.PartitionOf(id.PartitionKey(), s.opts.Partitions)
}

// waitUntil polls a condition; false if it does not become true in time.
func (s *Sim) waitUntil(limit time.Duration, condition func() bool) bool {
	for deadline := time.Now().Add(limit); !condition(); {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

// start starts all nodes and waits until all partitions are led.
func (s *Sim) start() error {
	for _, n := range s.nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	if !s.waitUntil(30*time.Second, s.allLed) {
		return fmt.Errorf("no leaders within 30 s")
	}
	s.started.Store(true)
	return nil
}

func (s *Sim) allLed() bool {
	for id := range s.opts.Partitions {
		if s.leader(id) == nil {
			return false
		}
	}
	return true
}

// Run runs one seed in the bubble of the caller and returns its result. Goroutines that it has
// started continue; the process must exit afterwards.
func Run(seed uint64, opts Options) *Result {
	s := newSim(seed, opts)
	s.trace.add("seed %d: %d nodes, %d partitions, %d commands per entry, profile %+v", seed, s.opts.Nodes, s.opts.Partitions, s.batch, s.settings)
	if err := s.start(); err != nil {
		s.violate("start: %v", err)
		return s.result()
	}
	s.trace.add("all partitions are led")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	end := time.Now().Add(s.opts.Faults)
	var work sync.WaitGroup
	for i := range clients {
		work.Go(func() { s.newClient(i).run(ctx, end) })
	}
	work.Go(func() { s.checkDuring(end) })
	for _, t := range s.topics {
		work.Go(func() { t.produce(newRand(seed, fmt.Sprint("producer ", t.number)), end) })
	}
	s.nemesis(end)
	s.heal()
	s.trace.add("healed")
	work.Wait()
	s.trace.add("the clients have ended")
	s.settle(ctx)
	return s.result()
}
