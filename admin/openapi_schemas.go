package admin

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"platform/admin/rest"
	"platform/internal/errcode"
	"platform/internal/ids"
	"platform/internal/units"
)

// schemaSet generates JSON schemas of the Go types of requests and responses. Structs become
// components.
type schemaSet struct{ components object }

func newSchemas() *schemaSet { return &schemaSet{components: object{}} }

// componentNames maps types to the names of their components, if these differ.
var componentNames = map[reflect.Type]string{
	reflect.TypeFor[registration]():        "RegisterDeploymentRequest",
	reflect.TypeFor[registeredView]():      "RegisterDeploymentResponse",
	reflect.TypeFor[deploymentUpdate]():    "UpdateDeploymentRequest",
	reflect.TypeFor[deploymentView]():      "Deployment",
	reflect.TypeFor[serviceRevision]():     "ServiceRevision",
	reflect.TypeFor[serviceView]():         "Service",
	reflect.TypeFor[overriddenView]():      "OverriddenOptions",
	reflect.TypeFor[serviceChange]():       "ModifyServiceRequest",
	reflect.TypeFor[retryChange]():         "ModifyRetryPolicy",
	reflect.TypeFor[retryView]():           "RetryPolicy",
	reflect.TypeFor[retryOverrideView]():   "HandlerRetryPolicy",
	reflect.TypeFor[handlerView]():         "Handler",
	reflect.TypeFor[rest.Notice]():         "Info",
	reflect.TypeFor[rest.ErrorBody]():      "Error",
	reflect.TypeFor[errorView]():           "ErrorCode",
	reflect.TypeFor[versionView]():         "Version",
	reflect.TypeFor[Page]():                "InvocationPage",
	reflect.TypeFor[Counts]():              "InvocationCounts",
	reflect.TypeFor[HandlerCounts]():       "HandlerCounts",
	reflect.TypeFor[failurePage]():         "FailurePage",
	reflect.TypeFor[blockedPartition]():    "BlockedTopicPartition",
	reflect.TypeFor[FailureGroup]():        "FailureGroup",
	reflect.TypeFor[Entry]():               "JournalEntry",
	reflect.TypeFor[journalEntry]():        "JournalEntryContent",
	reflect.TypeFor[journalEvent]():        "JournalEvent",
	reflect.TypeFor[journalPage]():         "JournalPage",
	reflect.TypeFor[vqueueView]():          "VQueue",
	reflect.TypeFor[counterView]():         "LimitCounter",
	reflect.TypeFor[Await]():               "Await",
	reflect.TypeFor[clusterHealthView]():   "ClusterHealth",
	reflect.TypeFor[metadataHealthView]():  "MetadataHealth",
	reflect.TypeFor[clusterConfigView]():   "ClusterConfiguration",
	reflect.TypeFor[clusterChange]():       "ModifyClusterRequest",
	reflect.TypeFor[provisioning]():        "ProvisionRequest",
	reflect.TypeFor[logLevelsRequest]():    "SetLogLevelsRequest",
	reflect.TypeFor[logLevelsView]():       "LogLevels",
	reflect.TypeFor[nodeLogLevelsView]():   "NodeLogLevels",
	reflect.TypeFor[secretsView]():         "Secrets",
	reflect.TypeFor[authorityRequest]():    "PutAuthorityRequest",
	reflect.TypeFor[authorityView]():       "Authority",
	reflect.TypeFor[joinTokenRequest]():    "CreateJoinTokenRequest",
	reflect.TypeFor[joinTokenView]():       "JoinToken",
	reflect.TypeFor[createdJoinToken]():    "CreatedJoinToken",
	reflect.TypeFor[secretKeyView]():       "SecretKey",
	reflect.TypeFor[nodeSecretKeys]():      "NodeSecretKeys",
	reflect.TypeFor[NodeState]():           "Node",
	reflect.TypeFor[NodeUsage]():           "NodeUsage",
	reflect.TypeFor[clusterEventsView]():   "ClusterEvents",
	reflect.TypeFor[clusterEventView]():    "ClusterEvent",
	reflect.TypeFor[eventsNodeView]():      "EventsNode",
	reflect.TypeFor[queryLimits]():         "QueryLimits",
	reflect.TypeFor[PartitionState]():      "Partition",
	reflect.TypeFor[ReplicaState]():        "Replica",
	reflect.TypeFor[recovery]():            "RecoverPartitionsRequest",
	reflect.TypeFor[ruleChange]():          "RuleChange",
	reflect.TypeFor[limitsView]():          "Limits",
	reflect.TypeFor[ruleView]():            "Rule",
	reflect.TypeFor[ruleBookView]():        "RuleBook",
	reflect.TypeFor[statsView]():           "Stats",
	reflect.TypeFor[jobView]():             "Job",
	reflect.TypeFor[tokenRequest]():        "CreateTokenRequest",
	reflect.TypeFor[tokenView]():           "Token",
	reflect.TypeFor[createdToken]():        "CreatedToken",
	reflect.TypeFor[whoAmIView]():          "Identity",
	reflect.TypeFor[loginView]():           "LoginOptions",
	reflect.TypeFor[oidcView]():            "OIDCLogin",
	reflect.TypeFor[exchangeRequest]():     "ExchangeTokenRequest",
	reflect.TypeFor[sessionView]():         "Session",
	reflect.TypeFor[auditView]():           "AuditRecord",
	reflect.TypeFor[auditVerification]():   "AuditVerification",
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
	reflect.TypeFor[deadLetterCount]():     "DeadLetterCount",
	reflect.TypeFor[recordHeaderView]():    "RecordHeader",
	reflect.TypeFor[bytesView]():           "RecordBytes",
	reflect.TypeFor[seekRequest]():         "SeekRequest",
	reflect.TypeFor[kafkaClusterRequest](): "CreateKafkaClusterRequest",
	reflect.TypeFor[kafkaClusterEdit]():    "UpdateKafkaClusterRequest",
	reflect.TypeFor[kafkaClusterView]():    "KafkaCluster",
	reflect.TypeFor[batchFailure]():        "BatchFailure",
	reflect.TypeFor[statsNodeView]():       "StatsNode",
	reflect.TypeFor[seriesView]():          "Series",
}

