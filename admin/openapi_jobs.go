package admin

import (
	"net/http"

	"platform/admin/openapi"
	"platform/admin/rest"
)

var jobOperationsAPI = map[string]operation{
	"POST /jobs": {
		ID: "create_job", Tag: "job", Summary: "Start an operation on many invocations: those that match a filter and were created before the job, or up to 1000 by id. " +
			"The cluster executes it and continues it after failures of nodes; an invocation may be processed twice, to the same effect. Needs feature level 4",
		Body: object{"type": "object", "required": []string{"operation"}, "properties": object{
			"operation": object{"type": "string", "enum": operationNames()},
			"filter": object{
				"type": "object", "description": "The filters of GET /invocations by name; at least one. Each is a value or a list of values. Without status, those on which the operation has an effect are selected.",
				"additionalProperties": object{"type": []string{"string", "number", "boolean", "array"}},
			},
			"invocation_ids": object{"type": "array", "items": object{"type": "string"}, "maxItems": 1000},
			"deployment":     object{"type": "string", "description": "Keep, Latest or the id of a deployment; for resume and restart-as-new"},
			"reason":         object{"type": "string", "description": "For pause: why, for other operators; one line of up to 512 bytes", "maxLength": rest.MaxReason},
		}},
		Responses: responses{openapi.Returns(http.StatusAccepted, "The job was started", jobView{})}, Errors: []int{400, 409, 415, 422, 429, 503},
	},
	"GET /jobs": {
		ID: "list_jobs", Tag: "job", Summary: "List the jobs, the newest first: those that run, and up to 1000 in all",
		Responses: openapi.OK("The jobs", openapi.ListOf[jobView]("jobs")),
	},
	"GET /jobs/:job": {
		ID: "get_job", Tag: "job", Summary: "Show a job and its progress",
		Responses: openapi.OK("The job", jobView{}), Errors: []int{404},
	},
	"DELETE /jobs/:job": {
		ID: "stop_job", Tag: "job", Summary: "Stop a job. What it has done is kept; the last batch, of up to 500 invocations, may have been processed in part without being counted",
		Responses: openapi.OK("The job, which has ended", jobView{}), Errors: []int{404, 503},
	},
}
