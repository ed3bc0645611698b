package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCheckSleep(t *testing.T) {
	s := Sleep{Requested: time.Second, Begin: epoch, End: epoch.Add(time.Second)}
	require.NoError(t, s.Check())
	s.End = s.End.Add(-10 * time.Millisecond)
	require.ErrorContains(t, s.Check(), "early")
}
