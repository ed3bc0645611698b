package wire

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// Bounds of what another node may claim. Terms grow by one per election.
const (
	MaxTermStep = 1 << 32
	maxIndex    = 1 << 62
)

// errImplausible is wrapped by the errors of Check.
var errImplausible = errors.New("request that no member would send")

// Receiver is what Check knows about the replica that has received a request.
type Receiver struct {
	// MaxTerm is the highest plausible term: its own plus MaxTermStep; 0 if its own is unknown.
	MaxTerm uint64
	// CheckEntry returns an error for the data of a command that the state machine could not
	// apply. nil: it can apply all.
	CheckEntry func(data []byte) error
}

// Check rejects requests that end the process if Raft gets them: it panics on entries,
// configurations and gaps in the log that no member sends.
func (r Receiver) Check(request any) error {
	switch m := request.(type) {
	case *raft.AppendEntriesRequest:
		return r.checkAppend(m)
	case *raft.RequestVoteRequest:
		return r.checkTerm(m.Term)
	case *raft.RequestPreVoteRequest:
		return r.checkTerm(m.Term)
	case *raft.InstallSnapshotRequest:
		if m.LastLogIndex > maxIndex || m.LastLogTerm > m.Term || m.ConfigurationIndex > m.LastLogIndex {
			return fmt.Errorf("%w: snapshot at %d in term %d", errImplausible, m.LastLogIndex, m.LastLogTerm)
		}
		if err := checkConfiguration(m.Configuration); err != nil {
			return err
		}
		return r.checkTerm(m.Term)
	}
	return nil
}

// checkTerm rejects terms that no elections lead to, and after which none would be possible.
func (r Receiver) checkTerm(term uint64) error {
	if r.MaxTerm != 0 && term > r.MaxTerm {
		return fmt.Errorf("%w: term %d", errImplausible, term)
	}
	return nil
}

func (r Receiver) checkAppend(a *raft.AppendEntriesRequest) error {
	if a.PrevLogEntry > maxIndex || a.PrevLogTerm > a.Term {
		return fmt.Errorf("%w: append after entry %d of term %d", errImplausible, a.PrevLogEntry, a.PrevLogTerm)
	}
	next, term := a.PrevLogEntry+1, a.PrevLogTerm
	for _, e := range a.Entries {
		if e.Index != next || e.Term < term || e.Term > a.Term {
			return fmt.Errorf("%w: entry %d of term %d where %d was due", errImplausible, e.Index, e.Term, next)
		}
		next, term = e.Index+1, e.Term
		if err := r.checkEntry(e); err != nil {
			return fmt.Errorf("%w: entry %d: %w", errImplausible, e.Index, err)
		}
	}
	return r.checkTerm(a.Term)
}

func (r Receiver) checkEntry(e *raft.Log) error {
	switch e.Type {
	case raft.LogNoop, raft.LogBarrier:
		return nil
	case raft.LogConfiguration:
		return checkConfiguration(e.Data)
	case raft.LogCommand:
		if r.CheckEntry == nil {
			return nil
		}
		return r.CheckEntry(e.Data)
	}
	return fmt.Errorf("entry of type %d", e.Type)
}

// checkConfiguration rejects what raft.DecodeConfiguration panics on, and groups without
// voters.
func checkConfiguration(data []byte) (err error) {
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
