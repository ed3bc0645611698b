package admin

import (
	"context"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/ids"
)

const (
	maxBatch      = 1000 // invocations per batch
	batchParallel = 32   // operations executed concurrently per batch
)

type batchRequest struct {
	InvocationIDs []string         `json:"invocation_ids"`
	Deployment    DeploymentChoice `json:"deployment"`
	Reason        string           `json:"reason"` // for pause only
}

type batchFailure struct {
	ID    string `json:"invocation_id"`
	Error string `json:"error"`
}

type batchResult[T any] struct {
	Succeeded []T            `json:"succeeded"`
	Failed    []batchFailure `json:"failed"`
	uncertain bool           // something may have changed that is not in Succeeded
}

type restartedFrom struct {
	Old string `json:"old_invocation_id"`
	New string `json:"new_invocation_id"`
}

// batchOperations maps the names in the path to the operations on batches of invocations.
func (s *Server) batchOperations(pause rest.PauseRequest) map[string]func(ctx context.Context, id ids.Invocation, on DeploymentChoice) error {
	return map[string]func(ctx context.Context, id ids.Invocation, on DeploymentChoice) error{
		"kill": func(ctx context.Context, id ids.Invocation, _ DeploymentChoice) error {
			return s.invocations.Kill(ctx, id)
		},
		"pause": func(ctx context.Context, id ids.Invocation, _ DeploymentChoice) error {
			_, err := s.invocations.Pause(ctx, id, pause)
			return err
		},
		"resume": s.invocations.Resume,
		"purge": func(ctx context.Context, id ids.Invocation, _ DeploymentChoice) error {
			return s.invocations.Purge(ctx, id)
		},
		"purge-journal": func(ctx context.Context, id ids.Invocation, _ DeploymentChoice) error {
			return s.invocations.PurgeJournal(ctx, id)
		},
	}
}

func (s *Server) batch(c echo.Context) error {
	name := c.Param("operation")
	if s.batchOperations(rest.PauseRequest{})[name] == nil && name != "restart-as-new" && name != "cancel" {
		return echo.ErrNotFound
	}
	r, invocations, err := s.readBatch(c)
	if err != nil {
		return err
	}
	if r.Reason != "" && name != "pause" {
		return rest.Unprocessable("the field 'reason' is for pause only")
	}
	if r.Deployment != (DeploymentChoice{}) && name != "resume" && name != "restart-as-new" {
		return rest.Unprocessable("the field 'deployment' is for resume and restart-as-new only")
	}
	pause, err := rest.PauseRequestOf(c, r.Reason)
	if err != nil {
		return err
	}
	on := r.Deployment
	ctx := c.Request().Context()
	if err := s.invocationsWithin(ctx, invocations); err != nil {
		return err
	}
	rest.ConcernsEach(c, r.InvocationIDs)
	switch name {
	case "restart-as-new":
		done := batchOf(s, c, invocations, func(id ids.Invocation) (restartedFrom, error) {
			made, err := s.invocations.Restart(ctx, id, 0, on)
			return restartedFrom{id.String(), made.String()}, err
		})
		return respondBatch(c, &done, done)
	case "cancel":
		done := s.cancelAll(c, invocations)
		return respondBatch(c, &done.batchResult, done)
	}
	operation := s.batchOperations(pause)[name]
	done := batchOf(s, c, invocations, func(id ids.Invocation) (string, error) {
		return id.String(), operation(ctx, id, on)
	})
	return respondBatch(c, &done, done)
}

// respondBatch responds to a batch with its result, or with one that contains it.
func respondBatch[T any](c echo.Context, done *batchResult[T], body any) error {
	if len(done.Succeeded) == 0 && !done.uncertain {
		rest.ChangedNothing(c)
	}
	return rest.Respond(c, http.StatusOK, body)
}

// cancelled is the result of cancelling several invocations.
type cancelled struct {
	batchResult[string]
	// Requested lists running invocations, to which the cancel signal was sent: their handlers
	// decide how they end.
	Requested []string `json:"requested"`
}

func (s *Server) cancelAll(c echo.Context, invocations []ids.Invocation) cancelled {
	type one struct {
		id      string
		started bool
	}
	done := batchOf(s, c, invocations, func(id ids.Invocation) (one, error) {
		started, err := s.invocations.Cancel(c.Request().Context(), id)
		return one{id.String(), started}, err
	})
	out := cancelled{batchResult[string]{[]string{}, done.Failed, done.uncertain}, []string{}}
	for _, o := range done.Succeeded {
		out.Succeeded = append(out.Succeeded, o.id)
		if o.started {
			out.Requested = append(out.Requested, o.id)
		}
	}
	return out
}

// readBatch parses the invocation IDs of a batch, without those given twice. It returns an error if any ID is
// malformed.
func (s *Server) readBatch(c echo.Context) (r batchRequest, invocations []ids.Invocation, err error) {
	if err := s.bodies.ReadJSON(c, &r); err != nil {
		return r, nil, err
	}
	if r.InvocationIDs == nil {
		return r, nil, rest.Unprocessable("the field 'invocation_ids' is missing")
	}
	if len(r.InvocationIDs) > maxBatch {
		return r, nil, rest.BadRequest("Batch size %d exceeds maximum allowed size of %d", len(r.InvocationIDs), maxBatch)
	}
	seen := map[ids.Invocation]bool{}
	for i, text := range r.InvocationIDs {
		id, err := ids.ParseInvocation(text)
		if err != nil {
			return r, nil, rest.Unprocessable("the field 'invocation_ids[%d]' is invalid: %v", i, err)
		}
		if !seen[id] { // it would be restarted twice
			seen[id] = true
			invocations = append(invocations, id)
		}
	}
	return r, invocations, nil
}

// batchOf executes do for each invocation, with bounded concurrency, and returns the results in the
// order of the invocations.
func batchOf[T any](s *Server, c echo.Context, invocations []ids.Invocation, do func(ids.Invocation) (T, error)) batchResult[T] {
	results, errs := make([]T, len(invocations)), make([]error, len(invocations))
	var wg sync.WaitGroup
	slots := make(chan struct{}, batchParallel)
	for i, id := range invocations {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			results[i], errs[i] = do(id)
		})
	}
	wg.Wait()
	out := batchResult[T]{Succeeded: []T{}, Failed: []batchFailure{}}
	for i, err := range errs {
		if err == nil {
			out.Succeeded = append(out.Succeeded, results[i])
			continue
		}
		f := s.explain(c.Request(), operationError(invocations[i], err))
		out.uncertain = out.uncertain || uncertain(f.Status)
		out.Failed = append(out.Failed, batchFailure{invocations[i].String(), f.Message})
	}
	return out
}
