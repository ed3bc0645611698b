package query

func nodesTable() *Table {
	type row = clusterRow[Node]
	all := clusterRows(func(s *ClusterState) []Node { return s.Nodes }, numbered(func(n *Node) []uint32 { return []uint32{uint32(n.ID)} }))
	return define("nodes", "Members of the cluster, including unreachable ones.", all, []column[row]{
		plain("plain_node_id", Text, "node, such as N1", func(r *row) value { return plainID(r.row.ID) }),
		plain("gen_node_id", Text, "node and when it was started, such as N1:1795168807", func(r *row) value { return r.row.generation() }),
		plain("state", Text, "alive, dead, left or unknown", func(r *row) value { return r.row.State }),
		plain("name", Text, "name", func(r *row) value { return r.row.Name }),
		plain("address", Text, "address for other nodes", func(r *row) value { return text(r.row.Address) }),
		plain("ctrl_address", Text, "address for operators", func(r *row) value { return text(r.row.Admin) }),
		plain("ingress_address", Text, "address for callers", func(r *row) value { return text(r.row.Ingress) }),
		always[row]("location", Text, "not used: nodes have no location", nil),
		always[row]("has_admin_role", Bool, "always true: every node has all roles", int64(1)),
		always[row]("has_worker_role", Bool, "always true", int64(1)),
		plain("has_metadata_server_role", Bool, "it is a member of the metadata group", func(r *row) value {
			return boolean(r.row.MetadataRole == "leader" || r.row.MetadataRole == "voter" || r.row.MetadataRole == "learner")
		}),
		always[row]("has_log_server_role", Bool, "always true", int64(1)),
		always[row]("has_ingress_role", Bool, "always true", int64(1)),
		plain("storage_state", Text, "read-write, or read-only while it is being drained", func(r *row) value { return drainState(r.row, "read-only", "read-write") }),
		plain("worker_state", Text, "active, or draining", func(r *row) value { return drainState(r.row, "draining", "active") }),
		plain("metadata_server_state", Text, "role in the metadata group: leader, voter, learner or none", func(r *row) value { return text(r.row.MetadataRole) }),
		plain("leaders", U32, "partitions that it leads", func(r *row) value { return number(r.row.Leaders) }),
		plain("replicas", U32, "partitions that it has a replica of", func(r *row) value { return number(r.row.Replicas) }),
		plain("uptime", Duration, "since its start; NULL if unknown", func(r *row) value {
			if r.row.StartedAt.IsZero() {
				return nil
			}
			return duration(r.At.Sub(r.row.StartedAt))
		}),
		plain("state_since", Timestamp, "last change of its state", func(r *row) value { return moment(r.row.Since) }),
		plain("nodes_configuration_version", U64, "applied position in the metadata log; NULL if it is unreachable",
			func(r *row) value { return positive(r.row.Metadata) }),
		plain("binary_version", Text, "version of the server", func(r *row) value { return text(r.row.Version) }),
		plain("feature_level", U32, "highest feature level that its server supports; NULL if unknown", func(r *row) value { return positive(uint64(r.row.FeatureLevel)) }),
		plain("cluster_feature_level", U32, "feature level of the cluster", func(r *row) value { return number(r.Level) }),
	})
}

func drainState(n *Node, draining, not string) value {
	if n.Draining {
		return draining
	}
	return not
}

func partitionsTable() *Table {
	type row = clusterRow[Partition]
	all := clusterRows(func(s *ClusterState) []Partition { return s.Partitions }, numbered(func(p *Partition) []uint32 { return []uint32{p.ID} }))
	return define("partitions", "Partitions and their placement.", all, []column[row]{
		plain("partition_id", U32, "partition", func(r *row) value { return number(r.row.ID) }),
		plain(startKey, U64, "first partition key", func(r *row) value { return number(r.row.FirstKey) }),
		plain(endKey, U64, "last partition key", func(r *row) value { return number(r.row.LastKey) }),
		plain("log_id", U32, "its Raft group", func(r *row) value { return number(r.row.Group) }),
		always[row]("cf_name", Text, "not used: partitions share their tables", nil),
		plain("leader_gen_node_id", Text, "node that leads, and when it was started, such as N1:1795168807", func(r *row) value { return r.node(r.row.Leader).generation() }),
		plain("leader_plain_node_id", Text, "node that leads, such as N1", func(r *row) value { return plainID(r.row.Leader) }),
		plain("leader_epoch", U64, "term of the leader", func(r *row) value { return positive(r.row.Term) }),
		plain("v_current", U64, "version of its placement", func(r *row) value { return number(r.row.PlacedVersion) }),
		plain("current_replica_set", TextList, "nodes that should have a replica", func(r *row) value { return listJSON(plainIDs(r.row.Placed)) }),
		always[row]("v_next", U64, "not used: a placement takes effect immediately", nil),
		always[row]("next_replica_set", TextList, "not used", nil),
		plain("partition_table_version", U64, "version of its placement", func(r *row) value { return number(r.row.PlacedVersion) }),
	})
}
