package nodelink

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCallsGetTheirResponses(t *testing.T) {
	c := NewCalls[string]()
	first, one := c.Begin()
	second, two := c.Begin()
	require.NotEqual(t, first, second)
	a, b := "a", "b"
	c.Respond(second, &b)
	c.Respond(first, &a)
	c.Respond(first, &b) // one response only
	require.Equal(t, "a", *<-one)
	require.Equal(t, "b", *<-two)
	require.False(t, c.Pending())
}

func TestCancelledCallsGetNoResponse(t *testing.T) {
	c := NewCalls[string]()
	sequence, response := c.Begin()
	require.True(t, c.Pending())
	c.Forget(sequence)
	require.False(t, c.Pending())
	c.Respond(sequence, new(string))
	require.Empty(t, response)
}

// TestCallsOfAnEndedStreamKeepWhatHasArrived requires that a response that came before the end
// is still received, and that nothing is pending afterwards.
func TestCallsOfAnEndedStreamKeepWhatHasArrived(t *testing.T) {
	c := NewCalls[string]()
	sequence, response := c.Begin()
	c.Begin()
	c.Respond(sequence, new(string))
	require.False(t, c.Broken())
	lost := errors.New("lost")
	c.End(lost)
	<-c.Ended()
	require.True(t, c.Broken())
	require.ErrorIs(t, c.Err(), lost)
	require.Len(t, response, 1)
	late, none := c.Begin()
	require.False(t, c.Pending())
	c.Respond(late, new(string))
	require.Empty(t, none)
}
