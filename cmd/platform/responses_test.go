package main

import "fmt"

// Fixed content of the fake server.

func greeter(revision int, deployment string) string {
	return fmt.Sprintf(`{"name":"Greeter","ty":"Service","revision":%d,"deployment_id":"%s","public":true,
	"idempotency_retention":"1d","journal_retention":"1d","inactivity_timeout":"1m","abort_timeout":"10m","enable_lazy_state":false,
	"retry_policy":{"initial_interval":"500ms","exponentiation_factor":2.0,"max_attempts":70,"max_interval":"1m","on_max_attempts":"Pause"},
	"handlers":[{"name":"greet","public":true,"input_description":"value of content-type application/json","output_description":"value of content-type application/json"}]}`,
		revision, deployment)
}

const (
	counter = `{"name":"Counter","ty":"VirtualObject","revision":3,"deployment_id":"dp_1old","public":false,"documentation":"Counts.",
	"metadata":{"team":"core"},"idempotency_retention":"1d","inactivity_timeout":"1m","abort_timeout":"10m","enable_lazy_state":true,
	"retry_policy":{"initial_interval":"1s","exponentiation_factor":1.5,"max_attempts":null,"max_interval":"10s","on_max_attempts":"Kill"},
	"info":[{"code":"RT0022","message":"journal_retention was shortened to 1d"}],
	"handlers":[{"name":"add","ty":"Exclusive","public":true,"input_description":"value of content-type application/json","output_description":"none"},
	{"name":"get","ty":"Shared","public":true,"input_description":"none","output_description":"value of content-type application/json"}]}`

	mailer = `{"name":"Mailer","ty":"Workflow","revision":1,"deployment_id":"dp_1new","public":true,
	"handlers":[{"name":"run","ty":"Workflow","public":true,"input_description":"none","output_description":"none"},
	{"name":"status","ty":"Shared","public":true,"input_description":"none","output_description":"none"}]}`

	deploymentHead = `"id":"dp_1old","uri":"http://localhost:9080/","protocol_type":"BidiStream","http_version":"HTTP/2.0",
	"created_at":"2026-11-20T18:13:50.298000000Z","min_protocol_version":5,"max_protocol_version":6,"sdk_version":"sdk-go/1.2.0",
	"additional_headers":{"authorization":"Bearer x"}`

	deploymentMoved = `"id":"dp_1old","uri":"http://localhost:9081/","protocol_type":"RequestResponse","http_version":"HTTP/1.1",
	"created_at":"2026-11-20T18:13:50.298000000Z","min_protocol_version":5,"max_protocol_version":6,"sdk_version":"sdk-go/1.2.0",
	"info":[{"message":"the endpoint offers something else"}]`

	failed = `{"id":"inv_1fail","target":"Counter/a/add","target_service_name":"Counter","target_service_ty":"virtual_object","status":"completed",
	"created_at":"2026-11-20T18:13:51.000000000Z","completed_at":"2026-11-20T18:15:21.500000000Z","invoked_by":"service","invoked_by_id":"inv_1done",
	"invoked_by_target":"Greeter/greet","pinned_deployment_id":"dp_1old","last_attempt_server":"sdk-go/1.2.0","completion_result":"failure",
	"completion_failure":"[409 Aborted] killed"}`

	backingOff = `{"id":"inv_1retry","target":"Greeter/greet","target_service_name":"Greeter","target_service_ty":"service","status":"backing-off",
	"created_at":"2026-11-20T18:13:52.000000000Z","modified_at":"2026-11-20T18:13:53.000000000Z","next_retry_at":"2026-11-20T18:14:00.000000000Z",
	"retry_count":4,"invoked_by":"ingress","idempotency_key":"order-17","pinned_deployment_id":"dp_1old","last_attempt_server":"sdk-go/1.2.0",
	"last_failure":"[500 Internal] transient boom\nat greet.go:17","last_failure_error_code":"RT0007"}`

	scheduled = `{"id":"inv_1later","target":"Greeter/greet","target_service_name":"Greeter","target_service_ty":"service","status":"scheduled",
	"created_at":"2026-11-20T18:13:54.000000000Z","scheduled_start_at":"2027-01-01T00:00:00.000000000Z","invoked_by":"ingress"}`

	doneFields = `"id":"inv_1done","target":"Greeter/greet","target_service_name":"Greeter","target_service_ty":"service","status":"completed",
	"created_at":"2026-11-20T18:13:50.298000000Z","running_at":"2026-11-20T18:13:50.300000000Z","completed_at":"2026-11-20T18:13:51.548000000Z",
	"invoked_by":"ingress","pinned_deployment_id":"dp_1old","pinned_service_protocol_version":6,"journal_size":6,
	"last_attempt_server":"sdk-go/1.2.0","completion_result":"success"`

	journal = `[{"index":0,"entry_type":"Command: Input","appended_at":"2026-11-20T18:13:50.298000000Z","raw_length":40},
	{"index":1,"entry_type":"Command: Run","name":"charge","appended_at":"2026-11-20T18:13:50.300000000Z"},
	{"index":2,"entry_type":"Notification: Run","appended_at":"2026-11-20T18:13:50.400000000Z","raw_length":9},
	{"index":3,"entry_type":"Command: Sleep","sleep_wakeup_at":"2026-11-20T18:13:51.400000000Z"},
	{"index":4,"entry_type":"Command: Call","invoked_id":"inv_1fail","invoked_target":"Counter/a/add"},
	{"index":5,"entry_type":"Command: Output","appended_at":"2026-11-20T18:13:51.548000000Z"}]`
)

