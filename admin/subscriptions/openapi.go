package subscriptions

import (
	"net/http"
	"reflect"

	"platform/admin/openapi"
	"platform/admin/rest"
)

// Short names for the tables of descriptions.
type (
	object    = openapi.Object
	operation = openapi.Operation
	responses = []openapi.Response
)

// Description describes the routes for the OpenAPI document.
var Description = openapi.Part{
	Operations: operations,
	Schemas:    openapi.Schemas{Names: componentNames, Fields: fieldSchemas, FieldMeanings: fieldMeanings},
}

var componentNames = map[reflect.Type]string{
	reflect.TypeFor[BlockedPartition]():    "BlockedTopicPartition",
	reflect.TypeFor[DeadLetterCount]():     "DeadLetterCount",
	reflect.TypeFor[subscriptionRequest](): "SubscriptionRequest",
	reflect.TypeFor[subscriptionView]():    "Subscription",
	reflect.TypeFor[subscriptionList]():    "SubscriptionList",
	reflect.TypeFor[startView]():           "SubscriptionStart",
	reflect.TypeFor[pauseView]():           "SubscriptionPause",
	reflect.TypeFor[topicPartitionView]():  "TopicPartition",
	reflect.TypeFor[blockedView]():         "BlockedRecord",
	reflect.TypeFor[recordView]():          "Record",
	reflect.TypeFor[deadLetterView]():      "DeadLetter",
	reflect.TypeFor[deadLetterList]():      "DeadLetterList",
	reflect.TypeFor[deadLetterRecord]():    "DeadLetterRecord",
	reflect.TypeFor[deadLetterResult]():    "DeadLetterResult",
	reflect.TypeFor[deadLetterFailure]():   "DeadLetterFailure",
	reflect.TypeFor[recordHeaderView]():    "RecordHeader",
	reflect.TypeFor[bytesView]():           "RecordBytes",
	reflect.TypeFor[seekRequest]():         "SeekRequest",
	reflect.TypeFor[kafkaClusterRequest](): "CreateKafkaClusterRequest",
	reflect.TypeFor[kafkaClusterEdit]():    "UpdateKafkaClusterRequest",
	reflect.TypeFor[kafkaClusterView]():    "KafkaCluster",
}

