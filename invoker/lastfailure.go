package invoker

import "time"

// The last failure of an invocation is kept, for operators, until its next attempt ends. While
// an endpoint is down, that may concern all invocations of a node.
const (
	// maxFailureTexts bounds the bytes of the texts of these failures on a node. Of further
	// failures only the beginning of the message is kept.
	maxFailureTexts = 16 << 20
	// briefText leaves a message what the groups of failures distinguish.
	briefText = 2<<10 + 64
	// maxBriefTexts is the bound from which on only lineText bytes of a message are kept.
	maxBriefTexts = 2 * maxFailureTexts
	lineText      = 128
)

// setLastLocked replaces the last failure; nil: there is none.
func (t *task) setLastLocked(f *failure) {
	texts := &t.s.iv.failureTexts
	texts.Add(-t.lastTexts)
	t.last, t.lastTexts, t.lastAt = f, 0, time.Time{}
	if f == nil {
		return
	}
	t.lastAt = time.Now()
	size := int64(len(f.Message) + len(f.Stacktrace) + len(f.RelatedName))
	if texts.Add(size) <= maxFailureTexts {
		t.lastTexts = size
		return
	}
	texts.Add(-size)
	brief := *f // the attempt may still store the whole failure
	brief.Message, brief.Stacktrace, brief.RelatedName = clip(f.Message, briefText), "", clip(f.RelatedName, briefText)
	size = int64(len(brief.Message) + len(brief.RelatedName))
	if texts.Add(size) <= maxBriefTexts {
		t.lastTexts = size
	} else {
		texts.Add(-size)
		brief.Message, brief.RelatedName = clip(f.Message, lineText), clip(f.RelatedName, lineText)
	}
	t.last = &brief
}

// repeatsLocked reports whether f is like the last failure.
func (t *task) repeatsLocked(f *failure) bool {
	return t.last != nil && t.last.ErrorCode == f.ErrorCode &&
		(t.last.Message == f.Message || t.last.Message == clip(f.Message, briefText) || t.last.Message == clip(f.Message, lineText))
}
