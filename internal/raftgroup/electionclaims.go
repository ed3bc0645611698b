package raftgroup

import (
	"sync"
	"time"
)

// electionClaims keeps the replicas of a group from starting elections that replace a silent leader at the
// same time, in which their votes would be split: a replica claims one before it starts it, and for a while
// after that it agrees to no other one. It yields to an election that it agreed to itself. These are promises
// about time; what a replica has voted is Raft's state. The target of a leadership transfer needs no claim. The
// d of the methods is how long a claim or an agreement lasts.
type electionClaims struct {
	mu           sync.Mutex // covers the fields below
	claimed      time.Time  // when this replica last claimed an election
	agreed       time.Time  // when it last agreed to another one's
	agreedFormer time.Time  // when that last was the former leader's
	preVoted     time.Time  // when it last granted a pre-vote to a candidate that precedes it
	term         uint64     // newest one in which this replica was seen
	termSince    time.Time  // when it was first seen in that term
}

// agree reports whether this replica agrees to another one's election: not if it has claimed its own within d. former is
// set if the other one is the former leader.
func (c *electionClaims) agree(former bool, d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.claimed) < d {
		return false
	}
	c.agreed = time.Now()
	if former {
		c.agreedFormer = c.agreed
	}
	return true
}

// claim reports whether this replica may start an election: not if it yields to another one. Of two replicas that query
// each other at the same time only one may, since both would get their own vote only.
func (c *electionClaims) claim(first bool, d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.yieldsLocked(first, d) {
		return false
	}
	c.claimed = time.Now()
	return true
}

// yields reports whether this replica agreed within d to another one's election. The first one in the order yields only to
// the former leader, so that two do not yield to each other.
func (c *electionClaims) yields(first bool, d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.yieldsLocked(first, d)
}

func (c *electionClaims) yieldsLocked(first bool, d time.Duration) bool {
	return time.Since(c.agreedFormer) < d || !first && time.Since(c.agreed) < d
}

// claimGranted is claim for a candidate to which a majority has granted its pre-votes. It yields to each election that this
// replica agreed to, unless it has waited long enough.
func (c *electionClaims) claimGranted(waited bool, d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !waited && (c.yieldsLocked(false, d) || time.Since(c.preVoted) < d) {
		return false
	}
	c.claimed = time.Now()
	return true
}

// preVote reports whether this replica may grant a pre-vote: not if it has claimed an election within d. Two candidates may
// grant each other a pre-vote; then the second one in the order yields.
func (c *electionClaims) preVote(precedes bool, d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.claimed) < d {
		return false
	}
	if precedes {
		c.preVoted = time.Now()
	}
	return true
}

// entered records that this replica is in term and returns since when.
func (c *electionClaims) entered(term uint64) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term != term {
		c.term, c.termSince = term, time.Now()
	}
	return c.termSince
}

// standing is called when this replica starts an election.
func (c *electionClaims) standing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claimed = time.Now()
}
