package admin

import "platform/admin/openapi"

var liveOperations = map[string]operation{
	"GET /stats": {
		ID: "get_stats", Tag: "live", Summary: "Show how many invocations were started and ended over time, and how long they took, in all and for the busiest services. " +
			"Each node keeps the last three hours in steps of 10 s since its start",
		Query: []object{
			openapi.QueryParameter("range", "How far to look back: a duration of up to 3h.", object{"type": "string", "default": "1h"}),
			openapi.QueryParameter("step", "Length of a step: a multiple of 10s. By default the range has up to 360 steps.", object{"type": "string"}),
			openapi.QueryParameter("service", "Only this service.", object{"type": "string"}),
			openapi.QueryParameter("services", "Number of services to list: the busiest. The others are summed up under the name (other).", object{"type": "integer", "minimum": 0, "maximum": maxStatsServices, "default": defaultStatsServices}),
		},
		Responses: openapi.OK("The series. null means that no node has data of the step, or for latencies that no invocation ended in it", statsView{}), Errors: []int{400, 409},
	},
	"GET /events": {
		ID: "stream_events", Tag: "live", Summary: "Stream notices of changes as server-sent events. An event change has the topic and its new version as data; " +
			"the client then reloads the data that it shows. Each topic has an event at the beginning and then at most four per second. Comments keep the connection alive every 15 s",
		Query: []object{
			openapi.QueryParameter("topics", "Up to 16 topics, repeated or separated by commas: invocation:ID, invocations, overview, failures, cluster, deployments, rules, jobs, subscriptions.", textList),
			openapi.QueryParameter("last_event_id", "Id of the last event of an earlier stream with the same topics, like the header Last-Event-ID: topics that have not changed since have no event at the beginning.", object{"type": "string"}),
		},
		Responses: openapi.OK("Events until the client closes the connection or the server stops", changeNotice{}), Errors: []int{400, 429},
	},
}
