package query

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"platform/metadata"
)

func sysService() *Table {
	services := func(_ context.Context, s *session) ([]*metadata.Service, error) {
		return slices.SortedFunc(maps.Values(s.engine.cfg.Registry().Services), func(a, b *metadata.Service) int {
			return cmp.Compare(a.Name, b.Name)
		}), nil
	}
	type row = *metadata.Service
	return define("sys_service", "Registered services with their latest revisions.",
		fixed(services, func(s *row, b []byte) []byte { return append(b, (*s).Name...) }).
			owned(byTargetOwner, func(s *row) owner { return owner{service: (*s).Name, allScopes: true} }), []column[row]{
			{"name", Text, "service", func(s *row) value { return (*s).Name }, noField, false},
			{"revision", U64, "latest revision", func(s *row) value { return number((*s).Revision) }, noField, false},
			{"public", Bool, "callable through the ingress", func(s *row) value {
				return boolean((*s).Options.Public == nil || *(*s).Options.Public)
			}, noField, false},
			{"ty", Text, "service, virtual_object or workflow", func(s *row) value {
				return [...]string{"service", "virtual_object", "workflow"}[(*s).Type]
			}, noField, false},
			{"deployment_id", Text, "deployment of the latest revision", func(s *row) value { return string((*s).Deployment) }, noField, false},
		})
}

func sysDeployment() *Table {
	deployments := func(_ context.Context, s *session) ([]*metadata.Deployment, error) {
		return slices.SortedFunc(maps.Values(s.engine.cfg.Registry().Deployments), func(a, b *metadata.Deployment) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
		}), nil
	}
	type row = *metadata.Deployment
	return define("sys_deployment", "Registered deployments.",
		fixed(deployments, func(d *row, b []byte) []byte { return append(b, (*d).ID...) }), []column[row]{
			{"id", Text, "deployment id", func(d *row) value { return string((*d).ID) }, noField, false},
			{"ty", Text, "http or lambda", func(d *row) value {
				if (*d).Function() {
					return "lambda"
				}
				return "http"
			}, noField, false},
			{"endpoint", Text, "URL or ARN", func(d *row) value { return (*d).Address() }, noField, false},
			{"created_at", Timestamp, "registration", func(d *row) value { return moment((*d).CreatedAt) }, noField, false},
			{"min_service_protocol_version", U32, "lowest protocol version", func(d *row) value { return number((*d).MinProtocol) }, noField, false},
			{"max_service_protocol_version", U32, "highest protocol version", func(d *row) value { return number((*d).MaxProtocol) }, noField, false},
			{"services", TextList, "names of its services", func(d *row) value {
				names := []string{}
				for _, s := range (*d).Services {
					names = append(names, s.Name)
				}
				return listJSON(names)
			}, noField, false},
		})
}

func sysJob() *Table {
	type row = metadata.Job
	jobs := fixed(func(_ context.Context, s *session) ([]row, error) {
		if s.engine.cfg.Jobs == nil {
			return nil, nil
		}
		return s.engine.cfg.Jobs(), nil
	}, func(j *row, b []byte) []byte { return append(b, j.ID...) })
	return define("sys_job", "Operations on many invocations.", jobs, []column[row]{
		plain("id", Text, "job id", func(j *row) value { return j.ID }),
		plain("operation", Text, "cancel, kill, pause, resume, restart-as-new or purge", func(j *row) value { return j.Operation }),
		plain("state", Text, "running, done, stopped or failed", func(j *row) value { return j.State.String() }),
		plain("filter", Text, "which invocations, as the query of GET /invocations; NULL if ids were given", func(j *row) value { return text(j.Filter) }),
		plain("deployment", Text, "deployment to continue on; NULL is the default of the operation", func(j *row) value { return text(j.Deployment) }),
		plain("reason", Text, "reason of a pause", func(j *row) value { return text(j.Reason) }),
		plain("requested_by", Text, "network address of the client", func(j *row) value { return text(j.By) }),
		plain("created_at", Timestamp, "request", func(j *row) value { return moment(j.CreatedAt) }),
		plain("modified_at", Timestamp, "last progress", func(j *row) value { return moment(j.ModifiedAt) }),
		plain("total", U64, "invocations that matched when the job started; NULL if that is not known", func(j *row) value { return positive(j.Total) }),
		plain("matched", U64, "invocations found so far", func(j *row) value { return number(j.Matched) }),
		plain("done", U64, "invocations on which the operation succeeded", func(j *row) value { return number(j.Done) }),
		plain("failed", U64, "invocations on which it failed", func(j *row) value { return number(j.Failed) }),
		plain("skipped", U64, "invocations that were deleted before their turn", func(j *row) value { return number(j.Skipped) }),
		plain("error", Text, "why the job failed", func(j *row) value { return text(j.Error) }),
	})
}