var operations = map[string]operation{
	"POST /subscriptions": {
		ID: "create_subscription", Tag: "subscription", Summary: "Deliver the records of Kafka topics to a handler. The start is resolved to offsets before the response, " +
			"so no later record is missed; if the brokers cannot be reached, the subscription is created with the state error, and resolves its start later. Needs feature level 4",
		Query:     []object{openapi.QueryParameter("check", "Refuse the subscription if the brokers cannot be reached or do not know its topics", object{"type": "boolean"})},
		Body:      subscriptionRequest{},
		Responses: responses{openapi.Returns(http.StatusCreated, "The subscription", subscriptionView{})}, Errors: []int{400, 409, 415, 422, 429, 503},
	},
	"GET /subscriptions": {
		ID: "list_subscriptions", Tag: "subscription", Summary: "List the subscriptions with their state and lag, in the order of their creation",
		Query: []object{
			openapi.QueryParameter("source", "Only subscriptions with this source", object{"type": "string"}),
			openapi.QueryParameter("sink", "Only subscriptions with this sink", object{"type": "string"}),
		},
		Responses: openapi.OK("The subscriptions", subscriptionList{}),
	},
	"GET /subscriptions/:subscription": {
		ID: "get_subscription", Tag: "subscription", Summary: "Show a subscription and its topic partitions",
		Responses: openapi.OK("The subscription", subscriptionView{}), Errors: []int{400, 404},
	},
	"PATCH /subscriptions/:subscription": {
		ID: "update_subscription", Tag: "subscription", Summary: "Change settings of a subscription; fields that are not given stay as they are. Options are replaced as a whole; *** keeps a secret",
		Body:      subscriptionRequest{},
		Responses: openapi.OK("The subscription", subscriptionView{}), Errors: []int{400, 404, 409, 415, 422, 503},
	},
	"DELETE /subscriptions/:subscription": {
		ID: "delete_subscription", Tag: "subscription", Summary: "Delete a subscription once the records in flight are delivered",
		Query:     []object{openapi.QueryParameter("force", "Do not wait for records in flight", object{"type": "boolean"})},
		Responses: responses{openapi.Returns(http.StatusAccepted, "The subscription is being deleted", nil)}, Errors: []int{400, 404, 503},
	},
	"POST /subscriptions/:subscription/pause": {
		ID: "pause_subscription", Tag: "subscription", Summary: "Stop fetching records until the subscription is resumed; records in flight are delivered",
		Query:     []object{openapi.QueryParameter("reason", "Why, for other operators; one line of up to 512 bytes", object{"type": "string", "maxLength": rest.MaxReason})},
		Responses: openapi.OK("The subscription", subscriptionView{}), Errors: []int{400, 404, 409, 503},
	},
	"POST /subscriptions/:subscription/resume": {
		ID: "resume_subscription", Tag: "subscription", Summary: "Continue a paused subscription where it stopped",
		Responses: openapi.OK("The subscription", subscriptionView{}), Errors: []int{400, 404, 409, 503},
	},
	"POST /subscriptions/:subscription/seek": {
		ID: "seek_subscription", Tag: "subscription", Summary: "Continue a paused subscription at another position. Records after it are delivered again, even if they were delivered before",
		Query: []object{openapi.QueryParameter("restart", "Seek even if the subscription is not paused; it continues at the new position", object{"type": "boolean"})},
		Body:  seekRequest{}, Responses: openapi.OK("The subscription", subscriptionView{}), Errors: []int{400, 404, 409, 415, 422, 503},
	},
	"GET /subscriptions/:subscription/records/:topic/:topic_partition/:offset": {
		ID: "get_record", Tag: "subscription", Summary: "Show a record that blocks its topic partition; key, value and headers are cut at 64 KiB",
		Responses: openapi.OK("The record", recordView{}), Errors: []int{400, 404, 409, 503},
	},
	"POST /subscriptions/:subscription/records/:topic/:topic_partition/:offset/retry": {
		ID: "retry_record", Tag: "subscription", Summary: "Try to deliver a record that blocks its topic partition again",
		Responses: responses{openapi.Returns(http.StatusAccepted, "The record is delivered again, or blocks again", nil)}, Errors: []int{400, 404, 409, 503},
	},
	"POST /subscriptions/:subscription/records/:topic/:topic_partition/:offset/skip": {
		ID: "skip_record", Tag: "subscription", Summary: "Skip a record that blocks its topic partition, and continue after it",
		Responses: responses{openapi.Returns(http.StatusAccepted, "The record is left out", nil)}, Errors: []int{400, 404, 409, 503},
	},
	"GET /subscriptions/:subscription/dead-letters": {
		ID: "list_dead_letters", Tag: "subscription", Summary: "List the records that could not be delivered and that the server keeps, because on_error is dead-letter without a topic; in the order of topic, partition and offset",
		Query:     letterPage,
		Responses: openapi.OK("The dead letters, without keys, values and headers", deadLetterList{}), Errors: []int{400, 404},
	},
	"POST /subscriptions/:subscription/dead-letters/retry": {
		ID: "retry_dead_letters", Tag: "subscription", Summary: "Deliver the dead letters of a subscription with its current settings, a page at a time. Those that are delivered are deleted",
		Query:     letterPage,
		Responses: openapi.OK("What became of the page", deadLetterResult{}), Errors: []int{400, 404},
	},
	"DELETE /subscriptions/:subscription/dead-letters": {
		ID: "drop_dead_letters", Tag: "subscription", Summary: "Delete the dead letters of a subscription, a page at a time",
		Query:     letterPage,
		Responses: openapi.OK("What became of the page", deadLetterResult{}), Errors: []int{400, 404},
	},
	"GET /subscriptions/:subscription/dead-letters/:topic/:topic_partition/:offset": {
		ID: "get_dead_letter", Tag: "subscription", Summary: "Show a dead letter; key, value and headers are cut at 64 KiB",
		Responses: openapi.OK("The dead letter", deadLetterRecord{}), Errors: []int{400, 404, 503},
	},
	"POST /subscriptions/:subscription/dead-letters/:topic/:topic_partition/:offset/retry": {
		ID: "retry_dead_letter", Tag: "subscription", Summary: "Deliver a dead letter with the current settings of the subscription, and delete it",
		Responses: responses{openapi.Returns(http.StatusAccepted, "The record is delivered", nil)}, Errors: []int{400, 404, 409, 503},
	},
	"DELETE /subscriptions/:subscription/dead-letters/:topic/:topic_partition/:offset": {
		ID: "drop_dead_letter", Tag: "subscription", Summary: "Delete a dead letter",
		Responses: responses{openapi.Returns(http.StatusAccepted, "The record is deleted", nil)}, Errors: []int{400, 404, 503},
	},
	"POST /kafka-clusters": {
		ID: "create_kafka_cluster", Tag: "kafka_cluster", Summary: "Add a Kafka cluster. Needs feature level 4",
		Body: kafkaClusterRequest{}, Responses: responses{openapi.Returns(http.StatusCreated, "The cluster", kafkaClusterView{})}, Errors: []int{400, 409, 415, 422, 429, 503},
	},
	"GET /kafka-clusters": {
		ID: "list_kafka_clusters", Tag: "kafka_cluster", Summary: "List the Kafka clusters of the configuration and those that were added, by name",
		Responses: openapi.OK("The clusters", openapi.ListOf[kafkaClusterView]("clusters")),
	},
	"GET /kafka-clusters/:kafka_cluster": {
		ID: "get_kafka_cluster", Tag: "kafka_cluster", Summary: "Show a Kafka cluster",
		Query:     []object{openapi.QueryParameter("include_subscriptions", "Include the subscriptions that read from it", object{"type": "boolean", "default": true})},
		Responses: openapi.OK("The cluster", kafkaClusterView{}), Errors: []int{400, 404},
	},
	"PATCH /kafka-clusters/:kafka_cluster": {
		ID: "update_kafka_cluster", Tag: "kafka_cluster", Summary: "Replace the properties of a Kafka cluster; *** keeps a secret. Its subscriptions reconnect",
		Body: kafkaClusterEdit{}, Responses: openapi.OK("The cluster", kafkaClusterView{}), Errors: []int{400, 404, 409, 415, 422, 503},
	},
	"DELETE /kafka-clusters/:kafka_cluster": {
		ID: "delete_kafka_cluster", Tag: "kafka_cluster", Summary: "Delete a Kafka cluster",
		Query:     []object{openapi.QueryParameter("force", "Delete it even if subscriptions read from it, which stops them", object{"type": "boolean"})},
		Responses: responses{openapi.Returns(http.StatusAccepted, "The cluster was deleted", nil)}, Errors: []int{400, 404, 409, 503},
	},
}

