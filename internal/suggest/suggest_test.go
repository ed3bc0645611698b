package suggest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	names := []string{"delay", "limit-key", "completion_status", "force", "Command: Call"}
	for name, want := range map[string]string{
		"dely": "delay", "Delay": "delay", "limitkey": "limit-key", "status": "completion_status", "froce": "force", "call": "Command: Call",
		"zebra": "", "": "", "idempotency": "",
	} {
		require.Equal(t, want, Nearest(name, names), name)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"port", "port", 0},
		{"prt", "port", 1}, {"ports", "port", 1}, {"part", "port", 1}, {"prot", "port", 1}, {"kitten", "sitting", 3},
	} {
		require.Equal(t, c.want, Distance(c.a, c.b), "%s, %s", c.a, c.b)
		require.Equal(t, c.want, Distance(c.b, c.a), "%s, %s", c.b, c.a)
	}
}
