package admin

import (
	"net/http"

	"platform/admin/rest"
)

var subscriptionOperations = map[string]operation{
	"POST /subscriptions": {
		id: "create_subscription", tag: "subscription", summary: "Deliver the records of Kafka topics to a handler. The start is resolved to offsets before the response, " +
			"so no later record is missed; if the brokers cannot be reached, the subscription is created with the state error, and resolves its start later. Needs feature level 4",
		query:   []object{queryParameter("check", "Refuse the subscription if the brokers cannot be reached or do not know its topics", object{"type": "boolean"})},
		body:    subscriptionRequest{},
		answers: []reply{{http.StatusCreated, "The subscription", subscriptionView{}}}, refusals: []int{400, 409, 415, 422, 429, 503},
	},
	"GET /subscriptions": {
		id: "list_subscriptions", tag: "subscription", summary: "List the subscriptions with their state and lag, in the order of their creation",
		query: []object{
			queryParameter("source", "Only subscriptions with this source", object{"type": "string"}),
			queryParameter("sink", "Only subscriptions with this sink", object{"type": "string"}),
		},
		answers: []reply{{http.StatusOK, "The subscriptions", subscriptionList{}}},
	},
	"GET /subscriptions/:subscription": {
		id: "get_subscription", tag: "subscription", summary: "Show a subscription and its topic partitions",
		answers: []reply{{http.StatusOK, "The subscription", subscriptionView{}}}, refusals: []int{400, 404},
	},
	"PATCH /subscriptions/:subscription": {
		id: "update_subscription", tag: "subscription", summary: "Change settings of a subscription; fields that are not given stay as they are. Options are replaced as a whole; *** keeps a secret",
		body:    subscriptionRequest{},
		answers: []reply{{http.StatusOK, "The subscription", subscriptionView{}}}, refusals: []int{400, 404, 409, 415, 422, 503},
	},
	"DELETE /subscriptions/:subscription": {
		id: "delete_subscription", tag: "subscription", summary: "Delete a subscription once the records in flight are delivered",
		query:   []object{queryParameter("force", "Do not wait for records in flight", object{"type": "boolean"})},
		answers: []reply{{http.StatusAccepted, "The subscription is being deleted", nil}}, refusals: []int{400, 404, 503},
	},
	"POST /subscriptions/:subscription/pause": {
		id: "pause_subscription", tag: "subscription", summary: "Stop fetching records until the subscription is resumed; records in flight are delivered",
		query:   []object{queryParameter("reason", "Why, for other operators; one line of up to 512 bytes", object{"type": "string", "maxLength": rest.MaxReason})},
		answers: []reply{{http.StatusOK, "The subscription", subscriptionView{}}}, refusals: []int{400, 404, 409, 503},
	},
	"POST /subscriptions/:subscription/resume": {
		id: "resume_subscription", tag: "subscription", summary: "Continue a paused subscription where it stopped",
		answers: []reply{{http.StatusOK, "The subscription", subscriptionView{}}}, refusals: []int{400, 404, 409, 503},
	},
	"POST /subscriptions/:subscription/seek": {
		id: "seek_subscription", tag: "subscription", summary: "Continue a paused subscription at another position. Records after it are delivered again, even if they were delivered before",
		query: []object{queryParameter("restart", "Seek even if the subscription is not paused; it continues at the new position", object{"type": "boolean"})},
		body:  seekRequest{}, answers: []reply{{http.StatusOK, "The subscription", subscriptionView{}}}, refusals: []int{400, 404, 409, 415, 422, 503},
	},
	"GET /subscriptions/:subscription/records/:topic/:topic_partition/:offset": {
		id: "get_record", tag: "subscription", summary: "Show a record that blocks its topic partition; key, value and headers are cut at 64 KiB",
		answers: []reply{{http.StatusOK, "The record", recordView{}}}, refusals: []int{400, 404, 409, 503},
	},
	"POST /subscriptions/:subscription/records/:topic/:topic_partition/:offset/retry": {
		id: "retry_record", tag: "subscription", summary: "Try to deliver a record that blocks its topic partition again",
		answers: []reply{{http.StatusAccepted, "The record is delivered again, or blocks again", nil}}, refusals: []int{400, 404, 409, 503},
	},
	"POST /subscriptions/:subscription/records/:topic/:topic_partition/:offset/skip": {
		id: "skip_record", tag: "subscription", summary: "Skip a record that blocks its topic partition, and continue after it",
		answers: []reply{{http.StatusAccepted, "The record is left out", nil}}, refusals: []int{400, 404, 409, 503},
	},
	"GET /subscriptions/:subscription/dead-letters": {
		id: "list_dead_letters", tag: "subscription", summary: "List the records that could not be delivered and that the server keeps, because on_error is dead-letter without a topic; in the order of topic, partition and offset",
		query:   letterPage,
		answers: []reply{{http.StatusOK, "The dead letters, without keys, values and headers", deadLetterList{}}}, refusals: []int{400, 404},
	},
	"POST /subscriptions/:subscription/dead-letters/retry": {
		id: "retry_dead_letters", tag: "subscription", summary: "Deliver the dead letters of a subscription with its current settings, a page at a time. Those that are delivered are deleted",
		query:   letterPage,
		answers: []reply{{http.StatusOK, "What became of the page", deadLetterResult{}}}, refusals: []int{400, 404},
	},
	"DELETE /subscriptions/:subscription/dead-letters": {
		id: "drop_dead_letters", tag: "subscription", summary: "Delete the dead letters of a subscription, a page at a time",
		query:   letterPage,
		answers: []reply{{http.StatusOK, "What became of the page", deadLetterResult{}}}, refusals: []int{400, 404},
	},
	"GET /subscriptions/:subscription/dead-letters/:topic/:topic_partition/:offset": {
		id: "get_dead_letter", tag: "subscription", summary: "Show a dead letter; key, value and headers are cut at 64 KiB",
		answers: []reply{{http.StatusOK, "The dead letter", deadLetterRecord{}}}, refusals: []int{400, 404, 503},
	},
	"POST /subscriptions/:subscription/dead-letters/:topic/:topic_partition/:offset/retry": {
		id: "retry_dead_letter", tag: "subscription", summary: "Deliver a dead letter with the current settings of the subscription, and delete it",
		answers: []reply{{http.StatusAccepted, "The record is delivered", nil}}, refusals: []int{400, 404, 409, 503},
	},
	"DELETE /subscriptions/:subscription/dead-letters/:topic/:topic_partition/:offset": {
		id: "drop_dead_letter", tag: "subscription", summary: "Delete a dead letter",
		answers: []reply{{http.StatusAccepted, "The record is deleted", nil}}, refusals: []int{400, 404, 503},
	},
	"POST /kafka-clusters": {
		id: "create_kafka_cluster", tag: "kafka_cluster", summary: "Add a Kafka cluster. Needs feature level 4",
		body: kafkaClusterRequest{}, answers: []reply{{http.StatusCreated, "The cluster", kafkaClusterView{}}}, refusals: []int{400, 409, 415, 422, 429, 503},
	},
	"GET /kafka-clusters": {
		id: "list_kafka_clusters", tag: "kafka_cluster", summary: "List the Kafka clusters of the configuration and those that were added, by name",
		answers: []reply{{http.StatusOK, "The clusters", listOf[kafkaClusterView]("clusters")}},
	},
	"GET /kafka-clusters/:kafka_cluster": {
		id: "get_kafka_cluster", tag: "kafka_cluster", summary: "Show a Kafka cluster",
		query:   []object{queryParameter("include_subscriptions", "Include the subscriptions that read from it", object{"type": "boolean", "default": true})},
		answers: []reply{{http.StatusOK, "The cluster", kafkaClusterView{}}}, refusals: []int{400, 404},
	},
	"PATCH /kafka-clusters/:kafka_cluster": {
		id: "update_kafka_cluster", tag: "kafka_cluster", summary: "Replace the properties of a Kafka cluster; *** keeps a secret. Its subscriptions reconnect",
		body: kafkaClusterEdit{}, answers: []reply{{http.StatusOK, "The cluster", kafkaClusterView{}}}, refusals: []int{400, 404, 409, 415, 422, 503},
	},
	"DELETE /kafka-clusters/:kafka_cluster": {
		id: "delete_kafka_cluster", tag: "kafka_cluster", summary: "Delete a Kafka cluster",
		query:   []object{queryParameter("force", "Delete it even if subscriptions read from it, which stops them", object{"type": "boolean"})},
		answers: []reply{{http.StatusAccepted, "The cluster was deleted", nil}}, refusals: []int{400, 404, 409, 503},
	},
}

