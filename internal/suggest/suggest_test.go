package suggest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	names := []string{"delay", "limit-key", "completion_status", "force"}
	for name, want := range map[string]string{
		"dely": "delay", "Delay": "delay", "limitkey": "limit-key", "status": "completion_status", "froce": "force",
		"zebra": "", "": "", "idempotency": "",
	} {
		require.Equal(t, want, Nearest(name, names), name)
	}
}