// scalars maps types to their schemas if these do not follow from the kind of the type.
var scalars = map[reflect.Type]object{
	reflect.TypeFor[rest.Timestamp]():  {"type": "string", "format": "date-time"},
	reflect.TypeFor[units.Duration]():  {"type": "string", "description": "duration, such as 1m 30s or PT90S", "examples": []string{"1m 30s"}},
	reflect.TypeFor[json.RawMessage](): {"description": "any JSON value"},
	reflect.TypeFor[embeddedJSON]():    {"type": "object"},
	reflect.TypeFor[json.Number]():     {"type": "number"},
	reflect.TypeFor[ids.Node]():        {"type": "string", "pattern": "^N[0-9]+$", "description": "id of a node", "examples": []string{"N1"}},
	reflect.TypeFor[ids.Deployment]():  {"type": "string", "description": "id of a deployment"},
	reflect.TypeFor[errcode.Code]():    {"type": "string", "description": "error code; GET /errors/{code} explains it"},
	reflect.TypeFor[Status]():          {"type": "string", "enum": statuses},
	reflect.TypeFor[Health]():          {"type": "string", "enum": []Health{Healthy, Degraded, Unavailable}},
	reflect.TypeFor[Liveness]():        {"type": "string", "enum": []Liveness{NodeAlive, NodeDead, NodeLeft, NodeUnknown}},
	reflect.TypeFor[Role]():            {"type": "string", "enum": []Role{RoleLeader, RoleVoter, RoleLearner, RoleNone, RoleUnknown}},
}

// describe returns the schema of a value's type, or the value itself if it is a schema. In
// responses, fields that are never omitted are required; in requests, no field is.
func (s *schemaSet) describe(value any, answer bool) object {
	switch v := value.(type) {
	case object:
		return s.resolve(v, answer)
	case reflect.Type:
		return s.of(v, answer)
	}
	return s.of(reflect.TypeOf(value), answer)
}

// resolve replaces types within a hand-written schema by their schemas.
func (s *schemaSet) resolve(schema object, answer bool) object {
	out := object{}
	for key, value := range schema {
		switch v := value.(type) {
		case object:
			out[key] = s.resolve(v, answer)
		case reflect.Type:
			out[key] = s.of(v, answer)
		default:
			out[key] = v
		}
	}
	return out
}

func (s *schemaSet) of(t reflect.Type, answer bool) object {
	if schema, known := scalars[t]; known {
		return schema
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem(), answer)
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem(), answer)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem(), answer)}
	case reflect.Interface:
		return object{}
	case reflect.Struct:
		return s.component(t, answer)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	}
	return object{"type": "integer"}
}

// component adds the schema of a struct to the components and returns a reference to it.
func (s *schemaSet) component(t reflect.Type, answer bool) object {
	name := cmp.Or(componentNames[t], strings.ToUpper(t.Name()[:1])+t.Name()[1:])
	ref := object{"$ref": "#/components/schemas/" + name}
	if s.components[name] != nil {
		return ref
	}
	properties, required := object{}, []string{}
	schema := object{"type": "object", "properties": properties}
	s.components[name] = schema // set before the fields, whose types may refer to it
	for _, field := range reflect.VisibleFields(t) {
		json, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if json == "" && field.Anonymous {
			continue // its fields follow as promoted ones
		}
		if !field.IsExported() || json == "-" {
			continue
		}
		property := s.of(field.Type, answer)
		omitted := options != ""
		if answer && field.Type.Kind() == reflect.Pointer && !omitted {
			property = object{"anyOf": []object{property, {"type": "null"}}}
		}
		properties[json] = described(name+"."+json, property)
		if answer && !omitted {
			required = append(required, json)
		}
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	return ref
}

// described adds the description of a field to its schema.
func described(field string, schema object) object {
	if special, ok := specialFields[field]; ok {
		schema = special
	}
	text := fieldMeanings[field]
	if text == "" {
		return schema
	}
	out := object{"description": text}
	for key, value := range schema {
		if key != "description" {
			out[key] = value
		}
	}
	return out
}

func statusText(status int) string { return strconv.Itoa(status) }
