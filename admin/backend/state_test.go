package backend

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"platform/admin"
	"platform/internal/cluster/fabric"
	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/machine"
)

// deposed is a replica that stores a command and no longer leads afterwards.
type deposed struct {
	fabric.Replica
	stored []ids.Invocation
}

func (d *deposed) Invoke(_ context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	d.stored = append(d.stored, inv.ID)
	return machine.Outcome{}, nil
}

func (*deposed) Await(context.Context, ids.Invocation) (partition.Ending, error) {
	return partition.Ending{}, raftgroup.ErrNotLeader
}

func (*deposed) State(context.Context, machine.Object, int) ([]machine.StateEntry, bool, error) {
	return nil, false, raftgroup.ErrNotLeader
}

func operatorOn(r fabric.Replica) *operator {
	return &operator{router: routing.New(1, fabric.DirectoryConfig{
		Remote:   func(string, uint32) fabric.Replica { return r },
		Replicas: func(uint32) []string { return []string{"other"} },
	})}
}

// An update of state that is stored is applied later, also if no leader reports its outcome: an
// operator who repeats it could overwrite what changes in between.
func TestAnUpdateOfStateThatIsStoredIsNotReportedAsWithoutEffect(t *testing.T) {
	for _, wait := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := &deposed{}
			change, err := operatorOn(d).UpdateState(t.Context(), admin.StateUpdate{Object: admin.Object{Service: "Counter", Key: "k"}}, wait)
			require.Len(t, d.stored, 1)
			if !wait {
				require.NoError(t, err)
				require.Equal(t, admin.StateChange{ID: d.stored[0], Status: admin.ChangeQueued}, change)
				return
			}
			require.ErrorIs(t, err, admin.ErrUnavailable)
			require.NotContains(t, err.Error(), "nothing was changed")
			require.ErrorContains(t, err, "GET /state-updates/"+d.stored[0].String())
		})
	}
}

func TestStateOfAPartitionWithoutALeaderIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := operatorOn(&deposed{}).State(t.Context(), admin.Object{Service: "Counter", Key: "k"})
		require.ErrorIs(t, err, admin.ErrUnavailable)
	})
}
