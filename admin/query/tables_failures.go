package query

import (
	"context"

	"platform/metadata"
	"platform/partition/listing"
)

func sysFailureGroup() *Table {
	type row struct {
		listing.Group
		mark metadata.FailureMark
	}
	groups := func(ctx context.Context, s *session) ([]row, error) {
		if s.engine.cfg.Failures == nil {
			return nil, nil
		}
		groups, err := s.engine.cfg.Failures(ctx)
		rows := make([]row, len(groups))
		for i := range groups {
			rows[i].Group = groups[i]
			if s.engine.cfg.FailureMark != nil {
				rows[i].mark, _ = s.engine.cfg.FailureMark(groups[i].ID.String())
			}
		}
		return rows, err
	}
	count := func(status listing.Status) func(g *row) value {
		return func(g *row) value { return number(g.ByStatus[status]) }
	}
	return define("sys_failure_group", "Failed invocations in groups of the same cause, at most 1,000 groups.",
		fixed(groups, func(g *row, b []byte) []byte { return append(b, g.ID[:]...) }).
			owned(byOwnerService, func(g *row) owner { return owner{service: g.Service} }), []column[row]{ // a group has invocations of all scopes
			{"id", Text, "failure group id", func(g *row) value { return g.ID.String() }, noField, false},
			{"service_name", Text, "service", func(g *row) value { return g.Service }, noField, false},
			{"handler_name", Text, "handler", func(g *row) value { return g.Handler }, noField, false},
			{"error_code", Text, "catalogue code, such as RT0007", func(g *row) value { return text(g.ErrorCode) }, noField, false},
			{"code", U32, "code of the failure", func(g *row) value { return number(g.Code) }, noField, false},
			{"message", Text, "message, with ? for numbers, ids and quoted values", func(g *row) value { return g.Message }, noField, false},
			{"num_invocations", U64, "invocations of the group", func(g *row) value { return number(g.Count) }, noField, false},
			{"num_completed", U64, "of them, those that have ended with the failure", count(listing.Completed), noField, false},
			{"num_paused", U64, "those that are paused after it", count(listing.Paused), noField, false},
			{"num_backing_off", U64, "those that wait for the next attempt", count(listing.BackingOff), noField, false},
			{"num_keys", U64, "distinct keys of objects and workflows, at most 1,000 per partition", func(g *row) value { return number(g.Keys) }, noField, false},
			{"first_seen_at", Timestamp, "first failure of these invocations for the same cause", func(g *row) value { return millis(g.FirstSeen) }, noField, false},
			{"last_seen_at", Timestamp, "latest failure", func(g *row) value { return millis(g.LastSeen) }, noField, false},
			{"sample_invocation_id", Text, "invocation with the latest failure", func(g *row) value { return g.Sample.String() }, noField, false},
			{"deployments", TextList, "deployments that they are pinned to, at most 16", func(g *row) value {
				names := []string{}
				for _, d := range g.Deployments {
					names = append(names, string(d))
				}
				return listJSON(names)
			}, noField, false},
			{"muted", Bool, "whether an operator muted the group", func(g *row) value { return boolean(g.mark.Muted) }, noField, false},
			{"note", Text, "note of an operator", func(g *row) value { return text(g.mark.Note) }, noField, false},
			{"marked_by", Text, "who muted the group or changed its note last", func(g *row) value { return text(g.mark.By) }, noField, false},
			{"marked_at", Timestamp, "when", func(g *row) value { return moment(g.mark.At) }, noField, false},
		})
}
