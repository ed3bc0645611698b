package invoker

import (
	"github.com/zeebo/xxh3"

	"platform/internal/feature"
	"platform/partition/listing"
	"platform/partition/machine"
)

// The failures of attempts are part of the history of an invocation. To save log entries, a
// failure that is equal to the previous one is recorded only if the handler has made progress
// in between, or if the invocation was admitted again or has another leader. Others are only counted,
// and not each with a log entry of its own.

// retryRecordLocked returns the progress that records the failure of an attempt that is retried;
// nil if it need not be recorded.
func (t *task) retryRecordLocked(f *failure) *machine.Progress {
	if t.s.iv.level() < feature.Level4 {
		return nil
	}
	if digest := digestOf(f); digest != t.recorded {
		t.recorded = digest
		step := machine.Step{Kind: machine.StepRetry, Failure: f.Brief(), Attempts: uint32(t.retry.total), Cause: t.causeOfLocked(f)}
		return t.progressLocked(t.pin, step)
	}
	if t.retry.overdue() {
		return t.progressLocked(t.pin)
	}
	return nil
}

// retryRecorded handles the outcome of a retryRecord. If that was not stored, the next
// failure is.
func (t *task) retryRecorded(o machine.Outcome, err error) {
	if err == nil && o.Code == machine.OK {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recorded = 0
}

// causeOfLocked returns the cause of a failure for the record of the invocation, which keeps when it
// first failed for that cause; 0: unknown.
func (t *task) causeOfLocked(f *failure) uint64 {
	if t.inv == nil || t.s.iv.level() < feature.Level4 {
		return 0
	}
	return listing.CauseOf(f.Code, f.Message, t.inv.Target.Key)
}

// digestOf identifies equal failures; it is never 0.
func digestOf(f *failure) uint64 {
	h := xxh3.New()
	for _, text := range []string{f.ErrorCode, f.Message, f.RelatedName} {
		_, _ = h.WriteString(text)
		_, _ = h.Write([]byte{0})
	}
	related := uint32(0)
	if f.RelatedIndex != nil {
		related = *f.RelatedIndex + 1
	}
	for _, n := range []uint32{f.Code, related, uint32(f.RelatedCommand)} {
		_, _ = h.Write([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	return max(h.Sum64(), 1)
}
