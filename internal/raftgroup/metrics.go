package raftgroup

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
	"platform/internal/raftgroup/retention"
)

// Metrics counts what groups do. Several groups may share one; nil counts nothing. There
// are no labels per group, so that many groups cost no more series than one.
type Metrics struct {
	commands, bytes, commit   prometheus.Histogram
	failed                    *prometheus.CounterVec
	elections, won, leaders   prometheus.Counter
	taken, sent, received     prometheus.Counter
	appends, heartbeats       prometheus.Counter
	votes, timeouts, installs prometheus.Counter
	heldLog                   prometheus.Gauge
	droppedHolds              *prometheus.CounterVec
}

// Reasons why commands were not applied.
const (
	unknownOutcome = "unknown_outcome"
	overloaded     = "overloaded"
	stopped        = "stopped"
	notLeader      = "not_leader"
)

// NewMetrics registers the metrics of groups of one kind, such as partition.
func NewMetrics(reg prometheus.Registerer, kind string) *Metrics {
	reg = prometheus.WrapRegistererWith(prometheus.Labels{"group": kind}, reg)
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: metrics.Namespace, Subsystem: "raft", Name: name, Help: help, Buckets: buckets})
		reg.MustRegister(h)
		return h
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: metrics.Namespace, Subsystem: "raft", Name: name, Help: help})
		reg.MustRegister(c)
		return c
	}
	vector := func(name, help, label string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: metrics.Namespace, Subsystem: "raft", Name: name, Help: help}, []string{label})
		reg.MustRegister(v)
		return v
	}
	requests := vector("requests_total", "Requests sent to other replicas.", "request")
	failed := vector("failed_commands_total", "Commands that their proposer does not know to be applied.", "reason")
	for _, reason := range []string{unknownOutcome, overloaded, stopped, notLeader} {
		failed.WithLabelValues(reason) // created at the start, so that the first failure is an increase
	}
	held := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: metrics.Namespace, Subsystem: "raft", Name: "held_log_bytes",
		Help: "Log entries kept beyond the usual for followers that are being sent a snapshot."})
	reg.MustRegister(held)
	dropped := vector("dropped_log_holds_total", "Log entries that were cut although a follower that was sent a snapshot needed them.", "cause")
	for _, reason := range retention.Reasons {
		dropped.WithLabelValues(string(reason))
	}
	return &Metrics{
		heldLog: held, droppedHolds: dropped,
		commands: histogram("entry_commands", "Commands in a proposed log entry: the batch size.", prometheus.ExponentialBuckets(1, 2, 9)),
		bytes:    histogram("entry_bytes", "Size of a proposed log entry.", prometheus.ExponentialBuckets(256, 4, 7)),
		commit: histogram("commit_duration_seconds", "Time from proposing a log entry until it is agreed on and applied here.",
			prometheus.ExponentialBuckets(0.00025, 2, 16)),
		failed:     failed,
		elections:  counter("elections_started_total", "Times that a replica here stood for election."),
		won:        counter("elections_won_total", "Times that a replica here became leader."),
		leaders:    counter("leader_changes_total", "Changes of the leader as seen by replicas on this node."),
		taken:      counter("snapshots_taken_total", "Times that a log was cut behind a durable state."),
		sent:       counter("snapshots_sent_total", "Snapshots sent to followers that need truncated log entries."),
		received:   counter("snapshots_received_total", "States received from leaders and installed."),
		appends:    requests.WithLabelValues("append"),
		heartbeats: requests.WithLabelValues("heartbeat"),
		votes:      requests.WithLabelValues("vote"),
		timeouts:   requests.WithLabelValues("timeout_now"),
		installs:   requests.WithLabelValues("install_snapshot"),
	}
}

// ended counts an entry that was proposed at begin, and the outcome of its commands.
func (m *Metrics) ended(begin time.Time, commands, bytes int, err error) {
	if m == nil {
		return
	}
	m.commands.Observe(float64(commands))
	m.bytes.Observe(float64(bytes))
	if err != nil {
		m.refused(commands, err)
		return
	}
	m.commit.Observe(time.Since(begin).Seconds())
}

// refused counts commands that were not applied.
func (m *Metrics) refused(commands int, err error) {
	if m == nil || commands == 0 {
		return
	}
	reason := unknownOutcome
	switch {
	case errors.Is(err, ErrOverloaded):
		reason = overloaded
	case errors.Is(err, ErrStopped):
		reason = stopped
	case Definite(err):
		reason = notLeader
	}
	m.failed.WithLabelValues(reason).Add(float64(commands))
}

// became counts a state change of a replica.
func (m *Metrics) became(state raft.RaftState) {
	switch {
	case m == nil:
	case state == raft.Candidate:
		m.elections.Inc()
	case state == raft.Leader:
		m.won.Inc()
	}
}

func (m *Metrics) leaderChanged() {
	if m != nil {
		m.leaders.Inc()
	}
}

func (m *Metrics) tookSnapshot() {
	if m != nil {
		m.taken.Inc()
	}
}

func (m *Metrics) sentSnapshot(err error) {
	if m == nil {
		return
	}
	m.installs.Inc()
	if err == nil {
		m.sent.Inc()
	}
}

func (m *Metrics) heldLogBytes(bytes int64) {
	if m != nil {
		m.heldLog.Set(float64(bytes))
	}
}

func (m *Metrics) droppedHold(reason retention.Reason) {
	if m != nil {
		m.droppedHolds.WithLabelValues(string(reason)).Inc()
	}
}

func (m *Metrics) receivedSnapshot() {
	if m != nil {
		m.received.Inc()
	}
}

func (m *Metrics) requestedAppend(entries int) {
	switch {
	case m == nil:
	case entries == 0:
		m.heartbeats.Inc()
	default:
		m.appends.Inc()
	}
}

func (m *Metrics) requestedVote() {
	if m != nil {
		m.votes.Inc()
	}
}

func (m *Metrics) requestedTimeout() {
	if m != nil {
		m.timeouts.Inc()
	}
}
