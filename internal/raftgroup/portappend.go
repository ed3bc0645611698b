package raftgroup

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/peers"
	"platform/internal/raftgroup/wire"
	"platform/proto/node"
)

// AppendEntries sends entries, in several messages if they are large: each message is a
// complete append. The response is that of the last one sent.
func (p *port) AppendEntries(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest,
	resp *raft.AppendEntriesResponse,
) error {
	if !p.outgoing.Load().leads(args.Term) {
		return errDeposed
	}
	if p.group.storage.probe.Hangs() {
		return errStorageHangs
	}
	if err := p.withhold(id, args); err != nil {
		return err
	}
	batch := *args
	target := p.target(id, addr)
	for rest := args.Entries; ; {
		n, size := batchLen(rest)
		var err error
		if batch.Entries, err = p.completed(rest[:n], args.Term); err != nil {
			return err
		}
		sent := p.followers.elapsed()
		if err := p.appendBatch(target, &batch, size, resp); err != nil {
			if replicaNotOpen(err) {
				p.followers.absent(id, args.Term)
			}
			if args.PrevLogEntry != 0 || len(args.Entries) != 0 { // heartbeats are not delayed
				args.Entries = nil // not used after an error
				p.awaitPeer(target, args.Term, replicaNotOpen(err))
			}
			return err
		}
		p.followers.appended(id, &batch, resp, sent)
		rest = rest[n:]
		if len(rest) == 0 || !resp.Success {
			return nil
		}
		last := batch.Entries[n-1]
		batch.PrevLogEntry, batch.PrevLogTerm = last.Index, last.Term
	}
}

// completed returns entries of the leader of term with their data. Once that leader is
// deposed, its entries may be truncated and replaced, which is not damage.
func (p *port) completed(logs []*raft.Log, term uint64) ([]*raft.Log, error) {
	if !slices.ContainsFunc(logs, logstore.Deferred) {
		return logs, nil
	}
	whole := make([]*raft.Log, len(logs))
	for i, log := range logs {
		var err error
		if whole[i], err = p.group.storage.complete(log); err != nil {
			if !p.outgoing.Load().leads(term) {
				return nil, errDeposed
			}
			if errors.Is(err, logstore.ErrCorrupt) {
				p.group.storage.onDamage(fmt.Errorf("%w: %w", ErrQuarantined, err))
			}
			return nil, err
		}
	}
	return whole, nil
}

// batchLen returns how many entries go into one message, and their bytes.
func batchLen(logs []*raft.Log) (n, bytes int) {
	for n < len(logs) {
		size := logstore.EntryBytes(logs[n])
		if n > 0 && bytes+size > appendBatchBytes {
			break
		}
		bytes += size
		n++
	}
	return n, bytes
}

func (p *port) appendBatch(to target, args *raft.AppendEntriesRequest, size int, resp *raft.AppendEntriesResponse) error {
	kind, timeout := peers.Control, p.election
	if len(args.Entries) > 0 {
		kind, timeout = peers.Data, dataTimeout+time.Duration(size)*time.Second/(1<<20)
	}
	p.group.cfg.Metrics.requestedAppend(len(args.Entries))
	f, err := p.call(to, kind, timeout, &node.RaftFrame{AppendRequest: wire.EncodeAppend(args)})
	if err != nil {
		return err
	}
	r := f.AppendResponse
	if r == nil {
		return errWrongResponse
	}
	*resp = wire.DecodeAppendResponse(r)
	return nil
}
