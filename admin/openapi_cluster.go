package admin

import (
	"net/http"

	"platform/metadata"
)

var clusterOperations = map[string]operation{
	"GET /cluster-health": {
		id: "cluster_health", tag: "cluster_health", summary: "Tell how the cluster is: metadata, nodes, partitions, and what is wrong",
		query:    []object{queryParameter("strict", "Answer 503 also while a partition is not served.", object{"type": "boolean", "default": false})},
		answers:  []reply{{http.StatusOK, "The cluster; the status says whether all of it is well", clusterHealthView{}}},
		refusals: []int{400, 503},
	},
	"GET /cluster/config": {
		id: "get_cluster_config", tag: "cluster", summary: "Show what holds for the whole cluster",
		answers: []reply{{http.StatusOK, "The configuration", clusterConfigView{}}}, refusals: []int{503},
	},
	"PATCH /cluster/config": {
		id: "set_cluster_config", tag: "cluster", summary: "Change the number of replicas, which the controller adds and removes one by one, or raise the feature level",
		body:    clusterChange{},
		query:   []object{forceParameter("Proceed although the cluster would survive no node failure.")},
		answers: []reply{{http.StatusOK, "The configuration as it is now", clusterConfigView{}}}, refusals: []int{400, 409, 415, 422, 503},
	},
	"POST /cluster/provision": {
		id: "provision_cluster", tag: "cluster", summary: "Create the cluster, where nodes do not do it themselves",
		body: provisioning{},
		answers: []reply{
			{http.StatusAccepted, "It will be, once the nodes that are expected are there", nil},
			{http.StatusOK, "It exists, and is as asked for", clusterConfigView{}},
		},
		refusals: []int{400, 409, 415, 422, 503},
	},
	"GET /cluster/nodes": {
		id: "list_nodes", tag: "cluster", summary: "List the nodes",
		answers: []reply{{http.StatusOK, "All members, by id", listOf[NodeState]("nodes")}}, refusals: []int{503},
	},
	"GET /cluster/nodes/:node": {
		id: "get_node", tag: "cluster", summary: "Show a node",
		answers: []reply{{http.StatusOK, "The node", NodeState{}}}, refusals: []int{404, 503},
	},
	"PATCH /cluster/nodes/:node/drain": {
		id: "drain_node", tag: "cluster", summary: "Have a node's replicas moved away, so that it can be removed",
		query:   []object{forceParameter("Proceed although the cluster would survive no node failure.")},
		answers: []reply{{http.StatusOK, "The node; its replicas go one by one", NodeState{}}}, refusals: []int{400, 404, 409, 503},
	},
	"PATCH /cluster/nodes/:node/undrain": {
		id: "undrain_node", tag: "cluster", summary: "Use a node again that was drained",
		answers: []reply{{http.StatusOK, "The node", NodeState{}}}, refusals: []int{404, 503},
	},
	"DELETE /cluster/nodes/:node": {
		id: "remove_node", tag: "cluster", summary: "Take a node out of the cluster; it can only come back as a new one",
		query:   []object{forceParameter("Proceed although the node has replicas, which are rebuilt from those on other nodes, or although the cluster would survive no node failure.")},
		answers: []reply{{http.StatusOK, "It is no member any more", nil}}, refusals: []int{400, 404, 409, 503},
	},
	"GET /cluster/partitions": {
		id: "list_partitions", tag: "cluster", summary: "List the partitions with their replicas",
		answers: []reply{{http.StatusOK, "All partitions, by id", listOf[PartitionState]("partitions")}}, refusals: []int{503},
	},
	"POST /cluster/partitions/recover": {
		id: "recover_partitions", tag: "cluster", summary: "Recover partitions that have lost their majority from the newest replica that is left; what only the lost ones had is lost",
		body:    recovery{},
		answers: []reply{{http.StatusOK, "What was done, or would be, for each partition", listOf[PartitionRecovery]("partitions")}}, refusals: []int{400, 404, 409, 415, 422, 503},
	},
	"GET /cluster/partitions/:partition": {
		id: "get_partition", tag: "cluster", summary: "Show a partition and its replicas",
		answers: []reply{{http.StatusOK, "The partition", PartitionState{}}}, refusals: []int{400, 404, 503},
	},
	"PATCH /cluster/partitions/:partition/transfer": {
		id: "transfer_partition", tag: "cluster", summary: "Let another node lead a partition",
		query: []object{
			{"name": "to", "in": "query", "required": true, "description": "Name or id of a node that has a replica.", "schema": object{"type": "string"}},
		},
		answers: []reply{{http.StatusOK, "The partition; the node leads it", PartitionState{}}}, refusals: []int{400, 404, 409, 503},
	},
}

