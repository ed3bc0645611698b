package admin

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"platform/admin/openapi"
	"platform/admin/query"
	"platform/admin/rest"
	"platform/internal/ids"
	"platform/partition/listing"
	"platform/partition/machine"
)

// Statuses and results that a filter can have.
var (
	listedStatuses = []listing.Status{
		listing.Scheduled, listing.Pending, listing.Ready, listing.Running, listing.BackingOff, listing.Suspended, listing.Paused, listing.Completed,
	}
	listedResults = []listing.Result{listing.Success, listing.Failure, listing.Cancelled, listing.Killed}
)

// filterParameters describes the parameters that readFilter parses.
var filterParameters = []object{
	openapi.QueryParameter("status", "Statuses, repeated or separated by commas.", object{"type": "array", "items": object{"type": "string", "enum": statuses}}),
	openapi.QueryParameter("result", "How they have ended. cancelled: with code 409 after a cancellation was requested, or before they started.", object{"type": "array", "items": object{"type": "string", "enum": names(listedResults)}}),
	openapi.QueryParameter("service", "Names of services.", textList),
	openapi.QueryParameter("handler", "Names of handlers.", textList),
	openapi.QueryParameter("key", "Keys of objects or workflows; repeated, since keys may contain commas.", textList),
	openapi.QueryParameter("scope", "Scopes.", textList),
	openapi.QueryParameter("limit_key", "Limit keys.", textList),
	openapi.QueryParameter("idempotency_key", "Idempotency keys; repeated, since they may contain commas.", textList),
	openapi.QueryParameter("deployment", "Ids of the deployments they are pinned to.", textList),
	openapi.QueryParameter("invoked_by", "What created them.", object{"type": "array", "items": object{"type": "string", "enum": query.SourceNames}}),
	openapi.QueryParameter("error_code", "Codes of the failure that they ended with, are paused after or are retried after: codes of the catalogue such as RT0007, or numbers such as 500.", textList),
	openapi.QueryParameter("failure_group", "Id of the failure group they belong to, fg_….", object{"type": "string"}),
	timeParameter("created_after", "Created at this time or later"), timeParameter("created_before", "Created before this time"),
	timeParameter("modified_after", "Last changed their status at this time or later"), timeParameter("modified_before", "Last changed their status before this time"),
	timeParameter("completed_after", "Ended at this time or later"), timeParameter("completed_before", "Ended before this time"),
}

func timeParameter(name, meaning string) object {
	return openapi.QueryParameter(name, meaning+": RFC 3339, or milliseconds since 1970.", object{"type": "string"})
}

// singleConditions are the conditions of a filter that have one value.
var singleConditions = []string{
	"failure_group", "created_after", "created_before", "modified_after", "modified_before", "completed_after", "completed_before",
}

// readFilter parses the parameters of a filter and ignores others.
func readFilter(values url.Values) (f listing.Filter, err error) {
	for name, list := range values {
		last := list[len(list)-1]
		if len(list) > 1 && slices.Contains(singleConditions, name) {
			return f, rest.BadRequest("The query parameter '%s' must have one value, which is one of %q", name, list)
		}
		switch name {
		case "status":
			f.Statuses, err = parsed(list, oneOf("a status", listedStatuses))
		case "result":
			f.Results, err = parsed(list, oneOf("a result", listedResults))
		case "service":
			f.Services, err = parsed(list, anyText)
		case "handler":
			f.Handlers, err = parsed(list, anyText)
		case "key":
			f.Keys = list // not split at commas, which keys may contain
		case "scope":
			f.Scopes, err = parsed(list, anyText)
		case "limit_key":
			f.LimitKeys, err = parsed(list, anyText)
		case "idempotency_key":
			f.IdempotencyKeys = list
		case "deployment":
			f.Deployments, err = parsed(list, ids.ParseDeployment)
		case "invoked_by":
			f.Sources, err = parsed(list, parseSource)
		case "error_code":
			f.ErrorCodes, err = parsed(list, anyText)
		case "failure_group":
			f.Group, err = listing.ParseGroup(last)
		case "created_after":
			f.Created.From, err = parseTime(last)
		case "created_before":
			f.Created.Before, err = parseTime(last)
		case "modified_after":
			f.Modified.From, err = parseTime(last)
		case "modified_before":
			f.Modified.Before, err = parseTime(last)
		case "completed_after":
			f.Completed.From, err = parseTime(last)
		case "completed_before":
			f.Completed.Before, err = parseTime(last)
		}
		if err != nil {
			return f, rest.BadRequest("The query parameter '%s' is invalid: %v", name, err)
		}
	}
	return f, nil
}

// oneOf returns a parser for the names of the values of a list; what names them in errors.
func oneOf[T any](what string, list []T) func(string) (T, error) {
	return func(text string) (value T, err error) {
		if i := slices.Index(names(list), text); i >= 0 {
			return list[i], nil
		}
		return value, fmt.Errorf("%q is not %s; there are %s", text, what, strings.Join(names(list), " "))
	}
}

// names returns the values of a list as text.
func names[T any](list []T) []string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = fmt.Sprint(v)
	}
	return texts
}

// parseSource parses what created an invocation.
func parseSource(text string) (machine.SourceKind, error) {
	if _, err := oneOf("a source of invocations", query.SourceNames)(text); err != nil {
		return 0, err
	}
	return machine.SourceKind(slices.Index(query.SourceNames, text)), nil
}

// parseTime parses a time after 1970.
func parseTime(text string) (millis int64, err error) {
	if millis, err = strconv.ParseInt(text, 10, 64); err != nil {
		var t time.Time
		if t, err = time.Parse(time.RFC3339, text); err != nil {
			return 0, fmt.Errorf("%q is neither a time such as 2026-01-31T15:04:05Z nor a number of milliseconds since 1970", text)
		}
		millis = t.UnixMilli()
	}
	if millis <= 0 {
		return 0, fmt.Errorf("%q is before 1970", text)
	}
	return millis, nil
}
