package broadcast

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSendNotifiesThoseThatWait(t *testing.T) {
	var c Channel
	c.Send()
	first, second := c.Next(), c.Next()
	require.Equal(t, first, second)
	select {
	case <-first:
		t.Fatal("nothing was sent since")
	default:
	}
	c.Send()
	<-first
	<-second
	require.NotEqual(t, first, c.Next(), "the next change is another one")
}
