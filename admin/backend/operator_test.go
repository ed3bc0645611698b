package backend

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster/fabric"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/machine"
)

// paused is a replica with an invocation that cannot be moved to another deployment, and that is
// paused once a pause was requested.
type paused struct {
	fabric.Replica
	cause   machine.PauseCause
	resumed int // without a change of the deployment
}

func (p *paused) Operate(_ context.Context, c machine.Operation) (machine.Outcome, error) {
	if r, ok := c.(*machine.Resume); ok {
		if r.Repin != nil {
			return machine.Outcome{Code: machine.Incompatible}, nil
		}
		p.resumed++
	}
	return machine.Outcome{}, nil
}

func (p *paused) Find(_ context.Context, id ids.Invocation) (*machine.Invocation, error) {
	return &machine.Invocation{ID: id, Status: machine.Paused, LastPause: &machine.PauseRecord{Cause: p.cause}}, nil
}

// Below feature level 4, all pauses that are requested have the same cause.
func TestAFailedChangeOfDeploymentEndsOnlyItsOwnPause(t *testing.T) {
	for name, c := range map[string]struct {
		level   feature.Level
		cause   machine.PauseCause
		resumed int
	}{
		"own":                      {feature.Level4, machine.BeforeRepin, 1},
		"that of another operator": {feature.Level4, machine.PausedByOperator, 0},
		"level 3":                  {feature.Level3, machine.PausedByOperator, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &paused{cause: c.cause}
				o := operatorOn(p)
				o.level = func() feature.Level { return c.level }
				err := o.resumeElsewhere(t.Context(), ids.NewInvocation(1, [16]byte{1}), &machine.Repin{Deployment: "dp_latest"})
				require.Error(t, err)
				require.Equal(t, c.resumed, p.resumed)
			})
		})
	}
}
