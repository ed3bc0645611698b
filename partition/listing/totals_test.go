package listing

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/partition/machine"
)

// Targets that are no longer in use take no memory: they would displace rows.
func TestFormerTargetsDoNotDisplaceRows(t *testing.T) {
	x := New(64 << 20)
	for n := range 100_000 {
		inv := numbered(n, machine.Completed)
		inv.Target.Scope = fmt.Sprint(n)
		x.Put(inv)
	}
	for n := range 100_000 {
		x.Delete(numbered(n, machine.Completed).ID)
	}
	for n := range 1000 {
		x.Put(numbered(n, machine.Completed))
	}
	x.SetLimit(8 << 20)
	require.Equal(t, 1000, x.Len())
	require.Zero(t, x.CompleteFrom())
}
