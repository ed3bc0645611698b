package partition

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyItsOwnAnnouncementMakesALeader(t *testing.T) {
	own := &leadership{epoch: 6, term: 3}
	for name, c := range map[string]struct {
		epoch, term uint64
		want        *leadership
	}{
		"its own":                                   {6, 3, own},
		"of another replica with the same epoch":    {6, 4, nil},
		"of the same replica's previous leadership": {5, 3, nil},
		"of a replica that led earlier":             {6, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Partition{}
			p.pending.Store(own)
			p.enter(c.epoch, c.term)
			require.Equal(t, c.want, p.lead.Load())
		})
	}
}
