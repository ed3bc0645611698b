package kafka

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fetched are the records of a stream that were fetched and not handed over yet. A session begins
// with a fetch from an offset on, and expects every record from there.
type fetched struct {
	session uint64 // number of the session; what was fetched for another one is ignored
	active  bool   // the client fetches
	paused  bool   // the client must not, since there are enough records
	next    int64  // offset from which on records are expected
	records []*kgo.Record
}

// begin starts a session at an offset.
func (f *fetched) begin(next int64) (session uint64) {
	f.session++
	f.active, f.next = true, next
	return f.session
}

// end discards the records. It reports whether the client still fetches.
func (f *fetched) end() (active bool) {
	active = f.active
	f.active, f.paused, f.records = false, false, nil
	return active
}

// expects reports whether what was fetched for a session continues the records.
func (f *fetched) expects(session uint64) bool { return f.active && session == f.session }

// add appends a record.
func (f *fetched) add(rec *kgo.Record) {
	f.next = rec.Offset + 1
	f.records = append(f.records, rec)
}

// take removes the first record.
func (f *fetched) take() *kgo.Record {
	rec := f.records[0]
	f.records[0] = nil
	f.records = f.records[1:]
	return rec
}

// window contains the records that were handed over, in the order of offsets, from the first one
// that is not done. They are done in any order.
type window struct {
	records  []*pending
	inFlight int   // not done
	next     int64 // offset of the window: everything before is done
	epoch    int32 // of the record before next
}

// pending is a record that is not known to be stored.
type pending struct {
	offset    int64
	epoch     int32
	timestamp time.Time
	outcome   outcome
	done      bool
	bytes     int64
}

// begin moves an empty window to an offset.
func (w *window) begin(next int64, epoch int32) { w.next, w.epoch = next, epoch }

// add appends a record, which is in flight from now on.
func (w *window) add(rec *kgo.Record) *pending {
	p := &pending{offset: rec.Offset, epoch: rec.LeaderEpoch, timestamp: rec.Timestamp, bytes: recordBytes(rec)}
	w.records = append(w.records, p)
	w.inFlight++
	return p
}

// end marks a record as done, with its outcome.
func (w *window) end(p *pending, how outcome) {
	p.outcome, p.done = how, true
	w.inFlight--
}

// advance moves the window over records that are done, and returns them. The slice is valid until
// the next call of add.
func (w *window) advance() []*pending {
	n := 0
	for n < len(w.records) && w.records[n].done {
		w.next, w.epoch = w.records[n].offset+1, w.records[n].epoch
		n++
	}
	done := w.records[:n]
	w.records = w.records[n:]
	return done
}

// drop removes the records.
func (w *window) drop() { w.records, w.inFlight = nil, 0 }
