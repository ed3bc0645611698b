package query

import (
	"context"
	"encoding/binary"
	"iter"
	"time"

	"platform/internal/ids"
	"platform/internal/target"
	"platform/metadata"
	"platform/partition"
	"platform/partition/journal"
)

// entryRow is an entry and the page it is in.
type entryRow struct {
	*partition.Row
	journals *journals
}

// journals resolves references between entries.
type journals struct {
	session *session
	page    []partition.Row
	id      ids.Invocation // the invocation of callees
	callees map[uint32]string
}

// callee returns the invocation that a call created. The completion that contains its ID follows
// later in the journal, usually in the same page; otherwise the journal is read again.
func (j *journals) callee(id ids.Invocation, completion uint32) string {
	if j.id != id || j.callees == nil {
		j.id, j.callees = id, map[uint32]string{}
		j.collect(j.page)
	}
	if found, ok := j.callees[completion]; ok {
		return found
	}
	scan := partition.Scan{Table: partition.Journal, Detail: partition.Whole, ID: id, Keys: partition.KeyRange{First: id.PartitionKey(), Last: id.PartitionKey()}}
	for page, err := range gather(j.session.ctx, j.session, scan) {
		if err != nil {
			_ = j.session.fail(err)
			return ""
		}
		j.collect(page)
	}
	if _, ok := j.callees[completion]; !ok {
		j.callees[completion] = "" // not called yet
	}
	return j.callees[completion]
}

func (j *journals) collect(page []partition.Row) {
	for i := range page {
		if page[i].ID != j.id || page[i].Entry.Type != journal.CallInvocationIDCompletion {
			continue
		}
		if n, err := journal.ParseNotification(page[i].Entry.Payload); err == nil {
			j.callees[n.ID.Index] = n.InvocationID
		}
	}
}

func (r *entryRow) writer(lite bool) entryWriter {
	return entryWriter{
		lite:   lite,
		callee: func(completion uint32) string { return r.journals.callee(r.ID, completion) },
		typeOf: r.journals.typeOf, retention: r.journals.retention,
	}
}

// retention returns how long the result and the journal of an invocation are kept that is
// requested now; 0 if the handler is unknown.
func (j *journals) retention(r *journal.Request) (completion, entries time.Duration) {
	cfg := &j.session.engine.cfg
	s, h, err := cfg.Registry().Resolve(r.Service, r.Handler)
	if err != nil {
		return 0, 0
	}
	options := metadata.Effective(h, s, cfg.Defaults())
	return options.Retention(h.Type, r.IdempotencyKey != nil)
}

// typeOf returns the types of a called service and of its handler, as clients spell them. A key tells an
// object from a service that is no longer registered.
func (j *journals) typeOf(service, key, handler string) (kind, handlerKind string) {
	s := j.session.engine.cfg.Registry().Services[service]
	switch {
	case s == nil && key == "", s != nil && s.Type == metadata.PlainService:
		return serviceKind, ""
	case s == nil, s.Type == metadata.VirtualObject:
		kind, handlerKind = "VirtualObject", "Exclusive"
	default:
		kind, handlerKind = "Workflow", "Workflow"
	}
	if s == nil {
		return kind, handlerKind
	}
	if h := s.Handler(handler); h != nil && (h.Type == target.ObjectShared || h.Type == target.WorkflowShared) {
		handlerKind = "Shared"
	}
	return kind, handlerKind
}

// serviceKind is the kind of a target without a key.
const serviceKind = "Service"

// request returns the request of a call or one-way call.
func (r *entryRow) request() (journal.Request, bool) {
	switch r.Entry.Type {
	case journal.Call:
		c, err := journal.ParseCall(r.Entry.Payload)
		return c.Request, err == nil
	case journal.OneWayCall:
		c, err := journal.ParseOneWayCall(r.Entry.Payload)
		return c.Request, err == nil
	}
	return journal.Request{}, false
}

func (r *entryRow) invokedID() value {
	if request, ok := r.request(); ok {
		return text(r.journals.callee(r.ID, request.IDCompletion))
	}
	return nil
}

