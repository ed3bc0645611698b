package query

import (
	"context"
	"encoding/hex"

	"platform/metadata"
)

func sysAudit() *Table {
	type row = metadata.AuditRecord
	records := fixed(func(_ context.Context, s *session) ([]row, error) {
		if s.hideAudit {
			return nil, &Error{Message: "the table sys_audit requires the role security or admin", Forbidden: true}
		}
		if s.engine.cfg.Audit == nil {
			return nil, nil
		}
		return s.engine.cfg.Audit()
	}, func(r *row, b []byte) []byte { return append(b, r.Hash...) })
	digest := func(name, about string, of func(*row) []byte) column[row] {
		return plain(name, Text, about, func(r *row) value { return text(hex.EncodeToString(of(r))) })
	}
	return define("sys_audit", "Audit log: changes through the admin API. Requires the role security or admin.", records, []column[row]{
		plain("sequence", U64, "number of the record", func(r *row) value { return number(r.Sequence) }),
		plain("at", Timestamp, "time", func(r *row) value { return moment(r.At) }),
		plain("principal", Text, "name of the token", func(r *row) value { return text(r.Action.Principal) }),
		plain("token_id", Text, "its id", func(r *row) value { return text(r.Action.Token) }),
		plain("address", Text, "network address of the client", func(r *row) value { return text(r.Action.Address) }),
		plain("node", Text, "node that served the request", func(r *row) value { return text(r.Action.Node) }),
		plain("action", Text, "method and route", func(r *row) value { return r.Action.Action }),
		plain("object", Text, "path and query of the request, and what it creates or names in its body", func(r *row) value { return r.Action.Object }),
		plain("status", U32, "HTTP status, of actions that did not change the metadata", func(r *row) value {
			if r.Action.Status == 0 {
				return nil
			}
			return number(r.Action.Status)
		}),
		plain("outcome", Text, "why it was rejected or failed; dry run if it only asked what would change; NULL if it succeeded", func(r *row) value { return text(r.Action.Outcome) }),
		plain("reason", Text, "reason that the client gave", func(r *row) value { return text(r.Action.Reason) }),
		plain("invocations", TextList, "invocations of a batch or job that was given their ids", func(r *row) value {
			if len(r.Action.Objects) == 0 {
				return nil
			}
			return listJSON(r.Action.Objects)
		}),
		plain("omitted", U32, "requests of the principal that changed nothing and were not recorded since its last record", func(r *row) value { return number(r.Action.Omitted) }),
		digest("before_sha256", "digest of the changed metadata before the change", func(r *row) []byte { return r.Before }),
		digest("after_sha256", "the same after the change", func(r *row) []byte { return r.After }),
		digest("previous_hash", "hash of the record before this one", func(r *row) []byte { return r.Previous }),
		digest("hash", "hash of the record", func(r *row) []byte { return r.Hash }),
	})
}
