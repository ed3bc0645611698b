package admin

import (
	"encoding/json"
	"reflect"

	"platform/admin/rest"
	"platform/internal/errcode"
	"platform/internal/ids"
	"platform/internal/units"
)

// componentNames maps types to the names of their components, if these differ.
var componentNames = map[reflect.Type]string{
	reflect.TypeFor[rest.Notice]():        "Info",
	reflect.TypeFor[rest.ErrorBody]():     "Error",
	reflect.TypeFor[errorView]():          "ErrorCode",
	reflect.TypeFor[versionView]():        "Version",
	reflect.TypeFor[Page]():               "InvocationPage",
	reflect.TypeFor[Counts]():             "InvocationCounts",
	reflect.TypeFor[HandlerCounts]():      "HandlerCounts",
	reflect.TypeFor[failurePage]():        "FailurePage",
	reflect.TypeFor[FailureGroup]():       "FailureGroup",
	reflect.TypeFor[Entry]():              "JournalEntry",
	reflect.TypeFor[journalEntry]():       "JournalEntryContent",
	reflect.TypeFor[journalEvent]():       "JournalEvent",
	reflect.TypeFor[journalPage]():        "JournalPage",
	reflect.TypeFor[Await]():              "Await",
	reflect.TypeFor[clusterHealthView]():  "ClusterHealth",
	reflect.TypeFor[metadataHealthView](): "MetadataHealth",
	reflect.TypeFor[clusterConfigView]():  "ClusterConfiguration",
	reflect.TypeFor[clusterChange]():      "ModifyClusterRequest",
	reflect.TypeFor[provisioning]():       "ProvisionRequest",
	reflect.TypeFor[logLevelsRequest]():   "SetLogLevelsRequest",
	reflect.TypeFor[logLevelsView]():      "LogLevels",
	reflect.TypeFor[nodeLogLevelsView]():  "NodeLogLevels",
	reflect.TypeFor[secretsView]():        "Secrets",
	reflect.TypeFor[secretKeyView]():      "SecretKey",
	reflect.TypeFor[nodeSecretKeys]():     "NodeSecretKeys",
	reflect.TypeFor[NodeState]():          "Node",
	reflect.TypeFor[NodeUsage]():          "NodeUsage",
	reflect.TypeFor[clusterEventsView]():  "ClusterEvents",
	reflect.TypeFor[clusterEventView]():   "ClusterEvent",
	reflect.TypeFor[eventsNodeView]():     "EventsNode",
	reflect.TypeFor[queryLimits]():        "QueryLimits",
	reflect.TypeFor[PartitionState]():     "Partition",
	reflect.TypeFor[ReplicaState]():       "Replica",
	reflect.TypeFor[recovery]():           "RecoverPartitionsRequest",
	reflect.TypeFor[statsView]():          "Stats",
	reflect.TypeFor[jobView]():            "Job",
	reflect.TypeFor[auditView]():          "AuditRecord",
	reflect.TypeFor[auditVerification]():  "AuditVerification",
	reflect.TypeFor[batchFailure]():       "BatchFailure",
	reflect.TypeFor[statsNodeView]():      "StatsNode",
	reflect.TypeFor[seriesView]():         "Series",
}

// typeSchemas maps types to their schemas if these do not follow from the kind of the type.
var typeSchemas = map[reflect.Type]object{
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