func forceParameter(meaning string) object {
	return queryParameter("force", meaning, object{"type": "boolean", "default": false})
}

var clusterFieldMeanings = map[string]string{
	"ClusterHealth.status":                "healthy; degraded: all is served, with less redundancy than wanted; unavailable: something is not served.",
	"ClusterHealth.feature_level":         "What the nodes may write, because all members can read it; see `platform cluster status --extra`.",
	"ClusterHealth.problems":              "What is wrong, in words, the worst first.",
	"ClusterHealth.message":               "Set if the status of the answer is 503.",
	"ClusterHealth.losses_survived":       "How many nodes can be lost, whichever they are, while everything stays available.",
	"Survival.now":                        "With the nodes and replicas as they are.",
	"Survival.whole":                      "With all nodes up and all replicas made.",
	"MetadataHealth.members":              "Ids of the nodes that have a replica of the metadata.",
	"MetadataHealth.quorum":               "Whether changes can be made: most voters follow a leader.",
	"Node.feature_level":                  "Highest feature level that its server supports; absent if that is not known.",
	"Node.feature_level_hold":             "Its settings keep the cluster's feature level from rising by itself.",
	"Node.state":                          "What the others believe of its process.",
	"Node.draining":                       "Its replicas are moved away, as an operator wants.",
	"Node.stopping":                       "Its process is about to end.",
	"Node.answers":                        "It told about its replicas, just now.",
	"Node.disk":                           "Its disk is short of room: in words, what that keeps it from. Absent if it has room.",
	"Node.self":                           "The node that answers this request.",
	"RecoverPartitionsRequest.partitions": "Ids of partitions; without any, all that have lost their majority.",
	"RecoverPartitionsRequest.dry_run":    "Only say what would be done.",
	"PartitionRecovery.needed":            "It has lost its majority.",
	"PartitionRecovery.refused":           "Why it was not recovered, or cannot be.",
	"PartitionRecovery.from":              "Id of the node whose replica becomes the only one.",
	"PartitionRecovery.discarded":         "Ids of the nodes whose replicas are copied anew.",
	"PartitionRecovery.missing":           "Raft server ids of the voters that are gone.",

	"Partition.leader": "Id of the node that leads; absent if none is known.",
	"Partition.placed": "Ids of the nodes that should have a replica; the first should lead.",
	"Replica.lag":      "Log entries that it misses of the leader's. Only if lag_known.",

	"ProvisionRequest.cluster_name":       "The default is what the node is configured for.",
	"ProvisionRequest.num_partitions":     "Cannot be changed later. The default is what the node is configured for.",
	"ProvisionRequest.replication":        "Replicas of each partition. The default is what the node is configured for.",
	"ModifyClusterRequest.replication":    "Replicas of each partition, as far as there are nodes.",
	"ModifyClusterRequest.feature_level":  "Raises the feature level to this one, which all members have to support, also if nodes hold it. Servers that do not support it cannot be used afterwards.",
	"ModifyClusterRequest.num_partitions": "Cannot be changed; accepted if it is what it is.",
}

// specialClusterFields are bounds of fields.
var specialClusterFields = map[string]object{
	"ProvisionRequest.num_partitions":  {"type": "integer", "minimum": 1, "maximum": metadata.MaxPartitions},
	"ProvisionRequest.replication":     {"type": "integer", "minimum": 1, "maximum": metadata.MaxReplication},
	"ModifyClusterRequest.replication": {"type": "integer", "minimum": 1, "maximum": metadata.MaxReplication},
}
