package raftgroup

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// EntryChecker is implemented by state machines that can tell before an entry is stored that
// they could not apply it. Entries of proposers are valid, so only a faulty or hostile leader
// sends others; a committed one would end the process at each start.
type EntryChecker interface {
	// CheckEntry returns an error for an entry that no release applies. It may be called
	// concurrently.
	CheckEntry(data []byte) error
}

// Bounds of what another node may claim. Terms grow by one per election.
const (
	maxTermStep = 1 << 32
	maxIndex    = 1 << 62
)

// errImplausible is wrapped by the errors of verify.
var errImplausible = errors.New("request that no member would send")

// verify rejects requests that end the process if Raft gets them: it panics on entries,
// configurations and gaps in the log that no member sends.
func (p *port) verify(command any) error {
	switch c := command.(type) {
	case *raft.AppendEntriesRequest:
		return p.verifyAppend(c)
	case *raft.RequestVoteRequest:
		return p.verifyTerm(c.Term)
	case *raft.RequestPreVoteRequest:
		return p.verifyTerm(c.Term)
	case *raft.InstallSnapshotRequest:
		if c.LastLogIndex > maxIndex || c.LastLogTerm > c.Term || c.ConfigurationIndex > c.LastLogIndex {
			return fmt.Errorf("%w: snapshot at %d in term %d", errImplausible, c.LastLogIndex, c.LastLogTerm)
		}
		if err := verifyConfiguration(c.Configuration); err != nil {
			return err
		}
		return p.verifyTerm(c.Term)
	}
	return nil
}

// verifyTerm rejects terms that no elections lead to, and after which none would be possible.
func (p *port) verifyTerm(term uint64) error {
	r := p.outgoing.Load().raft.Load()
	if r != nil && term > r.CurrentTerm()+maxTermStep {
		return fmt.Errorf("%w: term %d", errImplausible, term)
	}
	return nil
}

func (p *port) verifyAppend(a *raft.AppendEntriesRequest) error {
	checker, _ := p.group.fsm.sm.(EntryChecker)
	if a.PrevLogEntry > maxIndex || a.PrevLogTerm > a.Term {
		return fmt.Errorf("%w: append after entry %d of term %d", errImplausible, a.PrevLogEntry, a.PrevLogTerm)
	}
	next, term := a.PrevLogEntry+1, a.PrevLogTerm
	for _, e := range a.Entries {
		if e.Index != next || e.Term < term || e.Term > a.Term {
			return fmt.Errorf("%w: entry %d of term %d where %d was due", errImplausible, e.Index, e.Term, next)
		}
		next, term = e.Index+1, e.Term
		var err error
		switch e.Type {
		case raft.LogNoop, raft.LogBarrier:
		case raft.LogConfiguration:
			err = verifyConfiguration(e.Data)
		case raft.LogCommand:
			if checker != nil {
				err = checker.CheckEntry(e.Data)
			}
		default:
			err = fmt.Errorf("entry of type %d", e.Type)
		}
		if err != nil {
			return fmt.Errorf("%w: entry %d: %w", errImplausible, e.Index, err)
		}
	}
	return p.verifyTerm(a.Term)
}

// verifyConfiguration rejects what raft.DecodeConfiguration panics on, and groups without
// voters.
func verifyConfiguration(data []byte) (err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%w: malformed configuration", errImplausible)
		}
	}()
	config := raft.DecodeConfiguration(data)
	voters := 0
	seen := map[raft.ServerID]bool{}
	for _, s := range config.Servers {
		if s.ID == "" || s.Address == "" || seen[s.ID] {
			return fmt.Errorf("%w: malformed configuration", errImplausible)
		}
		seen[s.ID] = true
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	if voters == 0 {
		return fmt.Errorf("%w: configuration without voters", errImplausible)
	}
	return nil
}
