package membership

import (
	"errors"
	"fmt"

	"github.com/hashicorp/memberlist"
	"google.golang.org/protobuf/encoding/protowire"
)

// delegate takes the calls of the library. It holds a lock in most of them, so they
// only note what happened.
type delegate struct{ m *Members }

var (
	_ memberlist.Delegate         = (*delegate)(nil)
	_ memberlist.EventDelegate    = (*delegate)(nil)
	_ memberlist.AliveDelegate    = (*delegate)(nil)
	_ memberlist.ConflictDelegate = (*delegate)(nil)
)

var errOtherClusterID = errors.New("it is a node of another cluster with the same cluster-name")

// NodeMeta returns what this node tells about itself.
func (d *delegate) NodeMeta(int) []byte { return d.m.self.Load().encoded }

// NotifyAlive refuses nodes that do not belong here, before the library adds them.
func (d *delegate) NotifyAlive(n *memberlist.Node) error {
	member, err := d.decode(n)
	if err != nil {
		return err
	}
	if member.identity().String() != n.Address() {
		return fmt.Errorf("node %q does not have the address of its incarnation", n.Name)
	}
	if d.m.foreign(member) {
		d.m.table.remove(member.Name, member.Incarnation)
		d.m.contest.warn(member, errOtherClusterID)
		return errOtherClusterID
	}
	self := d.m.self.Load().Member
	if member.identity() == self.identity() && member.Address != self.Address {
		d.m.contest.add(member) // this node before it moved, or a copy of its data directory
	}
	return nil
}

// NotifyConflict is called when a node claims a name that another one has.
func (d *delegate) NotifyConflict(existing, other *memberlist.Node) {
	member, err := d.decode(other)
	if err != nil {
		return
	}
	if existing.Name == d.m.cfg.Name {
		d.m.contest.add(member)
		return
	}
	d.m.contest.warn(member, ErrNameTaken)
}

// NotifyJoin is called when a node is alive that was not.
func (d *delegate) NotifyJoin(n *memberlist.Node) { d.NotifyUpdate(n) }

// NotifyUpdate is called when a node has changed what it tells about itself.
func (d *delegate) NotifyUpdate(n *memberlist.Node) {
	member, err := d.decode(n)
	if err != nil {
		return // NotifyAlive has refused it
	}
	d.m.transport.setPeer(member.identity(), peer{address: member.Address, target: member.identity()})
	d.m.table.put(member)
}

// NotifyLeave is called when a node is dead or has left.
func (d *delegate) NotifyLeave(n *memberlist.Node) {
	if member, err := d.decode(n); err == nil {
		d.m.table.end(member.Name, member.Incarnation, Dead)
	}
}

func (d *delegate) decode(n *memberlist.Node) (Member, error) {
	member, err := decodeMember(n.Name, n.Meta)
	self := d.m.self.Load()
	member.Self = member.Name == self.Name && member.Incarnation == self.Incarnation
	return member, err
}

// leaveMessage is the kind of the only message between nodes: that its sender stops.
const leaveMessage = 1

func encodeLeave(self *description) []byte {
	b := protowire.AppendString([]byte{leaveMessage}, self.Name)
	return append(b, self.encoded...)
}

// NotifyMsg is called with a message of another node. The library reuses b.
func (d *delegate) NotifyMsg(b []byte) {
	if len(b) == 0 || b[0] != leaveMessage {
		return
	}
	name, n := protowire.ConsumeString(b[1:])
	if n < 0 {
		return
	}
	leaver, err := decodeMember(name, b[1+n:])
	if err != nil {
		return
	}
	// A node that is back already is not the process that left.
	if now, ok := d.m.table.get(name); ok && now.Started.Equal(leaver.Started) && !now.Self {
		d.m.table.end(name, leaver.Incarnation, Left)
	}
}

// GetBroadcasts returns nothing: members have nothing else to gossip.
func (d *delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState returns nothing, likewise.
func (d *delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState has nothing to merge.
func (d *delegate) MergeRemoteState([]byte, bool) {}
