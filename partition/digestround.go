package partition

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"platform/partition/machine"
)

const (
	// digestRows and digestBytes bound what one round reads on each replica: about a
	// millisecond of work.
	digestRows  = 2048
	digestBytes = 4 << 20
	// digestTimeout is how long the leader waits for the results of a round.
	digestTimeout = 10 * time.Second
	// digestRetry is the first delay before a replica without a result is queried again; it
	// doubles.
	digestRetry = 20 * time.Millisecond
)

// roundResult summarizes the results of a round.
type roundResult struct {
	agreed    *machine.DigestResult // the result of a majority of the voters; nil: there is none
	differing []raft.ServerID       // voters whose result differs from agreed or, if nil, from the leader's
	complete  bool                  // all voters have a result
}

// compareReplicas compares the tables of the replicas periodically until ctx ends.
func (l *leadership) compareReplicas(ctx context.Context) error {
	d := l.p.digests
	var round uint64
	var agreed *machine.DigestResult // of the previous round, for replicas that had no result yet
	for pause(ctx, d.cfg.pause) {
		select {
		case <-d.due:
		case <-ctx.Done():
			return nil
		}
		if d.entries.Load() < d.cfg.Entries {
			continue // a round of another leader was applied meanwhile
		}
		voters := l.voters()
		if len(voters) < 2 || d.cfg.Fetch == nil {
			d.entries.Store(0)
			continue
		}
		round++
		from := d.from()
		v, err := l.digestRound(ctx, voters, round, from, agreed)
		agreed = v.agreed
		if err == nil && len(v.differing) > 0 {
			round++ // repeat: a result may be wrong although the tables are not
			if v, err = l.digestRound(ctx, voters, round, from, nil); err == nil {
				l.report(ctx, v)
			}
		}
		if err != nil {
			d.entries.Store(0)
			l.log.Debug("replicas not compared", "err", err)
		}
	}
	return nil
}

// report acts on a confirmed difference between replicas.
func (l *leadership) report(ctx context.Context, v roundResult) {
	if len(v.differing) == 0 {
		return
	}
	if v.agreed == nil {
		l.log.Error("replicas differ and no result has a majority", "differing", v.differing)
		return
	}
	l.log.Error("replicas differ; quarantining the minority", "differing", v.differing)
	if _, err := l.propose(ctx, &machine.Digest{Agreed: v.agreed}); err != nil {
		l.log.Warn("could not propose the agreed digest", "err", err)
	}
}

// voters returns the voting members of the partition, including this replica.
func (l *leadership) voters() (voters []raft.Server) {
	for _, s := range l.p.group.Servers() {
		if s.Suffrage == raft.Voter {
			voters = append(voters, s)
		}
	}
	return voters
}

// digestRound makes all replicas digest the same rows at the same log index and collects
// the results of the voters.
func (l *leadership) digestRound(ctx context.Context, voters []raft.Server, round uint64, from []byte, agreed *machine.DigestResult) (roundResult, error) {
	_, err := l.propose(ctx, &machine.Digest{
		Scan:   &machine.DigestScan{Round: round, From: from, Rows: digestRows, Bytes: digestBytes},
		Agreed: agreed,
	})
	if err != nil {
		return roundResult{}, fmt.Errorf("propose digest: %w", err)
	}
	waiting, cancel := context.WithTimeout(ctx, digestTimeout)
	defer cancel()
	results := make([]*machine.DigestResult, len(voters))
	var wg sync.WaitGroup
	for i, s := range voters {
		wg.Go(func() { results[i] = l.digestOf(waiting, s, DigestRound{l.epoch, round}) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return roundResult{}, ctx.Err()
	}
	v := evaluate(voters, l.p.LocalID(), results)
	switch {
	case len(v.differing) > 0:
		l.p.digests.cfg.Metrics.ended(roundDiffers)
	case v.complete:
		l.p.digests.cfg.Metrics.ended(roundAgreed)
	default:
		l.p.digests.cfg.Metrics.ended(roundIncomplete)
	}
	return v, nil
}

// digestOf returns the result of a replica; nil if it has none or does not respond in time.
func (l *leadership) digestOf(ctx context.Context, s raft.Server, r DigestRound) *machine.DigestResult {
	retry := digestRetry
	for {
		response, changed := DigestResponse{}, (<-chan struct{})(nil)
		if s.ID == l.p.LocalID() {
			response, changed = l.p.digests.response(r)
		} else if remote, err := l.p.digests.cfg.Fetch(ctx, s, l.p.id, r); err == nil {
			response = remote
		}
		if response.Result != nil || response.Missed {
			return response.Result
		}
		wait := time.NewTimer(retry)
		select {
		case <-changed:
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return nil
		}
		wait.Stop()
		retry = min(2*retry, time.Second)
	}
}

// evaluate finds the result of the majority of the voters, and the voters that differ from it.
// results has the order of voters, with nil for missing results.
func evaluate(voters []raft.Server, self raft.ServerID, results []*machine.DigestResult) roundResult {
	v := roundResult{complete: true}
	reference := (*machine.DigestResult)(nil)
	for i, r := range results {
		if r == nil {
			v.complete = false
			continue
		}
		if voters[i].ID == self || reference == nil {
			reference = r
		}
		count := 0
		for _, other := range results {
			if other != nil && sameDigest(r, other) {
				count++
			}
		}
		if 2*count > len(voters) {
			v.agreed = r
		}
	}
	if v.agreed != nil {
		reference = v.agreed
	}
	for i, r := range results {
		if r != nil && !sameDigest(r, reference) {
			v.differing = append(v.differing, voters[i].ID)
		}
	}
	return v
}
