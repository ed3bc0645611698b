package admin

import (
	"net/http"

	"platform/internal/eventlog"
	"platform/metadata"
)

var logNodesParameter = queryParameter("node", "Name or id of a node, such as N1; repeatable. Without it: all nodes.", object{"type": "array", "items": object{"type": "string"}})

var clusterOperations = map[string]operation{
	"GET /cluster-health": {
		id: "cluster_health", tag: "cluster_health", summary: "Show the state of the cluster: metadata, nodes, partitions and problems",
		query:    []object{queryParameter("strict", "Also respond with 503 if a partition is not served.", object{"type": "boolean", "default": false})},
		answers:  []reply{{http.StatusOK, "The cluster; the field status summarizes it", clusterHealthView{}}},
		refusals: []int{400, 503},
	},
	"GET /cluster/config": {
		id: "get_cluster_config", tag: "cluster", summary: "Show the cluster configuration",
		answers: []reply{{http.StatusOK, "The configuration", clusterConfigView{}}}, refusals: []int{503},
	},
	"PATCH /cluster/config": {
		id: "set_cluster_config", tag: "cluster", summary: "Change the number of replicas, which the controller adds and removes one by one, or raise the feature level",
		body:    clusterChange{},
		query:   []object{forceParameter("Proceed although the cluster would survive no node failure, or has fewer nodes than replicas.")},
		answers: []reply{{http.StatusOK, "The updated configuration", clusterConfigView{}}}, refusals: []int{400, 409, 415, 422, 503},
	},
	"GET /cluster/events": {
		id: "list_cluster_events", tag: "cluster", summary: "List changes of the cluster, the latest first: nodes that started, stopped or no longer responded, new leaders, and replicas that came, went or were damaged. Each node keeps the latest 1,000 since its start. Needs feature level 4",
		query: []object{
			queryParameter("node", "Only events that concern a node: its name, or the id of a member; repeatable.", textList),
			queryParameter("partition", "Only events that concern a partition.", object{"type": "integer", "minimum": 0}),
			queryParameter("limit", "Number of events.", object{"type": "integer", "minimum": 1, "maximum": maxClusterEvents, "default": defaultClusterEvents}),
		},
		answers: []reply{{http.StatusOK, "The events", clusterEventsView{}}}, refusals: []int{400, 409},
	},
	"GET /cluster/log-levels": {
		id: "get_log_levels", tag: "cluster", summary: "Show the log levels of the nodes",
		query:   []object{logNodesParameter},
		answers: []reply{{http.StatusOK, "The levels of each node", logLevelsView{}}}, refusals: []int{404, 503},
	},
	"PUT /cluster/log-levels": {
		id: "set_log_levels", tag: "cluster", summary: "Change the log levels of nodes while they run",
		body:    logLevelsRequest{},
		answers: []reply{{http.StatusOK, "The levels of each node, or why they were not changed", logLevelsView{}}}, refusals: []int{400, 404, 415, 422, 503},
	},
	"DELETE /cluster/log-levels": {
		id: "reset_log_levels", tag: "cluster", summary: "Restore the configured log levels of nodes",
		query:   []object{logNodesParameter},
		answers: []reply{{http.StatusOK, "The levels of each node, or why they were not changed", logLevelsView{}}}, refusals: []int{404, 503},
	},
	"GET /cluster/secrets": {
		id: "get_secrets", tag: "cluster", summary: "Show how the secrets in the metadata are stored, and which nodes have which keys",
		answers: []reply{{http.StatusOK, "The keys", secretsView{}}}, refusals: []int{503},
	},
	"POST /cluster/secrets/rotate": {
		id: "rotate_secrets", tag: "cluster", summary: "Encrypt all secrets in the metadata with the newest key of this node",
		query:   []object{forceParameter("Proceed although nodes do not respond or do not have the key.")},
		answers: []reply{{http.StatusOK, "The keys after it", secretsView{}}}, refusals: []int{400, 409, 503},
	},
	"PUT /cluster/authority": {
		id: "put_authority", tag: "cluster", summary: "Store the authority that issues the certificates of nodes, its key encrypted. Needs TLS or a client on the same machine, and feature level 4",
		body:    authorityRequest{},
		answers: []reply{{http.StatusOK, "The authority", authorityView{}}}, refusals: []int{400, 403, 409, 415, 422, 503},
	},
	"POST /cluster/join-tokens": {
		id: "create_join_token", tag: "cluster", summary: "Create a token with which one new node gets its certificate. Its text is in the response and cannot be read again. Needs feature level 4",
		body:    joinTokenRequest{},
		answers: []reply{{http.StatusCreated, "The join token", createdJoinToken{}}}, refusals: []int{400, 409, 415, 422, 503},
	},
	"GET /cluster/join-tokens": {
		id: "list_join_tokens", tag: "cluster", summary: "List the join tokens, the oldest first",
		answers: []reply{{http.StatusOK, "The join tokens", listOf[joinTokenView]("join_tokens")}},
	},
	"DELETE /cluster/join-tokens/:join_token": {
		id: "revoke_join_token", tag: "cluster", summary: "Revoke a join token. A certificate that was issued for it remains valid",
		answers: []reply{{http.StatusOK, "The revoked join token", joinTokenView{}}}, refusals: []int{404, 503},
	},
	"POST /cluster/provision": {
		id: "provision_cluster", tag: "cluster", summary: "Create the cluster explicitly",
		body: provisioning{},
		answers: []reply{
			{http.StatusAccepted, "It will be created once the expected nodes are running", nil},
			{http.StatusOK, "It already exists with the requested configuration", clusterConfigView{}},
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
		id: "drain_node", tag: "cluster", summary: "Move the replicas of a node to other nodes, so that it can be removed",
		query:   []object{forceParameter("Proceed although the cluster would survive no node failure.")},
		answers: []reply{{http.StatusOK, "The node; its replicas are moved one by one", NodeState{}}}, refusals: []int{400, 404, 409, 503},
	},
	"PATCH /cluster/nodes/:node/undrain": {
		id: "undrain_node", tag: "cluster", summary: "Return a drained node to service",
		answers: []reply{{http.StatusOK, "The node", NodeState{}}}, refusals: []int{404, 503},
	},
	"DELETE /cluster/nodes/:node": {
		id: "remove_node", tag: "cluster", summary: "Remove a node from the cluster; it can only rejoin as a new node",
		query:   []object{forceParameter("Proceed although the node has replicas, which are rebuilt from those on other nodes, or although the cluster would survive no node failure.")},
		answers: []reply{{http.StatusOK, "The node was removed", nil}}, refusals: []int{400, 404, 409, 503},
	},
	"GET /cluster/partitions": {
		id: "list_partitions", tag: "cluster", summary: "List the partitions with their replicas",
		answers: []reply{{http.StatusOK, "All partitions, by id", listOf[PartitionState]("partitions")}}, refusals: []int{503},
	},
	"POST /cluster/partitions/recover": {
		id: "recover_partitions", tag: "cluster", summary: "Recover partitions that have lost their majority from the newest remaining replica; data that only lost replicas had is lost",
		body:    recovery{},
		answers: []reply{{http.StatusOK, "The outcome for each partition", listOf[PartitionRecovery]("partitions")}}, refusals: []int{400, 404, 409, 415, 422, 503},
	},
	"GET /cluster/partitions/:partition": {
		id: "get_partition", tag: "cluster", summary: "Show a partition and its replicas",
		answers: []reply{{http.StatusOK, "The partition", PartitionState{}}}, refusals: []int{400, 404, 503},
	},
	"PATCH /cluster/partitions/:partition/transfer": {
		id: "transfer_partition", tag: "cluster", summary: "Transfer the leadership of a partition",
		query: []object{
			{"name": "to", "in": "query", "required": true, "description": "Name or id of a node that has a replica, such as N1.", "schema": object{"type": "string"}},
		},
		answers: []reply{{http.StatusOK, "The partition with its new leader", PartitionState{}}}, refusals: []int{400, 404, 409, 503},
	},
}

func forceParameter(meaning string) object {
	return queryParameter("force", meaning, object{"type": "boolean", "default": false})
}

var clusterFieldMeanings = map[string]string{
	"PutAuthorityRequest.certificate":   "Certificate of the authority in PEM format.",
	"PutAuthorityRequest.key":           "Its key in PEM format. It is stored only encrypted.",
	"Authority.sha256":                  "Hash of the certificate, by which new nodes recognize the cluster.",
	"CreateJoinTokenRequest.node":       "The only node that may use the token, also one that is a member and has lost its certificate. Without it, any new node may.",
	"CreateJoinTokenRequest.expires_in": "How long the token is valid, at most 7d; 1h without it.",
	"CreatedJoinToken.token":            "The token itself.",
	"JoinToken.node":                    "The only node that may use it. Absent: any new node.",
	"JoinToken.used_by":                 "The node that has used it.",

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
