package query

import (
	"context"
	"time"

	"platform/internal/ids"
)

// Flow has the rows of flow control.
type Flow interface {
	Rules(context.Context) ([]RuleRow, error)
	// The others are read from all partitions.
	UserLimits(context.Context) ([]LimitRow, error)
	Heads(context.Context) ([]HeadRow, error)
	Queues(context.Context) ([]QueueRow, error)
	Entries(context.Context) ([]EntryRow, error)
}

// RuleRow is a rule of the rule book.
type RuleRow struct {
	Pattern     string
	Concurrency uint32 // 0: unlimited
	Description string
	Disabled    bool
	Version     uint32
	ModifiedAt  time.Time
}

// LimitRow is a counter that is in use.
type LimitRow struct {
	PartitionKey  uint64
	Scope, L1, L2 string
	Level         string // Scope, Level1 or Level2
	Usage         uint32
	Limit         uint32 // 0: none
	Rule          string // its pattern
	Waiters       uint64
}

// Blocked is for how long something was held back by what.
type Blocked struct {
	InvokerConcurrency, ThrottlingRules, InvokerThrottling, InvokerMemory,
	ConcurrencyRules, Lock, DeploymentConcurrency time.Duration
}

// HeadRow is a queue that has entries, and what is known of the first one.
type HeadRow struct {
	PartitionKey  uint64
	ID            string
	Inbox         uint64 // entries waiting
	Status        string // dormant, ready, scheduled or blocked
	Entry         string
	ScheduledAt   time.Time
	BlockedOn     string
	BlockedOnJSON string
	Blocked       Blocked
}

// QueueRow is a queue.
type QueueRow struct {
	PartitionKey                                                        uint64
	ID                                                                  string
	Active, Paused                                                      bool
	Service, Scope, LimitKey, Lock                                      string
	CreatedAt, LastEnqueuedAt, LastStartAt, LastAttemptAt, LastFinishAt time.Time
	AvgQueue, AvgInbox, AvgRun, AvgSuspension, AvgEndToEnd              time.Duration
	AvgBlocked                                                          Blocked
	NumInbox, NumRunning, NumSuspended, NumPaused, NumFinished          uint64
}

// EntryRow is an entry of a queue.
type EntryRow struct {
	PartitionKey                                     uint64
	Queue                                            string
	Stage, Status                                    string
	HasLock                                          bool
	RunAt, NextAt                                    time.Time
	Sequence                                         uint64
	Entry                                            ids.Invocation
	Kind                                             string // invocation or state-mutation
	CreatedAt, TransitionedAt                        time.Time
	Attempts, Errors, Pauses, Suspensions, Yields    uint32
	FirstAttemptAt, LatestAttemptAt, FirstRunnableAt time.Time
	Deployment                                       string
	NeededMemory                                     uint64
	RetryAttempts, RetriesSinceLastCommand           uint32
	LatestBlocked, TotalBlocked                      Blocked
}
