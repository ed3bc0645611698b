package query

import (
	"slices"

	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
)

// awaitColumns describe what a suspended invocation waits for.
var awaitColumns = []column[row]{
	of("suspended_waiting_for_completions", U32List, "completion ids awaited (deprecated)", func(inv *machine.Invocation) value {
		return awaited(inv, func(f *journal.Future) []uint32 { return f.Completions })
	}),
	of("suspended_waiting_for_signals", U32List, "signal indexes awaited (deprecated)", func(inv *machine.Invocation) value {
		return awaited(inv, func(f *journal.Future) []uint32 { return f.Signals })
	}),
	of("suspended_waiting_future_json", Text, "tree of futures awaited while suspended", func(inv *machine.Invocation) value {
		if inv.Status != machine.Suspended {
			return nil
		}
		return futureJSON(inv.Await)
	}),
}

// awaited returns the leaves of one kind in the tree of futures that a suspended invocation awaits.
func awaited(inv *machine.Invocation, leaves func(*journal.Future) []uint32) value {
	if inv.Status != machine.Suspended || inv.Await == nil {
		return nil
	}
	var all []uint32
	var collect func(f *journal.Future)
	collect = func(f *journal.Future) {
		all = append(all, leaves(f)...)
		for i := range f.Nested {
			collect(&f.Nested[i])
		}
	}
	collect(inv.Await)
	slices.Sort(all)
	return listJSON(slices.Compact(all))
}

// live returns a column with data of attempts that only the leader has.
func live(name string, typ Type, about string, value func(*attempts.Status) value) column[row] {
	return column[row]{name: name, typ: typ, about: about, value: func(r *row) any {
		if r.Record.Attempts == nil {
			return nil
		}
		return value(r.Record.Attempts)
	}}
}

// failed returns a column with data of the last failure.
func failed(name string, typ Type, about string, value func(*machine.AttemptFailure) value) column[row] {
	return column[row]{name: name, typ: typ, about: about, heavy: true, value: func(r *row) any {
		f := lastFailure(r.Record)
		if f == nil {
			return nil
		}
		return value(f)
	}}
}

var (
	inFlightColumn = live("in_flight", Bool, "an attempt is open now", func(a *attempts.Status) value { return boolean(a.InFlight) })
	retryColumn    = live("retry_count", U64, "attempts since it started, or since it continued after a suspension or a pause (more than 1: failed before)", func(a *attempts.Status) value {
		return number(a.Started())
	})
	lastStartColumn  = live("last_start_at", Timestamp, "start of the latest attempt", func(a *attempts.Status) value { return moment(a.LastStartAt) })
	nextRetryColumn  = live("next_retry_at", Timestamp, "planned next attempt", func(a *attempts.Status) value { return moment(a.NextRetryAt) })
	deploymentColumn = live("last_attempt_deployment_id", Text, "deployment of the latest attempt", func(a *attempts.Status) value { return text(string(a.Deployment)) })
	serverColumn     = live("last_attempt_server", Text, "SDK name and version of the latest attempt", func(a *attempts.Status) value { return text(a.Server) })
	noResponseColumn = live("no_response_since", Timestamp, "when the open attempt was sent, if its response headers are overdue", func(a *attempts.Status) value { return moment(a.NoResponseSince) })
	throttledColumn  = live("throttled_since", Timestamp, "from when throttling of the node delays it: invocation-throttling before an attempt, action-throttling while one is open", func(a *attempts.Status) value { return moment(a.ThrottledSince) })
	activeColumn     = live("last_active_at", Timestamp, "when something was last sent to or received from the endpoint of the open attempt", func(a *attempts.Status) value { return moment(a.ActiveAt) })
	suspendColumn    = live("suspend_at", Timestamp, "when the open attempt is asked to suspend if its endpoint sends nothing: inactivity timeout", func(a *attempts.Status) value { return moment(a.SuspendAt) })
	abortColumn      = live("abort_at", Timestamp, "when the open attempt is aborted if its endpoint sends nothing: abort timeout", func(a *attempts.Status) value { return moment(a.AbortAt) })
	awaitingColumn   = live("last_awaiting_on_future_json", Text, "future tree last reported while running", func(a *attempts.Status) value {
		if a.Awaiting == nil || a.Awaiting.On == nil {
			return nil
		}
		return futureJSON(a.Awaiting.On)
	})

	failureColumn = failed("last_failure", Text, "text of the latest failure with stack trace", func(f *machine.AttemptFailure) value {
		return FailureText(f.Code, f.Message, f.Stacktrace, nil)
	})
	failureCodeColumn = failed("last_failure_error_code", Text, "catalogue code, such as RT0007", func(f *machine.AttemptFailure) value { return text(f.ErrorCode) })
)

func noValue(*machine.AttemptFailure) value { return nil }

// relatedEntryColumns belong to protocols that are no longer supported.
var relatedEntryColumns = []column[row]{
	failed("last_failure_related_entry_index", U64, "deprecated, protocol 3 and below", noValue),
	failed("last_failure_related_entry_name", Text, "deprecated", noValue),
	failed("last_failure_related_entry_type", Text, "deprecated", noValue),
}

var relatedCommandColumns = []column[row]{
	failed("last_failure_related_command_index", U64, "index of the failing command", func(f *machine.AttemptFailure) value {
		if f.RelatedIndex == nil {
			return nil
		}
		return number(*f.RelatedIndex)
	}),
	failed("last_failure_related_command_name", Text, "its name as given by the user", func(f *machine.AttemptFailure) value { return text(f.RelatedName) }),
	failed("last_failure_related_command_type", Text, "its type, such as Run", func(f *machine.AttemptFailure) value {
		if f.RelatedCommand == 0 {
			return nil
		}
		return f.RelatedCommand.Name()
	}),
}