// letterPage are the parameters of pages of dead letters.
var letterPage = []object{
	queryParameter("limit", "Dead letters of the page", object{"type": "integer", "minimum": 1, "maximum": maxLetters, "default": defaultLetters}),
	queryParameter("after", "The field next of the previous page: topic/partition/offset", object{"type": "string"}),
}

var subscriptionFieldMeanings = map[string]string{
	"SubscriptionRequest.source":            "kafka://<cluster>/<topic>, several topics separated by commas, or kafka://<cluster> with topics or topic_pattern.",
	"SubscriptionRequest.topics":            "Names of topics, instead of naming them in the source.",
	"SubscriptionRequest.topic_pattern":     "Regular expression that matches the whole names of topics, instead of naming them; topics that appear later are included.",
	"SubscriptionRequest.sink":              "service://<service>/<handler>.",
	"SubscriptionRequest.options":           "Properties of Kafka clients, under the names of librdkafka, that override those of the cluster.",
	"SubscriptionRequest.dead_letter_topic": "Where on_error dead-letter writes records; {topic} stands for the topic of the record. Without it, the server keeps them.",
	"SubscriptionRequest.headers":           "Names of the record headers that handlers receive as kafka.header.<name>; [\"*\"], the default, for all.",
	"SubscriptionRequest.scope":             "Scope of the invocations; {topic}, {partition}, {key} and {header:<name>} stand for parts of the record.",
	"SubscriptionRequest.limit_key":         "Limit key of the invocations, with the same placeholders.",
	"SubscriptionRequest.max_in_flight":     "Records of one topic partition that were handed over and are not acknowledged; 1000.",
	"Subscription.incarnation":              "Increases with every seek; records are delivered once per incarnation.",
	"Subscription.since":                    "Since when the subscription has its state.",
	"Subscription.dead_letters":             "Number of records that could not be delivered and that the server keeps.",
	"DeadLetter.at":                         "When it was set aside.",
	"DeadLetterRecord.at":                   "When it was set aside.",
	"DeadLetterList.next":                   "Value of the parameter after for the next page; absent on the last one.",
	"DeadLetterResult.next":                 "Value of the parameter after for the next page; absent on the last one.",
	"DeadLetterResult.failed":               "Dead letters that remain.",
	"DeadLetterResult.errors":               "The first of them, with the reason.",
	"Subscription.blocked":                  "Number of topic partitions that a record blocks.",
	"Subscription.lag_records":              "Records that are not delivered; absent unless the end of all topic partitions is known.",
	"Subscription.lag_seconds":              "Age of the oldest record that is not delivered.",
	"Subscription.silent_nodes":             "Nodes that did not report about their topic partitions, with the reason.",
	"SubscriptionStart.resolved":            "Whether the start is known as offsets.",
	"SubscriptionStart.otherwise":           "Where topic partitions without such an offset start.",
	"TopicPartition.owner_partition":        "Partition of the server whose leader reads the topic partition.",
	"TopicPartition.position":               "Offset of the next record; all records below are delivered or left out.",
	"TopicPartition.end_offset":             "Offset of the next record to be produced.",
	"TopicPartition.in_flight":              "Records that were handed over and are not acknowledged.",
	"TopicPartition.delivered":              "Records since the node started to read.",
	"CreateKafkaClusterRequest.properties":  "Properties of Kafka clients, under the names of librdkafka; bootstrap.servers is required.",
	"UpdateKafkaClusterRequest.properties":  "All properties that the cluster is to have; *** keeps a secret.",
	"KafkaCluster.static":                   "Whether the configuration of the server defines the cluster (ingress.kafka-clusters).",
}

