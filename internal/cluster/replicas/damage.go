package replicas

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/cluster"
	"platform/internal/pebbledb"
	"platform/metadata"
	"platform/partition"
)

// damageRetry is the shortest delay before it is checked again whether a replica with damaged data is dispensable. The
// longest is twice as long. It is random, so that nodes that wait for each other do not do so again.
const damageRetry = time.Second

// damagedReplica is an open replica with rows or entries that cannot be read.
type damagedReplica struct {
	replica
	reason error
	needed bool // the others have no majority without it, which has been logged
}

// replica is what quarantineDispensable needs of an open replica.
type replica interface {
	Voters() []string
	Quarantine(reason error)
}

// damageReport is what a replica has found out about its own rows.
type damageReport struct {
	id     uint32
	reason error
}

// reportDamage is called when a replica has found rows that cannot be read. They are found again if the report is dropped.
func (rc *Reconciler) reportDamage(id uint32, reason error) {
	select {
	case rc.damage <- damageReport{id, reason}:
	default:
	}
}

// watchDamage quarantines replicas with rows or entries that cannot be read, also if that is found by a
// compaction, which cannot succeed until their data is removed. A replica that is needed continues for as long as it does
// not need the damaged data.
func (rc *Reconciler) watchDamage(ctx context.Context) {
	partitions, groups := make([]uint32, rc.cfg.Router.Count()), make([]uint32, rc.cfg.Router.Count())
	for id := range rc.cfg.Router.Count() {
		partitions[id], groups[id] = id, partition.GroupID(id)
	}
	damaged := map[uint32]*damagedReplica{}
	for {
		var retry <-chan time.Time
		if len(damaged) > 0 {
			retry = time.After(damageRetry + rand.N(damageRetry))
		}
		select {
		case file := <-rc.cfg.Logs.DamagedFiles():
			affected, err := rc.cfg.Logs.Affected(file, groups)
			for i := range affected {
				affected[i] -= partition.GroupID(0)
			}
			rc.damaged(damaged, file, affected, err)
		case file := <-rc.cfg.Tables.DamagedFiles():
			affected, err := rc.cfg.Tables.Affected(file, partitions)
			rc.damaged(damaged, file, affected, err)
		case r := <-rc.damage:
			rc.addDamaged(damaged, r.id, r.reason)
		case <-retry:
		case <-ctx.Done():
			return
		}
		for id, d := range damaged {
			if p := rc.cfg.Router.Replica(id); p == nil || d.replica != replica(p) {
				delete(damaged, id) // closed, and perhaps rebuilt
			}
		}
		rc.quarantineDispensable(ctx, damaged)
	}
}

// damaged adds the replicas with data in a damaged file.
func (rc *Reconciler) damaged(damaged map[uint32]*damagedReplica, file pebbledb.DamagedFile, affected []uint32, err error) {
	if err != nil {
		rc.cfg.Log.Warn("damaged file not examined", "path", file.Path, "err", err)
		return
	}
	for _, id := range affected {
		rc.addDamaged(damaged, id, file)
	}
}

// addDamaged adds the replica of a partition, unless it is known or is not used any longer.
func (rc *Reconciler) addDamaged(damaged map[uint32]*damagedReplica, id uint32, reason error) {
	p := rc.cfg.Router.Replica(id)
	if p == nil || damaged[id] != nil || rc.quarantine.reported(id) != "" {
		return
	}
	damaged[id] = &damagedReplica{replica: p, reason: reason}
}

// quarantineDispensable quarantines those of the damaged replicas without which the others have a majority and can be
// copied from, and removes from damaged those that it need not be called for again. If two nodes find damage at
// the same time, each must take the other one's replica into account. So they announce what they intend before they
// request each other's status, and at least one of them learns of the other. Both may then continue, until they check again.
func (rc *Reconciler) quarantineDispensable(ctx context.Context, damaged map[uint32]*damagedReplica) {
	for id, d := range damaged {
		if len(d.Voters()) < minDispensable {
			rc.cfg.Log.Error("data of a partition is damaged, and it has too few replicas to copy it from another one: add replicas, or restore the data directory from a backup, before it is needed",
				"partition_id", id, "err", d.reason)
			delete(damaged, id)
		}
	}
	candidates := rc.dispensableOf(ctx, damaged) // others need not know of those that are needed
	for id := range candidates {
		rc.quarantine.announce(id, candidates[id].reason.Error())
	}
	dispensable := rc.dispensableOf(ctx, candidates)
	for id, d := range damaged {
		switch {
		case dispensable[id] != nil:
			d.Quarantine(d.reason) // still announced: it counts as unusable until it is rebuilt
			delete(damaged, id)
			continue
		case candidates[id] != nil:
			rc.quarantine.withdraw(id)
		}
		if !d.needed {
			rc.cfg.Log.Error("data of a partition is damaged, and the replica continues until the other ones have a majority: start their nodes, and wait until no other replica is in quarantine",
				"partition_id", id, "err", d.reason)
			d.needed = true
		}
	}
}

// dispensableOf returns those of the damaged replicas without which the others have a majority.
func (rc *Reconciler) dispensableOf(ctx context.Context, damaged map[uint32]*damagedReplica) map[uint32]*damagedReplica {
	if len(damaged) == 0 {
		return nil
	}
	found := map[uint32]*damagedReplica{}
	statuses := rc.cfg.Nodes.Statuses(ctx, false)
	for id, d := range damaged {
		if rc.dispensable(d.Voters(), serving(statuses, id)) {
			found[id] = d
		}
	}
	return found
}

// minDispensable is the number of voters from which the others can have a majority.
const minDispensable = 3

// serving returns the IDs of a partition's replicas that are in use, on nodes that respond and are not about to stop.
func serving(statuses cluster.Statuses, id uint32) map[string]bool {
	replicas := map[string]bool{}
	for _, st := range statuses {
		for _, r := range st.Replicas {
			if r.Partition == id && r.Quarantine == "" && !st.Draining {
				replicas[r.ReplicaId] = true
			}
		}
	}
	return replicas
}

// dispensable reports whether the voters on other nodes that are serving are a majority.
func (rc *Reconciler) dispensable(voters []string, serving map[string]bool) bool {
	others := 0
	for _, id := range voters {
		if node, _ := metadata.ReplicaNode(raft.ServerID(id)); node != rc.cfg.Node.ID && serving[id] {
			others++
		}
	}
	return others > len(voters)/2
}
