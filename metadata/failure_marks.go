package metadata

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	pb "platform/proto/metadata"
)

// Bounds of the marks of failure groups.
const (
	// MaxFailureMarks is the number of marks; the oldest one is deleted for another.
	MaxFailureMarks = 1000
	// MaxFailureNote is the size of a note.
	MaxFailureNote = 2000
)

// FailureMark is the mute setting and the note of operators for a failure group. A value is
// immutable.
type FailureMark struct {
	Group string // ID of the group
	Muted bool   // the group needs no attention
	Note  string
	By    string // who changed it last
	At    time.Time
}

// FailureMarkEdit is a change of a mark. nil fields are not changed.
type FailureMarkEdit struct {
	Group string
	Muted *bool
	Note  *string
	By    string
}

// markFailure changes the mark of a failure group.
type markFailure struct{ edit FailureMarkEdit }

func (*markFailure) command() {}

// FailureMarks returns the marks by group. The slice is shared.
func (s *Store) FailureMarks() []FailureMark { return s.source.current().failureMarks }

// FailureMark returns the mark of a group; false if it has none.
func (s *Store) FailureMark(group string) (FailureMark, bool) {
	return s.source.current().failureMark(group)
}

func (s *state) failureMark(group string) (FailureMark, bool) {
	at, known := slices.BinarySearchFunc(s.failureMarks, group, compareFailureMark)
	if !known {
		return FailureMark{}, false
	}
	return s.failureMarks[at], true
}

// MarkFailure changes the mark of a failure group. An empty mark is deleted. The error can be an
// *InvalidError.
func (s *Store) MarkFailure(ctx context.Context, edit FailureMarkEdit) (FailureMark, error) {
	return propose[FailureMark](ctx, s, &markFailure{edit})
}

func compareFailureMark(m FailureMark, group string) int { return cmp.Compare(m.Group, group) }

// check returns why a mark cannot be changed like this, nil if it can.
func (e *FailureMarkEdit) check() error {
	switch {
	case e.Group == "":
		return &InvalidError{"a mark needs a failure group"}
	case e.Note != nil && len(*e.Note) > MaxFailureNote:
		return &InvalidError{fmt.Sprintf("the note has %d bytes; at most %d are allowed", len(*e.Note), MaxFailureNote)}
	}
	return nil
}

// applyMarkFailure returns the FailureMark.
func applyMarkFailure(d *draft, at time.Time, cmd *markFailure) (outcome, error) {
	if err := cmd.edit.check(); err != nil {
		return outcome{rejection: err}, nil //nolint:nilerr // a rejection is a result that all replicas agree on
	}
	pos, known := slices.BinarySearchFunc(d.failureMarks, cmd.edit.Group, compareFailureMark)
	mark := FailureMark{Group: cmd.edit.Group}
	if known {
		mark = d.failureMarks[pos]
	}
	if cmd.edit.Muted != nil {
		mark.Muted = *cmd.edit.Muted
	}
	if cmd.edit.Note != nil {
		mark.Note = *cmd.edit.Note
	}
	mark.By, mark.At = cmd.edit.By, at
	d.failureMarks = slices.Clone(d.failureMarks)
	switch {
	case mark.Muted || mark.Note != "":
		return outcome{value: mark}, d.putFailureMark(mark)
	case known:
		d.removeFailureMark(mark.Group)
	}
	return outcome{value: mark}, nil
}

// putFailureMark adds or replaces a mark. The slice must be a copy.
func (d *draft) putFailureMark(mark FailureMark) error {
	pos, known := slices.BinarySearchFunc(d.failureMarks, mark.Group, compareFailureMark)
	if known {
		d.failureMarks[pos] = mark
		return d.put(tableFailureMarks, mark.Group, failureMarkToProto(&mark))
	}
	if len(d.failureMarks) >= MaxFailureMarks {
		oldest := slices.MinFunc(d.failureMarks, func(a, b FailureMark) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Group, b.Group)) })
		d.removeFailureMark(oldest.Group)
		pos, _ = slices.BinarySearchFunc(d.failureMarks, mark.Group, compareFailureMark)
	}
	d.failureMarks = slices.Insert(d.failureMarks, pos, mark)
	return d.put(tableFailureMarks, mark.Group, failureMarkToProto(&mark))
}

func (d *draft) removeFailureMark(group string) {
	d.failureMarks = slices.DeleteFunc(d.failureMarks, func(m FailureMark) bool { return m.Group == group })
	d.deleteRecord(tableFailureMarks, group)
}

func failureMarkToProto(m *FailureMark) *pb.FailureMark {
	return &pb.FailureMark{Group: m.Group, Muted: m.Muted, Note: m.Note, By: m.By, AtMs: millis(m.At)}
}

func failureMarkFromProto(m *pb.FailureMark) FailureMark {
	return FailureMark{Group: m.GetGroup(), Muted: m.GetMuted(), Note: m.GetNote(), By: m.GetBy(), At: fromMillis(m.GetAtMs())}
}

func markEditToProto(e *FailureMarkEdit) *pb.MarkFailure {
	return &pb.MarkFailure{Group: e.Group, Muted: e.Muted, Note: e.Note, By: e.By}
}

func markEditFromProto(e *pb.MarkFailure) FailureMarkEdit {
	return FailureMarkEdit{Group: e.GetGroup(), Muted: e.Muted, Note: e.Note, By: e.GetBy()}
}
