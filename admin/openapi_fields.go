package admin

import "reflect"

// specialFields contains the schemas that cannot be derived from the types of the fields.
var specialFields = merge(specialRegistryFields, specialClusterFields, specialSecurityFields, specialSubscriptionFields)

var specialRegistryFields = map[string]object{
	"Deployment.services":                {"type": "array", "items": object{"$ref": "#/components/schemas/Service"}},
	"Deployment.protocol_type":           {"type": "string", "enum": []string{"BidiStream", "RequestResponse"}},
	"Deployment.http_version":            {"type": "string", "enum": []string{"HTTP/2.0", "HTTP/1.1"}},
	"Service.ty":                         {"type": "string", "enum": []string{"Service", "VirtualObject", "Workflow"}},
	"Handler.ty":                         {"type": "string", "enum": []string{"Exclusive", "Shared", "Workflow"}},
	"RetryPolicy.on_max_attempts":        {"type": "string", "enum": onMaxAttempts},
	"HandlerRetryPolicy.on_max_attempts": {"type": "string", "enum": onMaxAttempts},
	"ModifyRetryPolicy.on_max_attempts":  {"type": "string", "enum": onMaxAttempts},
	"ModifyRetryPolicy.max_attempts":     {"anyOf": []object{{"type": "integer", "minimum": 1}, {"type": "null"}}},
	"JournalEntry.entry_type":            {"type": "string", "examples": []string{"Command: Run", "Notification: Sleep"}},
	"RegisterDeploymentRequest.auth":     {"type": "null"},
	"Precondition.type":                  {"type": "string", "enum": []string{"none", "matches", "does_not_exist"}},
	"Limits.concurrency":                 {"type": []string{"integer", "null"}, "minimum": 1},
	"Limits.rate":                        {"type": []string{"string", "null"}, "examples": []string{"100/s", "30/m", "5/10s"}},
	"Limits.queue_limit":                 {"type": []string{"integer", "null"}, "minimum": 0},
	"Version.features":                   {"type": "object", "additionalProperties": object{"type": "boolean"}},
}

var onMaxAttempts = []string{"Pause", "Kill"}

// fieldMeanings contains descriptions of fields whose names are not self-explanatory.
var fieldMeanings = merge(registryFieldMeanings, clusterFieldMeanings, securityFieldMeanings, subscriptionFieldMeanings)

