package admin

import "platform/admin/openapi"

var auditOperations = map[string]operation{
	"GET /audit": {
		ID: "list_audit", Tag: "security", Summary: "List records of the audit log, the newest first",
		Query: []object{
			openapi.QueryParameter("before", "Only records with smaller numbers", object{"type": "integer", "minimum": 1}),
			openapi.QueryParameter("limit", "Number of records", object{"type": "integer", "minimum": 1, "maximum": maxAuditPage, "default": 100}),
		},
		Responses: openapi.OK("The records", openapi.ListOf[auditView]("records")), Errors: []int{400, 401, 403},
	},
	"GET /audit/verification": {
		ID: "verify_audit", Tag: "security", Summary: "Verify the hashes of the audit log",
		Responses: openapi.OK("The result", auditVerification{}), Errors: []int{401, 403},
	},
}

var auditFieldMeanings = map[string]string{
	"AuditRecord.sequence":      "Number of the record.",
	"AuditRecord.invocations":   "Invocations of a batch.",
	"AuditRecord.omitted":       "Number of requests of the principal to this node that changed nothing and were not recorded since its last record.",
	"AuditVerification.deleted": "Number of records that were deleted to make room.",
	"AuditRecord.action":        "Method and route.",
	"AuditRecord.object":        "Path and query of the request.",
	"AuditRecord.status":        "HTTP status, of actions that did not change the metadata.",
	"AuditRecord.outcome":       "Why it was rejected or failed; dry run if it only asked what would change.",
	"AuditRecord.before_sha256": "Digest of the changed records of the metadata before the change.",
	"AuditRecord.after_sha256":  "The same after the change.",
	"AuditRecord.previous_hash": "Hash of the record before this one.",
	"AuditVerification.hash":    "Hash of the last record. A copy kept elsewhere proves later that the records up to it were not replaced.",
}
