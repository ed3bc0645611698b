package query

// logColumns are shared by the tables of logs.
var logColumns = []column[replicaRow]{
	plain("log_id", U32, "Raft group", func(r *replicaRow) value { return number(r.row.Group) }),
	always[replicaRow]("segment_index", U32, "always 0: a log has one segment", int64(0)),
	plain("base_lsn", U64, "first entry that is retained, except trailing ones", func(r *replicaRow) value { return number(r.row.Snapshot + 1) }),
	always[replicaRow]("kind", Text, "always raft", "raft"),
	plain("loglet_id", Text, "name of the node that has this copy", func(r *replicaRow) value { return text(r.node(r.row.Node).Name) }),
	plain("sequencer", Text, "node that leads", func(r *replicaRow) value { return text(r.node(r.partition(r.row.Partition).Leader).Name) }),
	plain("replication", U32, "replicas that it should have", func(r *replicaRow) value { return number(len(r.partition(r.row.Partition).Placed)) }),
	plain("nodeset", TextList, "nodes that should have replicas", func(r *replicaRow) value { return listJSON(plainIDs(r.partition(r.row.Partition).Placed)) }),
	plain("logs_metadata_version", U64, "version of the placement", func(r *replicaRow) value { return number(r.row.PlacedVersion) }),
	plain("plain_node_id", Text, "node that has this copy, such as N1", func(r *replicaRow) value { return plainID(r.row.Node) }),
	plain("tail_lsn", U64, "last entry", func(r *replicaRow) value { return number(r.row.Last) }),
	plain("committed_lsn", U64, "last committed entry", func(r *replicaRow) value { return number(r.row.Committed) }),
}

func logsTable() *Table {
	return define("logs", "Raft logs of the partitions, as reported by the reachable replicas.", replicaRows(reachable), logColumns)
}

func logsTailSegments() *Table {
	return define("logs_tail_segments", "The last segment of each log, which is the whole log: the rows of logs.", replicaRows(reachable), logColumns)
}

// replicaColumns identify the node and the log of a row.
var replicaColumns = []column[replicaRow]{
	plain("plain_node_id", Text, "node, such as N1", func(r *replicaRow) value { return plainID(r.row.Node) }),
	plain("gen_node_id", Text, "node and when it was started, such as N1:1795168807", func(r *replicaRow) value { return r.node(r.row.Node).generation() }),
	plain("log_id", U32, "Raft group", func(r *replicaRow) value { return number(r.row.Group) }),
}

func logletWorkers() *Table {
	return define("loglet_workers", "The copies of logs on the nodes, as reported by the reachable ones.", replicaRows(reachable), append(replicaColumns[:len(replicaColumns):len(replicaColumns)],
		plain("loglet_id", Text, "name of the node that has this copy", func(r *replicaRow) value { return text(r.node(r.row.Node).Name) }),
		plain("local_tail", U64, "last entry of this copy", func(r *replicaRow) value { return number(r.row.Last) }),
		plain("global_tail", U64, "last committed entry known to the node", func(r *replicaRow) value { return number(r.row.Committed) }),
		plain("trim_point", U64, "entry of the last snapshot, up to which entries are discarded, except trailing ones; NULL if there is none", func(r *replicaRow) value { return positive(r.row.Snapshot) }),
		always[replicaRow]("is_sealed", Bool, "always false: a log is never sealed, its leader changes", int64(0)),
		plain("num_pending", U64, "stored entries that are not committed yet", func(r *replicaRow) value {
			return number(r.row.Last - min(r.row.Committed, r.row.Last))
		}),
	))
}

func bifrostReadStreams() *Table {
	return define("bifrost_read_streams", "The readers of the logs: each reachable replica applies the entries of its own copy to its tables.", replicaRows(reachable), append(replicaColumns[:len(replicaColumns):len(replicaColumns)],
		plain("partition_id", U32, "partition to whose tables entries are applied", func(r *replicaRow) value { return number(r.row.Partition) }),
		plain("read_pointer", U64, "next entry to apply", func(r *replicaRow) value { return number(r.row.Applied + 1) }),
		plain("safe_known_tail", U64, "last entry that can be applied", func(r *replicaRow) value { return number(r.row.Committed) }),
		plain("state", Text, "reading, or waiting if there is nothing to apply", func(r *replicaRow) value {
			if r.row.Applied < r.row.Committed {
				return "reading"
			}
			return "waiting"
		}),
	))
}