const (
	ruleAny = `{"pattern":"*","limits":{"concurrency":1},"disabled":true,"version":2,"last_modified_millis_since_epoch":1795198400000}`

	ruleTenant = `{"pattern":"tenant","limits":{"concurrency":5,"rate":"100/s"},"description":"pays for more","disabled":false,"version":7,
	"last_modified_millis_since_epoch":1795198430298}`
)

var adminAnswers = map[string]string{
	"GET /health":                 ``,
	"GET /version":                `{"version":"0.9.1","min_admin_api_version":2,"max_admin_api_version":4}`,
	"GET /services":               `{"services":[` + greeter(1, "dp_1old") + `,` + counter + `]}`,
	"GET /services/Greeter":       greeter(1, "dp_1old"),
	"GET /services/Counter":       counter,
	"GET /services/Fading":        greeter(1, "dp_1old"),
	"GET /deployments":            `{"deployments":[{` + deploymentHead + `,"services":[{"name":"Greeter","revision":1},{"name":"Counter","revision":3}]}]}`,
	"GET /deployments/dp_1old":    `{` + deploymentHead + `,"services":[` + greeter(1, "dp_1old") + `,` + counter + `]}`,
	"DELETE /deployments/dp_1old": ``,
	"PATCH /deployments/dp_1old":  `{` + deploymentMoved + `,"services":[` + greeter(1, "dp_1old") + `,` + mailer + `]}`,
	"PATCH /services/Greeter":     greeter(1, "dp_1old"),
	"GET /invocations":            `{"invocations":[` + scheduled + `,` + backingOff + `,` + failed + `,{` + doneFields + `}]}`,
	"GET /invocations/inv_1done":  `{` + doneFields + `,"journal":` + journal + `}`,
	"GET /invocations/inv_1retry": backingOff,
	"GET /invocations/inv_1fail":  failed,

	"GET /limits/rules":           `{"version":7,"rules":[` + ruleAny + `,` + ruleTenant + `]}`,
	"GET /limits/rules/*":         ruleAny,
	"GET /limits/rules/tenant":    ruleTenant,
	"PUT /limits/rules/*":         ruleAny,
	"PUT /limits/rules/tenant":    `{"pattern":"tenant","limits":{"concurrency":6},"disabled":false,"version":8,"last_modified_millis_since_epoch":1795198500000}`,
	"PUT /limits/rules/new/a":     `{"pattern":"new/a","limits":{"concurrency":6},"disabled":false,"version":9,"last_modified_millis_since_epoch":1795198500000}`,
	"PUT /limits/rules/parked":    `{"pattern":"parked","limits":{"concurrency":1},"disabled":true,"version":9,"last_modified_millis_since_epoch":1795198500000}`,
	"DELETE /limits/rules/tenant": ``,
}
