package admin

import (
	"net/http"

	"platform/admin/openapi"
	"platform/internal/eventlog"
	"platform/metadata"
)

var logNodesParameter = openapi.QueryParameter("node", "Name or id of a node, such as N1; repeatable. Without it: all nodes.", object{"type": "array", "items": object{"type": "string"}})

var clusterOperations = map[string]operation{
	"GET /cluster-health": {
		ID: "cluster_health", Tag: "cluster_health", Summary: "Show the state of the cluster: metadata, nodes, partitions and problems",
		Query:     []object{openapi.QueryParameter("strict", "Also respond with 503 if a partition is not served.", object{"type": "boolean", "default": false})},
		Responses: openapi.OK("The cluster; the field status summarizes it", clusterHealthView{}),
		Errors:    []int{400, 503},
	},
	"GET /cluster/config": {
		ID: "get_cluster_config", Tag: "cluster", Summary: "Show the cluster configuration",
		Responses: openapi.OK("The configuration", clusterConfigView{}), Errors: []int{503},
	},
	"PATCH /cluster/config": {
		ID: "set_cluster_config", Tag: "cluster", Summary: "Change the number of replicas, which the controller adds and removes one by one, or raise the feature level",
		Body:      clusterChange{},
		Query:     []object{forceParameter("Proceed although the cluster would survive no node failure, or has fewer nodes than replicas.")},
		Responses: openapi.OK("The updated configuration", clusterConfigView{}), Errors: []int{400, 409, 415, 422, 503},
	},
	"GET /cluster/events": {
		ID: "list_cluster_events", Tag: "cluster", Summary: "List changes of the cluster, the latest first: nodes that started, stopped or no longer responded, new leaders, and replicas that came, went or were damaged. Each node keeps the latest 1,000 since its start. Needs feature level 4",
		Query: []object{
			openapi.QueryParameter("node", "Only events that concern a node: its name, or the id of a member; repeatable.", textList),
			openapi.QueryParameter("partition", "Only events that concern a partition.", object{"type": "integer", "minimum": 0}),
			openapi.QueryParameter("limit", "Number of events.", object{"type": "integer", "minimum": 1, "maximum": maxClusterEvents, "default": defaultClusterEvents}),
		},
		Responses: openapi.OK("The events", clusterEventsView{}), Errors: []int{400, 409},
	},
	"GET /cluster/log-levels": {
		ID: "get_log_levels", Tag: "cluster", Summary: "Show the log levels of the nodes",
		Query:     []object{logNodesParameter},
		Responses: openapi.OK("The levels of each node", logLevelsView{}), Errors: []int{404, 503},
	},
	"PUT /cluster/log-levels": {
		ID: "set_log_levels", Tag: "cluster", Summary: "Change the log levels of nodes while they run",
		Body:      logLevelsRequest{},
		Responses: openapi.OK("The levels of each node, or why they were not changed", logLevelsView{}), Errors: []int{400, 404, 415, 422, 503},
	},
	"DELETE /cluster/log-levels": {
		ID: "reset_log_levels", Tag: "cluster", Summary: "Restore the configured log levels of nodes",
		Query:     []object{logNodesParameter},
		Responses: openapi.OK("The levels of each node, or why they were not changed", logLevelsView{}), Errors: []int{404, 503},
	},
	"GET /cluster/secrets": {
		ID: "get_secrets", Tag: "cluster", Summary: "Show how the secrets in the metadata are stored, and which nodes have which keys",
		Responses: openapi.OK("The keys", secretsView{}), Errors: []int{503},
	},
	"POST /cluster/secrets/rotate": {
		ID: "rotate_secrets", Tag: "cluster", Summary: "Encrypt all secrets in the metadata with the newest key of this node",
		Query:     []object{forceParameter("Proceed although nodes do not respond or do not have the key.")},
		Responses: openapi.OK("The keys after it", secretsView{}), Errors: []int{400, 409, 503},
	},
	"POST /cluster/provision": {
		ID: "provision_cluster", Tag: "cluster", Summary: "Create the cluster explicitly",
		Body:      provisioning{},
		Responses: responses{openapi.Returns(http.StatusAccepted, "It will be created once the expected nodes are running", nil), openapi.Returns(http.StatusOK, "It already exists with the requested configuration", clusterConfigView{})},
		Errors:    []int{400, 409, 415, 422, 503},
	},
	"GET /cluster/nodes": {
		ID: "list_nodes", Tag: "cluster", Summary: "List the nodes",
		Responses: openapi.OK("All members, by id", openapi.ListOf[NodeState]("nodes")), Errors: []int{503},
	},
	"GET /cluster/nodes/:node": {
		ID: "get_node", Tag: "cluster", Summary: "Show a node",
		Responses: openapi.OK("The node", NodeState{}), Errors: []int{404, 503},
	},
	"PATCH /cluster/nodes/:node/drain": {
		ID: "drain_node", Tag: "cluster", Summary: "Move the replicas of a node to other nodes, so that it can be removed",
		Query:     []object{forceParameter("Proceed although the cluster would survive no node failure.")},
		Responses: openapi.OK("The node; its replicas are moved one by one", NodeState{}), Errors: []int{400, 404, 409, 503},
	},
	"PATCH /cluster/nodes/:node/undrain": {
		ID: "undrain_node", Tag: "cluster", Summary: "Return a drained node to service",
		Responses: openapi.OK("The node", NodeState{}), Errors: []int{404, 503},
	},
	"DELETE /cluster/nodes/:node": {
		ID: "remove_node", Tag: "cluster", Summary: "Remove a node from the cluster; it can only rejoin as a new node",
		Query:     []object{forceParameter("Proceed although the node has replicas, which are rebuilt from those on other nodes, or although the cluster would survive no node failure.")},
		Responses: openapi.OK("The node was removed", nil), Errors: []int{400, 404, 409, 503},
	},
	"GET /cluster/partitions": {
		ID: "list_partitions", Tag: "cluster", Summary: "List the partitions with their replicas",
		Responses: openapi.OK("All partitions, by id", openapi.ListOf[PartitionState]("partitions")), Errors: []int{503},
	},
	"POST /cluster/partitions/recover": {
		ID: "recover_partitions", Tag: "cluster", Summary: "Recover partitions that have lost their majority from the newest remaining replica; data that only lost replicas had is lost",
		Body:      recovery{},
		Responses: openapi.OK("The outcome for each partition", openapi.ListOf[PartitionRecovery]("partitions")), Errors: []int{400, 404, 409, 415, 422, 503},
	},
	"GET /cluster/partitions/:partition": {
		ID: "get_partition", Tag: "cluster", Summary: "Show a partition and its replicas",
		Responses: openapi.OK("The partition", PartitionState{}), Errors: []int{400, 404, 503},
	},
	"PATCH /cluster/partitions/:partition/transfer": {
		ID: "transfer_partition", Tag: "cluster", Summary: "Transfer the leadership of a partition",
		Query: []object{
			{"name": "to", "in": "query", "required": true, "description": "Name or id of a node that has a replica, such as N1.", "schema": object{"type": "string"}},
		},
		Responses: openapi.OK("The partition with its new leader", PartitionState{}), Errors: []int{400, 404, 409, 503},
	},
}

