package metadata

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fullFailureMark has all fields set.
func fullFailureMark() FailureMark {
	return FailureMark{Group: "fg_0011223344556677", Muted: true, Note: "known", By: "ci at ::1", At: goldenTime}
}

func TestFailureGroupsAreMarked(t *testing.T) {
	m := atLevel4(t)
	muted, err := m.MarkFailure(t.Context(), FailureMarkEdit{Group: "fg_1", Muted: ptr(true), By: "ada"})
	require.NoError(t, err)
	require.True(t, muted.Muted)
	require.False(t, muted.At.IsZero())
	_, err = m.MarkFailure(t.Context(), FailureMarkEdit{Group: "fg_1", Note: ptr("known"), By: "bob"})
	require.NoError(t, err)
	mark, known := m.FailureMark("fg_1")
	require.True(t, known)
	require.Equal(t, "known", mark.Note)
	require.Equal(t, "bob", mark.By)
	require.True(t, mark.Muted, "a note does not unmute")

	_, err = m.MarkFailure(t.Context(), FailureMarkEdit{Group: "fg_1", Muted: ptr(false)})
	require.NoError(t, err)
	require.Len(t, m.FailureMarks(), 1, "the note remains")
	_, err = m.MarkFailure(t.Context(), FailureMarkEdit{Group: "fg_1", Note: ptr("")})
	require.NoError(t, err)
	require.Empty(t, m.FailureMarks(), "a mark that says nothing is deleted")
	_, err = m.MarkFailure(t.Context(), FailureMarkEdit{Group: "fg_2", Muted: ptr(false)})
	require.NoError(t, err)
	require.Empty(t, m.FailureMarks())

	var invalid *InvalidError
	_, err = m.MarkFailure(t.Context(), FailureMarkEdit{Group: "fg_1", Note: ptr(strings.Repeat("x", MaxFailureNote+1))})
	require.ErrorAs(t, err, &invalid)
}

func TestMarksOfFailureGroupsAreBounded(t *testing.T) {
	d := &draft{state: *emptyState()}
	for n := range MaxFailureMarks + 3 {
		_, err := applyMarkFailure(d, goldenTime.Add(time.Duration(n)), &markFailure{FailureMarkEdit{Group: fmt.Sprintf("fg_%04d", n), Muted: ptr(true)}})
		require.NoError(t, err)
	}
	require.Len(t, d.failureMarks, MaxFailureMarks)
	require.Equal(t, "fg_0003", d.failureMarks[0].Group, "the oldest are deleted")
}

func TestChangesOfMarksAreAudited(t *testing.T) {
	s := openAudited(t)
	for _, muted := range []bool{true, false} {
		ctx, _ := WithAction(t.Context(), fullAction())
		_, err := s.MarkFailure(ctx, FailureMarkEdit{Group: "fg_1", Muted: &muted})
		require.NoError(t, err)
	}
	records := ascending(t, s)
	require.Len(t, records, 2)
	require.Empty(t, records[0].Before)
	require.NotEmpty(t, records[0].After)
	require.Equal(t, records[0].After, records[1].Before)
	require.Empty(t, records[1].After, "the mark was deleted")
}