// letterPage are the parameters of pages of dead letters.
var letterPage = []object{
	openapi.QueryParameter("limit", "Dead letters of the page", object{"type": "integer", "minimum": 1, "maximum": maxLetters, "default": defaultLetters}),
	openapi.QueryParameter("after", "The field next of the previous page: topic/partition/offset", object{"type": "string"}),
}

var fieldMeanings = map[string]string{
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
	"Subscription.lag_seconds":              "Age of the oldest record that is not delivered; absent if it is not known, such as while the subscription is paused.",
	"Subscription.silent_nodes":             "Nodes that did not report about their topic partitions, with the reason.",
	"SubscriptionStart.resolved":            "Whether the start is known as offsets.",
	"SubscriptionStart.otherwise":           "Where topic partitions without such an offset start.",
	"TopicPartition.owner_partition":        "Partition of the server whose leader reads the topic partition.",
	"TopicPartition.position":               "Offset of the next record; all records below are delivered or left out.",
	"TopicPartition.end_offset":             "Offset of the next record to be produced.",
	"TopicPartition.lag_seconds":            "Age of the oldest record that is not delivered; absent if it is not known.",
	"TopicPartition.in_flight":              "Records that were handed over and are not acknowledged.",
	"TopicPartition.delivered":              "Records since the node started to read.",
	"CreateKafkaClusterRequest.properties":  "Properties of Kafka clients, under the names of librdkafka; bootstrap.servers is required.",
	"UpdateKafkaClusterRequest.properties":  "All properties that the cluster is to have; *** keeps a secret.",
	"KafkaCluster.static":                   "Whether the configuration of the server defines the cluster (ingress.kafka-clusters).",
}

var fieldSchemas = map[string]object{
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