var specialSubscriptionFields = map[string]object{
	"SubscriptionRequest.ordering":    {"type": "string", "enum": []string{"key", "partition", "none"}, "default": "key"},
	"SubscriptionRequest.on_error":    {"type": "string", "enum": []string{"block", "skip", "dead-letter"}, "default": "block"},
	"SubscriptionRequest.tombstones":  {"type": "string", "enum": []string{"deliver", "skip"}, "default": "deliver"},
	"SubscriptionRequest.on_recreate": {"type": "string", "enum": []string{"error", "earliest"}, "default": "error"},
	"SubscriptionRequest.start":       startSchema,
	"SeekRequest.start":               startSchema,
	"Subscription.state":              {"type": "string", "enum": streamStates},
	"TopicPartition.state":            {"type": "string", "enum": streamStates},
}

var streamStates = []string{"starting", "running", "paused", "blocked", "throttled", "draining", "error", "orphaned"}

var startSchema = object{
	"description": "Where to start: latest (the default: records produced from now on), earliest, group (the committed offsets of group.id), or an object.",
	"oneOf": []object{
		{"type": "string", "enum": []string{"latest", "earliest", "group"}},
		{"type": "object", "properties": object{
			"from":      object{"type": "string", "enum": []string{"latest", "earliest", "timestamp", "offsets", "group"}},
			"timestamp": object{"type": []string{"string", "integer"}, "description": "RFC 3339, or milliseconds since 1970"},
			"offsets":   object{"type": "object", "description": "Offsets by partition, or by topic and partition"},
			"otherwise": object{"type": "string", "enum": []string{"latest", "earliest"}, "description": "Start of topic partitions that offsets or the group do not cover"},
		}},
	},
}