func forceParameter(meaning string) object {
	return openapi.QueryParameter("force", meaning, object{"type": "boolean", "default": false})
}

var clusterFieldMeanings = map[string]string{
	"ClusterHealth.status":                "healthy; degraded: all is served, with less redundancy than configured; unavailable: something is not served.",
	"ClusterHealth.feature_level":         "Determines the formats that the nodes may write; see `platform cluster status --extra`.",
	"ClusterHealth.problems":              "Problems, the most severe first.",
	"ClusterHealth.message":               "Set if the response status is 503.",
	"ClusterHealth.losses_survived":       "How many nodes, whichever they are, can fail while everything stays available.",
	"Survival.now":                        "With the current nodes and replicas.",
	"Survival.whole":                      "With all nodes up and all replicas complete.",
	"MetadataHealth.members":              "Ids of the nodes that have a replica of the metadata, as numbers: 1 for N1.",
	"MetadataHealth.quorum":               "Whether changes can be made: a majority of the voters follows a leader.",
	"Node.feature_level":                  "Highest feature level that its server supports; absent if unknown.",
	"Node.feature_level_hold":             "Its configuration prevents the feature level from rising automatically.",
	"Node.state":                          "State of its process as observed by the other nodes.",
	"Node.draining":                       "An operator has requested that its replicas are moved to other nodes.",
	"Node.stopping":                       "Its process is stopping.",
	"Node.answers":                        "It reported the state of its replicas for this response.",
	"Node.disk":                           "Consequences of a disk that is nearly full. Absent if there is enough space.",
	"Node.self":                           "The node that serves this request.",
	"RecoverPartitionsRequest.partitions": "Ids of partitions; without any, all that have lost their majority.",
	"RecoverPartitionsRequest.dry_run":    "Show what would be done, without doing it.",
	"PartitionRecovery.needed":            "It has lost its majority.",
	"PartitionRecovery.refused":           "Why it was not recovered, or cannot be.",
	"PartitionRecovery.from":              "Id of the node whose replica becomes the only one.",
	"PartitionRecovery.discarded":         "Ids of the nodes whose replicas are rebuilt.",
	"PartitionRecovery.missing":           "Raft server ids of the missing voters.",

	"Partition.leader": "Id of the node that leads; absent if none is known.",
	"Partition.placed": "Ids of the nodes that should have a replica; the first should lead.",
	"Replica.lag":      "Number of log entries by which it lags behind the leader. Only if lag_known.",

	"ProvisionRequest.cluster_name":       "The default is the configuration of the node.",
	"ProvisionRequest.num_partitions":     "Cannot be changed later. The default is the configuration of the node.",
	"ProvisionRequest.replication":        "Replicas of each partition. The default is the configuration of the node.",
	"ModifyClusterRequest.replication":    "Replicas of each partition, limited by the number of nodes.",
	"ModifyClusterRequest.feature_level":  "Raises the feature level to this one, which all members must support, even if nodes hold it. Servers that do not support it can no longer be used.",
	"ModifyClusterRequest.num_partitions": "Cannot be changed; accepted if it equals the current value.",
}

// specialClusterFields contains limits of fields.
var specialClusterFields = map[string]object{
	"ClusterEvent.kind":                {"type": "string", "enum": eventlog.Kinds},
	"ProvisionRequest.num_partitions":  {"type": "integer", "minimum": 1, "maximum": metadata.MaxPartitions},
	"ProvisionRequest.replication":     {"type": "integer", "minimum": 1, "maximum": metadata.MaxReplication},
	"ModifyClusterRequest.replication": {"type": "integer", "minimum": 1, "maximum": metadata.MaxReplication},
}
