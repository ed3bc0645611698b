package admin

import "net/http"

var liveOperations = map[string]operation{
	"GET /events": {
		id: "stream_events", tag: "live", summary: "Stream notices of changes as server-sent events. An event change has the topic and its new version as data; " +
			"the client reads again what it shows. Each topic has an event at the beginning and then at most four per second. Comments keep the connection alive every 15 s",
		query: []object{
			queryParameter("topics", "Up to 16 topics, repeated or separated by commas: invocation:ID, invocations, overview, failures, cluster, deployments, rules.", textList),
			queryParameter("last_event_id", "Id of the last event of an earlier stream with the same topics, like the header Last-Event-ID: topics that have not changed since have no event at the beginning.", object{"type": "string"}),
		},
		answers: []reply{{http.StatusOK, "Events until the client closes the connection or the server stops", changeNotice{}}}, refusals: []int{400, 429},
	},
}
