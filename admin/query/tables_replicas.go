package query

type replicaRow = clusterRow[Replica]

func replicaRows(wanted func(*Replica) bool) source[replicaRow] {
	return clusterRows(func(s *ClusterState) (rows []Replica) {
		for _, r := range s.Replicas {
			if wanted(&r) {
				rows = append(rows, r)
			}
		}
		return rows
	}, numbered(func(r *Replica) []uint32 { return []uint32{r.Partition, uint32(r.Node)} }))
}

func reachable(r *Replica) bool { return r.Answers }

// mode returns the role of a replica.
func (r *Replica) mode() value {
	switch {
	case r.Quarantine != "":
		return "Quarantined"
	case r.Role == "leader" && r.Serving:
		return "Leader"
	case r.Role == "leader":
		return "LeaderElect"
	case r.Role == "learner":
		return "Learner"
	}
	return "Follower"
}

// targetMode returns the desired role of a replica: the first node of a placement is the preferred
// leader.
func targetMode(r *replicaRow) value {
	placed := r.partition(r.row.Partition).Placed
	if len(placed) > 0 && placed[0] == r.row.Node {
		return "Leader"
	}
	return "Follower"
}

func partitionState() *Table {
	return define("partition_state", "Replicas of partitions, as reported by the reachable nodes. partition_replica_set also has the others.", replicaRows(reachable), []column[replicaRow]{
		plain("partition_id", U32, "partition", func(r *replicaRow) value { return number(r.row.Partition) }),
		plain("plain_node_id", Text, "node, such as N1", func(r *replicaRow) value { return plainID(r.row.Node) }),
		plain("gen_node_id", Text, "node and when it was started, such as N1:1795168807", func(r *replicaRow) value { return r.node(r.row.Node).generation() }),
		plain("target_mode", Text, "desired role: Leader or Follower", targetMode),
		plain("effective_mode", Text, "role: Leader, LeaderElect, Follower, Learner or Quarantined", func(r *replicaRow) value { return r.row.mode() }),
		plain("leader_epoch", U64, "term of the leader", func(r *replicaRow) value { return positive(r.row.Term) }),
		plain("leader", Text, "node that leads, such as N1", func(r *replicaRow) value { return plainID(r.partition(r.row.Partition).Leader) }),
		plain("applied_log_lsn", U64, "last applied log entry", func(r *replicaRow) value { return number(r.row.Applied) }),
		plain("replay_status", Text, "Active, or CatchingUp", func(r *replicaRow) value {
			if r.row.Applied < r.row.Committed {
				return "CatchingUp"
			}
			return "Active"
		}),
		plain("durable_log_lsn", U64, "last entry of its log", func(r *replicaRow) value { return number(r.row.Last) }),
		plain("archived_log_lsn", U64, "entry of its last snapshot", func(r *replicaRow) value { return positive(r.row.Snapshot) }),
		plain("target_tail_lsn", U64, "last committed entry", func(r *replicaRow) value { return number(r.row.Committed) }),
		plain("updated_at", Timestamp, "when it reported this", func(r *replicaRow) value { return moment(r.At) }),
		plain("applied_rule_book_version", U64, "applied version of the flow-control rules; NULL if there are none", func(r *replicaRow) value { return positive(r.row.Rules) }),
		plain("applied_schema_version", U64, "position in the metadata log that its node has applied",
			func(r *replicaRow) value { return positive(r.node(r.row.Node).Metadata) }),
		plain("storage_version", U32, "format version of its node's data directory", func(r *replicaRow) value { return positive(r.node(r.row.Node).Storage) }),
		plain("enabled_features", TextList, "features enabled by its node's configuration: flow-control", func(r *replicaRow) value { return listJSON(r.node(r.row.Node).Features) }),
		plain("broken_reason", Text, "why the replica is quarantined; NULL if it is not", func(r *replicaRow) value {
			if r.row.Quarantine == "" {
				return nil
			}
			return r.row.Quarantine
		}),
	})
}

func partitionReplicaSet() *Table {
	return define("partition_replica_set", "Nodes that have or should have replicas, with the state of the replicas.", replicaRows(func(*Replica) bool { return true }), []column[replicaRow]{
		plain("partition_id", U32, "partition", func(r *replicaRow) value { return number(r.row.Partition) }),
		plain("plain_node_id", Text, "node, such as N1", func(r *replicaRow) value { return plainID(r.row.Node) }),
		plain("alive_gen_node_id", Text, "node and when it was started, if it is reachable", func(r *replicaRow) value {
			if !r.row.Answers {
				return nil
			}
			return r.node(r.row.Node).generation()
		}),
		plain("is_leader", Bool, "it leads", func(r *replicaRow) value { return boolean(r.row.Role == "leader") }),
		plain("membership_version", U64, "version of the placement", func(r *replicaRow) value { return number(r.row.PlacedVersion) }),
		plain("membership", Text, "current, or leaving if the placement does not include the node", func(r *replicaRow) value {
			if r.row.Placed {
				return "current"
			}
			return "leaving"
		}),
		plain("leader_epoch", U64, "term of the leader", func(r *replicaRow) value { return positive(r.partition(r.row.Partition).Term) }),
		plain("durable_lsn", U64, "last entry of its log", func(r *replicaRow) value {
			if !r.row.Answers {
				return nil
			}
			return number(r.row.Last)
		}),
	})
}