func (r *entryRow) invokedTarget() value {
	request, ok := r.request()
	switch {
	case !ok:
		return nil
	case request.Key != "":
		return request.Service + "/" + request.Key + "/" + request.Handler
	}
	return request.Service + "/" + request.Handler
}

func (r *entryRow) wakeUp() value {
	if r.Entry.Type == journal.Sleep {
		if c, err := journal.ParseSleep(r.Entry.Payload); err == nil {
			return millis(c.WakeUpTime)
		}
	}
	return nil
}

func (r *entryRow) promise() value {
	switch r.Entry.Type {
	case journal.GetPromise, journal.PeekPromise, journal.CompletePromise:
		if c, err := journal.ParsePromise(r.Entry.Type, r.Entry.Payload); err == nil {
			return text(c.Key)
		}
	}
	return nil
}

// entryName returns the name given by the user. Signals have names as well.
func (r *entryRow) entryName() value {
	if r.Entry.Type != journal.Signal {
		return text(journal.NameOf(r.Entry))
	}
	n, err := journal.ParseNotification(r.Entry.Payload)
	if err != nil {
		return nil
	}
	return text(n.ID.Name)
}

// journalVersion is the journal format of protocol versions 4 and above.
const journalVersion = 2

func sysJournal() *Table {
	rows := scanned(partition.Journal, nil)
	src := source[entryRow]{
		cost:      rows.cost,
		ownership: byTargetOwner, // see within
		identity: func(r *entryRow, b []byte) []byte {
			return binary.BigEndian.AppendUint64(append(b, r.ID[:]...), r.Index)
		},
		pages: func(ctx context.Context, s *session, sel *selection) iter.Seq2[[]entryRow, error] {
			return func(yield func([]entryRow, error) bool) {
				var out []entryRow
				for page, err := range within(ctx, s, sel, rows.pages(ctx, s, sel)) {
					j := &journals{session: s, page: page}
					out = out[:0]
					for i := range page {
						out = append(out, entryRow{&page[i], j})
					}
					if !yield(out, err) {
						return
					}
				}
			}
		},
	}
	return define("sys_journal", "Journal entries, ordered within an invocation.", src, []column[entryRow]{
		{"partition_key", U64, "shard key of the row", func(r *entryRow) value { return number(r.ID.PartitionKey()) }, byPartitionKey, false},
		{"id", Text, "invocation id", func(r *entryRow) value { return r.ID.String() }, byID, false},
		{"index", U32, "entry index, 0 is the input", func(r *entryRow) value { return number(r.Index) }, noField, false},
		{"entry_type", Text, "Command: X or Notification: X", func(r *entryRow) value { return r.Entry.Type.String() }, noField, false},
		{"name", Text, "name given by the user", (*entryRow).entryName, noField, true},
		{"completed", Bool, "protocol 3 and below only", func(*entryRow) value { return nil }, noField, false},
		{"invoked_id", Text, "called invocation", (*entryRow).invokedID, noField, true},
		{"invoked_target", Text, "called target", (*entryRow).invokedTarget, noField, true},
		{"sleep_wakeup_at", Timestamp, "end of a sleep", (*entryRow).wakeUp, noField, true},
		{"promise_name", Text, "promise of promise entries", (*entryRow).promise, noField, true},
		{"raw", Binary, "encoded entry", func(r *entryRow) value { return r.Entry.Payload }, noField, true},
		{"raw_length", U64, "its length", func(r *entryRow) value { return number(r.Size) }, noField, false},
		{"version", U32, "journal format", func(*entryRow) value { return number(journalVersion) }, noField, false},
		{"entry_json", Text, "the entry as JSON, payloads as arrays of bytes", func(r *entryRow) value { return r.writer(false).entry(r.Entry) }, noField, true},
		{"entry_lite_json", Text, "the same without payloads", func(r *entryRow) value { return r.writer(true).entry(r.Entry) }, noField, true},
		{"appended_at", Timestamp, "when it was stored", func(r *entryRow) value { return millis(r.Entry.AppendedAt) }, noField, false},
	})
}
