package retention

import (
	"sync"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/logstore"
)

// sizes estimates how many bytes the recent part of a log has. It records entries in
// steps of sizeStep.
type sizes struct {
	mu    sync.Mutex // covers the fields below
	total int64
	marks []sizeMark // ascending by index
}

// sizeMark means that all known entries up to index have total bytes.
type sizeMark struct {
	index uint64
	total int64
}

const (
	sizeStep = 1 << 20
	maxMarks = 4096 // above this number every other one is removed
)

// assume records that the entries from first to last have that many bytes, which are distributed evenly.
func (s *sizes) assume(first, last uint64, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	steps := uint64(max(1, min(bytes/sizeStep, maxMarks/2)))
	for i := range steps + 1 {
		s.marks = append(s.marks, sizeMark{first - 1 + (last-first+1)*i/steps, bytes * int64(i) / int64(steps)})
	}
	s.total = bytes
}

// add records stored entries.
func (s *sizes) add(logs []*raft.Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := len(s.marks); n > 0 && logs[0].Index <= s.marks[n-1].index; n-- { // entries were replaced, as on followers
		s.marks = s.marks[:n-1]
		s.total = 0
		if n > 1 {
			s.total = s.marks[n-2].total
		}
	}
	for _, l := range logs {
		s.total += int64(logstore.EntryBytes(l))
	}
	if n := len(s.marks); n > 0 && s.total-s.marks[n-1].total < sizeStep {
		return
	}
	if len(s.marks) == maxMarks {
		for i := range maxMarks / 2 {
			s.marks[i] = s.marks[2*i+1]
		}
		s.marks = s.marks[:maxMarks/2]
	}
	s.marks = append(s.marks, sizeMark{logs[len(logs)-1].Index, s.total})
}

// before returns an index that at least that many bytes of entries follow, 0 if it knows none.
func (s *sizes) before(bytes int64) (index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.marks {
		if s.total-m.total < bytes {
			break
		}
		index = m.index
	}
	return index
}

// between returns approximately how many bytes the entries from lo to hi have.
func (s *sizes) between(lo, hi uint64) int64 {
	if lo > hi {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.upToLocked(hi)-s.upToLocked(lo-1))
}

// upToLocked interpolates between the marks around index.
func (s *sizes) upToLocked(index uint64) int64 {
	var before sizeMark
	for i, m := range s.marks {
		if m.index > index {
			if i == 0 {
				return m.total - min(m.total, sizeStep)
			}
			share := float64(index-before.index) / float64(m.index-before.index)
			return before.total + int64(share*float64(m.total-before.total))
		}
		before = m
	}
	return before.total
}
