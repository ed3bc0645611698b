package admin

import (
	"net/http"

	"platform/admin/rest"
)

var jobOperationsAPI = map[string]operation{
	"POST /jobs": {
		id: "create_job", tag: "job", summary: "Start an operation on many invocations: those that match a filter and were created before the job, or up to 1000 by id. " +
			"The cluster executes it and continues it after failures of nodes; an invocation may be processed twice, to the same effect. Needs feature level 4",
		body: object{"type": "object", "required": []string{"operation"}, "properties": object{
			"operation": object{"type": "string", "enum": operationNames()},
			"filter": object{
				"type": "object", "description": "The filters of GET /invocations by name; at least one. Each is a value or a list of values. Without status, those on which the operation has an effect are selected.",
				"additionalProperties": object{"type": []string{"string", "number", "boolean", "array"}},
			},
			"invocation_ids": object{"type": "array", "items": object{"type": "string"}, "maxItems": 1000},
			"deployment":     object{"type": "string", "description": "Keep, Latest or the id of a deployment; for resume and restart-as-new"},
			"reason":         object{"type": "string", "description": "For pause: why, for other operators; one line of up to 512 bytes", "maxLength": rest.MaxReason},
		}},
		answers: []reply{{http.StatusAccepted, "The job was started", jobView{}}}, refusals: []int{400, 409, 415, 422, 429, 503},
	},
	"GET /jobs": {
		id: "list_jobs", tag: "job", summary: "List the jobs, the newest first: those that run, and up to 1000 in all",
		answers: []reply{{http.StatusOK, "The jobs", listOf[jobView]("jobs")}},
	},
	"GET /jobs/:job": {
		id: "get_job", tag: "job", summary: "Show a job and its progress",
		answers: []reply{{http.StatusOK, "The job", jobView{}}}, refusals: []int{404},
	},
	"DELETE /jobs/:job": {
		id: "stop_job", tag: "job", summary: "Stop a job. What it has done is kept; the last batch, of up to 500 invocations, may have been processed in part without being counted",
		answers: []reply{{http.StatusOK, "The job, which has ended", jobView{}}}, refusals: []int{404, 503},
	},
}