var registryFieldMeanings = map[string]string{
	"RegisterDeploymentRequest.uri":                "Absolute address of an HTTP endpoint. Either this or arn is required.",
	"RegisterDeploymentRequest.arn":                "ARN of a function, with its version.",
	"RegisterDeploymentRequest.additional_headers": "Sent when the endpoint is discovered and with every attempt.",
	"RegisterDeploymentRequest.metadata":           "Labels stored with the deployment, such as a commit.",
	"RegisterDeploymentRequest.use_http_11":        "Use HTTP/1.1 for the endpoint. Attempts then run in request-response mode.",
	"RegisterDeploymentRequest.force":              "Replace the deployment that has this address. Implies breaking. Below /v2 the default is true.",
	"RegisterDeploymentRequest.breaking":           "Allow changes of the type of services.",
	"RegisterDeploymentRequest.dry_run":            "Discover and validate, but store nothing.",
	"RegisterDeploymentRequest.assume_role_arn":    "Role to assume to invoke the function.",

	"UpdateDeploymentRequest.uri":                "New address of an HTTP endpoint.",
	"UpdateDeploymentRequest.arn":                "New ARN of a function, with its version.",
	"UpdateDeploymentRequest.additional_headers": "Replaces all headers.",
	"UpdateDeploymentRequest.assume_role_arn":    "Role to assume to invoke the function; empty for none.",
	"UpdateDeploymentRequest.overwrite":          "Replace the registered services by those that the endpoint offers, even if that breaks invocations in flight. Otherwise the endpoint must be compatible with the registered services, which do not change.",
	"UpdateDeploymentRequest.dry_run":            "Discover and validate, but store nothing.",

	"ModifyServiceRequest.public":                        "Whether the service can be called through the ingress.",
	"ModifyServiceRequest.idempotency_retention":         "How long results of calls with an idempotency key are kept.",
	"ModifyServiceRequest.workflow_completion_retention": "How long a finished workflow is kept. Workflows only.",
	"ModifyServiceRequest.journal_retention":             "How long journals are kept after completion.",
	"ModifyServiceRequest.inactivity_timeout":            "How long an attempt may be inactive before it is asked to suspend.",
	"ModifyServiceRequest.abort_timeout":                 "How long an attempt may take to suspend before it is aborted.",
	"ModifyServiceRequest.enable_lazy_state":             "Send state only when it is read.",

	"RuleChange.pattern":           "scope, scope/l1 or scope/l1/l2; each part is exact, or * for any.",
	"RuleChange.disabled":          "Keep the rule without applying it.",
	"RuleChange.precondition":      "Condition on the current rule; if it does not hold, nothing is changed.",
	"Precondition.version":         "Of the rule, for matches.",
	"RuleRemoval.expected_version": "Delete the rule only if it has this version. Without it, a missing rule is not an error.",
	"Rule.version":                 "Increases with every change of limits or disabled.",
	"RuleBook.version":             "Increases with every change that can affect an invocation.",

	"Service.deployment_id":               "Deployment that serves new invocations.",
	"Service.journal_retention":           "Absent if journals are not kept.",
	"RetryPolicy.max_attempts":            "Includes the first attempt. null: unlimited.",
	"Handler.public":                      "Whether it can be called through the ingress: both service and handler must be public.",
	"Deployment.metadata":                 "Labels given at registration.",
	"Error.field":                         "Field of the request, or property of a Kafka client, that is wrong, if it is one.",
	"Error.platform_code":                 "Error code, null if the catalogue has none. GET /errors/{code} explains it.",
	"InvocationPage.next_cursor":          "Cursor of the next page. Absent on the last page.",
	"Invocation.last_start_at":            "Start of the latest attempt. Absent if the leader of the partition has started none.",
	"Invocation.running_at":               "Start of the first attempt.",
	"Invocation.no_response_since":        "When the open attempt was sent, if the endpoint has sent no response headers for worker.invoker.no-response-warning.",
	"Invocation.abort_at":                 "With no_response_since: when the attempt is aborted if the endpoint still sends nothing.",
	"Invocation.cancel_requested_at":      "When its cancellation was requested after it had started. It is delivered when the handler next responds.",
	"Invocation.last_pause":               "Its last pause: requested, in effect or ended.",
	"Pause.attempts":                      "How many attempts had failed before the pause, since the invocation was admitted; from feature level 4 on.",
	"Pause.cause":                         "operator, attempts-used-up or unretryable-failure.",
	"Pause.by":                            "Principal and network address of the client that requested it; the address alone if it sent no credentials.",
	"Pause.reason":                        "Reason that the operator gave. Absent if none was given, or below feature level 4.",
	"Pause.at":                            "When it was requested or decided.",
	"Pause.resumed_at":                    "When it ended. Absent until then.",
	"Invocation.journal":                  "Only if requested.",
	"SetLogLevelsRequest.log_filter":      "Levels as in the configuration key log-filter: level or target=level, separated by commas.",
	"SetLogLevelsRequest.for":             "How long it applies, at most 7 days. Absent: until the node restarts.",
	"SetLogLevelsRequest.nodes":           "Names or ids of nodes. Absent or empty: all nodes.",
	"NodeLogLevels.log_filter":            "In effect. Absent if not known.",
	"NodeLogLevels.configured_log_filter": "The configuration key log-filter.",
	"NodeLogLevels.until":                 "When the configured filter is restored. Absent if it is in effect, or if the change applies until the node restarts.",
	"NodeLogLevels.targets":               "Targets that the filter can name.",
	"Secrets.encrypted":                   "Whether this node encrypts secrets.",
	"Secrets.keys":                        "Keys of this node, the newest first, then missing ones that secrets are encrypted with.",
	"Secrets.unencrypted":                 "Number of secrets that are not encrypted.",
	"Secrets.unreadable":                  "Secrets that this node cannot decrypt, and why.",
	"Secrets.rotated":                     "How many secrets were encrypted by this request.",
	"SecretKey.newest":                    "It encrypts.",
	"SecretKey.missing":                   "This node does not have it.",
	"SecretKey.secrets":                   "Number of secrets that are encrypted with it.",
	"NodeSecretKeys.keys":                 "IDs of its keys, the newest first.",
	"NodeSecretKeys.problem":              "Why it may be unable to decrypt what this node encrypts. Absent if there is none.",
	"Node.secret_keys":                    "IDs of its keys for secrets, the newest first.",
	"NodeLogLevels.reason":                "Why the levels are not known or were not changed. Absent if they are.",
	"Job.state":                           "running, done, stopped or failed.",
	"Job.filter":                          "Filters with their values. Absent if ids were given.",
	"Job.by":                              "Principal and network address of the client that requested it; the address alone if it sent no credentials.",
	"Job.matched":                         "Invocations found so far.",
	"Job.done":                            "Invocations on which the operation succeeded, or had succeeded before.",
	"Job.failed":                          "Invocations on which it failed.",
	"Job.failures":                        "The first 20 failures.",
	"Job.error":                           "Why the job failed. Absent if it did not.",
	"Stats.complete":                      "Whether all nodes have returned their series.",
	"Stats.nodes":                         "The nodes, and why their series are missing.",
	"StatsNode.reason":                    "Why its series are missing. Absent if they are not.",
	"Series.retries":                      "Failed attempts.",
	"Series.in_flight":                    "Maximum number of open attempts, added over the nodes.",
	"Series.backlog":                      "Maximum number of invocations that waited for a free slot of their node, added over the nodes.",
	"Series.latency_p50_ms":               "Median of the time from when an invocation was created, or due if delayed, to its end; interpolated in a histogram.",
	"Explanation.summary":                 "The main reason.",
	"Explanation.details":                 "Other reasons, in the order in which to read them. Times in texts are in RFC 3339.",
	"Wait.kind":                           "signal, awakeable, sleep, promise, invocation, run, command, object or vqueue.",
	"Wait.id":                             "Id of an invocation, awakeable or vqueue, or the name of a signal, promise or run. Absent if there is none.",
	"Step.text":                           "A sentence, with commands in backquotes.",
	"Step.command":                        "The command of the command-line client. Absent if there is none.",
	"Version.ingress_endpoint":            "Address of the ingress.",
	"Version.commit":                      "Commit of the source that the server was built from. Absent if unknown.",
	"Version.go_version":                  "Go version, operating system and processor of the build.",
	"Version.supported_feature_level":     "Highest feature level that this server supports. The cluster's may be lower.",
	"RegisterDeploymentResponse.info":     "Notices about settings without the expected effect.",

	"FailurePage.blocked_topic_partitions": "Topic partitions of event subscriptions that wait for an operator, up to 1,000, the latest first. Only on the first page, and without filters other than service and handler.",
	"FailurePage.dead_letters":             "Event subscriptions with records that could not be delivered and that the server keeps. Likewise only on the first page.",
	"BlockedTopicPartition.record":         "The record that cannot be delivered. Absent if it is the log that is not as expected.",
	"BlockedTopicPartition.position":       "Offset of the next record.",
	"FailureGroup.first_seen":              "First failure of these invocations for the same cause, also if they failed for others in between. The record of an invocation keeps this of its last eight causes, from feature level 4 on; otherwise its last failure counts.",
	"FailureGroup.last_seen":               "Latest failure of these invocations.",
	"FailureGroup.muted":                   "An operator has marked the group as needing no attention.",
	"FailureGroup.note":                    "Note of an operator.",
	"FailureGroup.marked_by":               "Who muted the group or changed its note last.",
	"CopyRequest.input":                    "The input as text. Without input and input_base64, the input of the original.",
	"CopyRequest.input_base64":             "The input in base64, if it is not text.",
	"Invocation.purge_at":                  "When the retention of its result ends and it is purged.",
	"ObjectSummary.state_bytes":            "Size of the values.",
	"ObjectSummary.held_by":                "Invocation that holds the key.",
	"ObjectSummary.waiting":                "Invocations that wait for the key. With a scope, 1000 means 1000 or more.",
	"ScopeList.truncated":                  "There are more scopes than the 1000 in this list.",
	"ObjectDetail.queue":                   "The first 100 invocations that wait for the key.",
	"ObjectDetail.promises":                "Of workflows, at most 1000.",
	"WorkflowPromise.value_utf8":           "Value, if it is valid UTF-8 and the token permits to read payloads.",
}

// listOf returns the schema of {"name": [element…]}.
func listOf[T any](name string) object {
	return object{
		"type": "object", "required": []string{name},
		"properties": object{name: object{"type": "array", "items": reflect.TypeFor[T]()}},
	}
}

// deploymentList is listOf deployments that contain only the names of services.
func deploymentList() object {
	return object{
		"type": "object", "required": []string{"deployments"},
		"properties": object{"deployments": object{"type": "array", "items": object{
			"description": "A Deployment, whose services have only their names and revisions.",
			"type":        "object", "required": []string{"id", "services"},
			"properties": object{
				"id":       object{"type": "string"},
				"services": object{"type": "array", "items": reflect.TypeFor[serviceRevision]()},
			},
			"additionalProperties": true,
		}}},
	}
}
