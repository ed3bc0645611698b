package admin

import "platform/admin/openapi"

var queryOperations = map[string]operation{
	"POST /query": {
		ID: "query", Tag: "introspection", Summary: "Run an SQL query on the state of the system. The result is JSON, without columns that are NULL, or an Apache Arrow stream if the request accepts application/vnd.apache.arrow.stream and not JSON",
		Query: []object{openapi.QueryParameter("consistency", "How current the tables of partitions are: bounded may be behind by the election time-out (2 s), strong shows everything acknowledged before the query began. The body can set it, too.",
			object{"type": "string", "enum": []string{boundedConsistency, strongConsistency}, "default": boundedConsistency})},
		Body: queryRequest{},
		Responses: openapi.OK("The rows in order of their computation. If a query fails after rows were sent, the document has a member \"error\" and the connection is cut.", object{
			"type": "object", "required": []string{"rows"},
			"properties": object{
				"rows":    object{"type": "array", "items": object{"type": "object"}},
				"columns": object{"type": "array", "items": object{"type": "object"}, "description": "name and type of each, if with_columns was set; computed ones have no type"},
				"stats": object{
					"type": "object", "required": []string{"scans", "partitions", "pages", "rows_read"},
					"properties": object{
						"scans": object{"type": "integer", "description": "scans of tables"}, "partitions": object{"type": "integer", "description": "requests to partitions, of all scans"},
						"pages": object{"type": "integer", "description": "pages that partitions sent"}, "rows_read": object{"type": "integer", "description": "rows that were read, also those that no condition selected"},
					},
					"description": "what the query has read, if with_stats was set",
				},
				"notices": object{"type": "array", "items": object{
					"type": "object", "required": []string{"message", "line", "column"},
					"properties": object{"message": object{"type": "string"}, "line": object{"type": "integer"}, "column": object{"type": "integer"}},
				}, "description": "comparisons with values that a column never has, such as status = 'runing'; absent if there are none, and in Arrow streams"},
			},
		}),
		Errors: []int{400, 415, 422, 429, 503},
	},
	"GET /query/tables": {
		ID: "list_tables", Tag: "introspection", Summary: "List the system tables and their columns, and the limits of queries",
		Responses: openapi.OK("All tables", tableList{}), Errors: []int{503},
	},
}
