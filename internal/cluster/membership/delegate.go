package membership

import (
	"errors"
	"fmt"

	"github.com/hashicorp/memberlist"
	"google.golang.org/protobuf/encoding/protowire"
)

// delegate receives the callbacks of memberlist. Most of them run under a lock of the
// library, so they only record the event.
type delegate struct{ m *Members }

var (
	_ memberlist.Delegate         = (*delegate)(nil)
	_ memberlist.EventDelegate    = (*delegate)(nil)
	_ memberlist.AliveDelegate    = (*delegate)(nil)
	_ memberlist.ConflictDelegate = (*delegate)(nil)
)

var errOtherClusterID = errors.New("node belongs to another cluster with the same cluster-name")

// NodeMeta returns the encoded description of this node.
func (d *delegate) NodeMeta(int) []byte { return d.m.self.Load().encoded }

// NotifyAlive rejects nodes that do not belong to this cluster before memberlist adds them.
func (d *delegate) NotifyAlive(n *memberlist.Node) error {
	member, err := d.decode(n)
	if err != nil {
		return err
	}
	if member.identity().String() != n.Address() {
		return fmt.Errorf("node %q: gossip address does not match its incarnation", n.Name)
	}
	if d.m.foreign(member) {
		d.m.table.remove(member.Name, member.Incarnation)
		d.m.conflicts.warn(member, errOtherClusterID)
		return errOtherClusterID
	}
	self := d.m.self.Load().Member
	if member.identity() != self.identity() && d.m.cfg.Former(member.Name, member.Incarnation) {
		return fmt.Errorf("node %q was removed from the cluster or replaced", n.Name)
	}
	if member.identity() == self.identity() && member.Address != self.Address {
		d.m.conflicts.add(member) // this node's former address, or a copy of its data directory
	}
	return nil
}

// NotifyConflict is called when a node uses a name that belongs to another node.
func (d *delegate) NotifyConflict(existing, other *memberlist.Node) {
	member, err := d.decode(other)
	if err != nil {
		return
	}
	if existing.Name == d.m.cfg.Name {
		d.m.conflicts.add(member)
		return
	}
	d.m.conflicts.warn(member, errNameTaken)
}

// NotifyJoin is called when a node becomes alive.
func (d *delegate) NotifyJoin(n *memberlist.Node) { d.NotifyUpdate(n) }

// NotifyUpdate is called when the description of a node changes.
func (d *delegate) NotifyUpdate(n *memberlist.Node) {
	member, err := d.decode(n)
	if err != nil {
		return // rejected by NotifyAlive
	}
	d.m.transport.setEndpoint(member.identity(), endpoint{address: member.Address, target: member.identity()})
	d.m.table.put(member)
}

// NotifyLeave is called when a node is dead or has left.
func (d *delegate) NotifyLeave(n *memberlist.Node) {
	if member, err := d.decode(n); err == nil {
		d.m.table.markDead(member.Name, member.Incarnation)
	}
}

func (d *delegate) decode(n *memberlist.Node) (Member, error) {
	member, err := decodeMember(n.Name, n.Meta)
	self := d.m.self.Load()
	member.Self = member.Name == self.Name && member.Incarnation == self.Incarnation
	return member, err
}

// leaveMessage is the type of the only user message: the sender is leaving.
const leaveMessage = 1

func encodeLeave(self *description) []byte {
	b := protowire.AppendString([]byte{leaveMessage}, self.Name)
	return append(b, self.encoded...)
}

// NotifyMsg is called with a user message of another node. memberlist reuses b.
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
	// Ignore a message of a former process of a node that has already restarted.
	if current, ok := d.m.table.get(name); ok && current.Started.Equal(leaver.Started) && !current.Self {
		d.m.table.markGone(name, leaver.Incarnation, Left)
	}
}

// GetBroadcasts returns nothing: no user data is gossiped.
func (d *delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState returns nothing: full state exchanges carry no user data.
func (d *delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState does nothing.
func (d *delegate) MergeRemoteState([]byte, bool) {}
