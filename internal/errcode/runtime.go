package errcode

import "net/http"

// Codes of the running server: configuration, storage, and attempts to run an
// invocation.
const (
	RT0001 Code = "RT0001" // abort timeout, or more memory than allowed
	RT0002 Code = "RT0002" // configuration cannot be parsed
	RT0003 Code = "RT0003" // message over the size limit
	RT0004 Code = "RT0004" // cannot bind an address
	RT0005 Code = "RT0005" // storage locked by another process
	RT0006 Code = "RT0006" // generic invocation error
	RT0007 Code = "RT0007" // retryable error of the handler
	RT0009 Code = "RT0009" // storage lacks its format version
	RT0010 Code = "RT0010" // network error to the endpoint
	RT0011 Code = "RT0011" // no deployment for the service
	RT0012 Code = "RT0012" // protocol violation
	RT0013 Code = "RT0013" // no supported protocol version
	RT0014 Code = "RT0014" // in-flight protocol version incompatible
	RT0015 Code = "RT0015" // protocol version dropped by the SDK
	RT0016 Code = "RT0016" // journal mismatch
	RT0017 Code = "RT0017" // failed precondition of an entry
	RT0018 Code = "RT0018" // call target does not exist
	RT0019 Code = "RT0019" // endpoint responded with Content Too Large
	RT0020 Code = "RT0020" // deprecated protocol version
	RT0021 Code = "RT0021" // inactivity timeout has no effect
	RT0022 Code = "RT0022" // journal retention clamped
	RT0023 Code = "RT0023" // endpoint overloaded
	RT0024 Code = "RT0024" // invalid use of flow control
	RT0025 Code = "RT0025" // awaited futures nested too deeply
	RT0026 Code = "RT0026" // memory or connections for requests exhausted
	RT0027 Code = "RT0027" // state of an object too large
)

var runtimeEntries = []Entry{
	{
		Code: RT0001, HTTPStatus: http.StatusInternalServerError,
		Title:   "Attempt aborted: timeout or memory limit",
		Meaning: "Either the endpoint was asked to finish or suspend the invocation and sent nothing for the abort timeout (worker.invoker.abort-timeout, or abort_timeout of the service), so the server closed the stream; or the attempt needed more memory for its payloads than an attempt may use (worker.invoker.per-invocation-memory-limit). The message names the cause.",
		Remedy:  "The invocation is retried. If the handler legitimately computes for longer without sending anything, raise the abort timeout; otherwise check whether the handler is stuck. For a memory limit, raise it, or split the work into invocations with shorter journals and smaller state.",
	},
	{
		Code: RT0002, HTTPStatus: http.StatusInternalServerError,
		Title:   "Configuration cannot be read",
		Meaning: "A key is unknown, a value is not of the expected kind, or the configuration file is not valid TOML. The message names the source and the key.",
		Remedy:  "Correct the named key. platform-server --dump-config prints the configuration in effect, with every key and its default.",
	},
	{
		Code: RT0003, HTTPStatus: http.StatusInternalServerError,
		Title:   "Message too large",
		Meaning: "The service sent a message larger than worker.invoker.message-size-limit, a call whose idempotency key and other names are larger than 3 MiB, or a key of an object, of state or of a promise, or a name of a signal, of more than 64 KiB.",
		Remedy:  "Raise worker.invoker.message-size-limit, or keep large payloads elsewhere and pass references to them. The limits of keys and names are fixed: use, for example, a hash of a longer one.",
	},
	{
		Code: RT0004, HTTPStatus: http.StatusInternalServerError,
		Title:   "Cannot listen on the address",
		Meaning: "The configured address or port could not be bound, most often because another process listens there or the address is not one of this machine.",
		Remedy:  "Stop the other process, or change bind-ip, bind-port or bind-address of the named listener. --use-random-ports takes free ports.",
	},
	{
		Code: RT0005, HTTPStatus: http.StatusInternalServerError,
		Title:   "Storage is locked",
		Meaning: "Another process has the storage directory open, most often a second server with the same base directory and node name.",
		Remedy:  "Stop the other process, or give this server another base-dir or node-name.",
	},
	{
		Code: RT0006, HTTPStatus: http.StatusInternalServerError,
		Title:   "Invocation attempt failed",
		Meaning: "The attempt failed for a reason without a code of its own, for example because the journal or the state could not be read.",
		Remedy:  "The invocation is retried. Read the message, and the server's log around the time of the failure.",
	},
	{
		Code: RT0007, HTTPStatus: http.StatusInternalServerError,
		Title:   "Handler failed, will be retried",
		Meaning: "The handler ended with an error that is not terminal. The next attempt replays the recorded steps and continues from there.",
		Remedy:  "Fix the cause named in the message. If retrying makes no sense, let the handler throw a terminal error instead.",
	},
	{
		Code: RT0009, HTTPStatus: http.StatusInternalServerError,
		Title:   "Storage lacks its format version",
		Meaning: "The storage directory holds data but does not state its format. It is damaged, or older than any format that this version supports.",
		Remedy:  "Restore the directory from a backup or a snapshot, or start with an empty directory.",
	},
	{
		Code: RT0010, HTTPStatus: http.StatusInternalServerError,
		Title:   "Network error to the service endpoint",
		Meaning: "The connection to the endpoint failed: the endpoint is down, unreachable or blocked, or its address has changed.",
		Remedy:  "The invocation is retried. Check that the endpoint of the deployment runs and that this server can reach its address.",
	},
	{
		Code: RT0011, HTTPStatus: http.StatusInternalServerError,
		Title:   "No deployment for the service",
		Meaning: "The deployment that should run the invocation is not registered, most often because it was removed before the invocation started or finished.",
		Remedy:  "Register the service again. Invocations pinned to the removed deployment can be resumed on another one, or killed.",
	},
	{
		Code: RT0012, HTTPStatus: http.StatusInternalServerError,
		Title:   "Protocol violation",
		Meaning: "The endpoint violated the service protocol: an unexpected status, content type or message, or one that cannot be decoded.",
		Remedy:  "If the message contains an HTTP status, read the log of the endpoint, or of a proxy in front of it, from the time of the failure: they sent that response. Otherwise check that the SDK version is compatible with the server and that no proxy alters the traffic; if so, it is a defect in the SDK or the server: report it.",
	},
	{
		Code: RT0013, HTTPStatus: http.StatusInternalServerError,
		Title:   "No supported service protocol version",
		Meaning: "None of the protocol versions of the deployment is supported by this server.",
		Remedy:  "Upgrade the older side, and register the service as a new deployment.",
	},
	{
		Code: RT0014, HTTPStatus: http.StatusInternalServerError,
		Title:   "Invocation started with an incompatible protocol version",
		Meaning: "An invocation keeps the protocol version it started with, and this server no longer supports that version.",
		Remedy:  "Run the invocation to its end on a server that still supports the version, or kill it.",
	},
	{
		Code: RT0015, HTTPStatus: http.StatusInternalServerError,
		Title:   "Protocol version dropped by the service",
		Meaning: "The invocation is pinned to a protocol version that the endpoint announced earlier and no longer offers: the code behind a registered address was replaced.",
		Remedy:  "Restore the previous version at its address until its invocations have ended, and register the new code as a new deployment at a new address.",
	},
	{
		Code: RT0016, HTTPStatus: http.StatusInternalServerError,
		Title:   "Journal mismatch",
		Meaning: "On replay the handler executed other steps than those in the journal. Either its code changed under a registered address, or processes with different code share the address, for example behind a load balancer during an update, or it is not deterministic: it depends on time, randomness or outside data without recording them.",
		Remedy:  "Record outside data and randomness in durable steps. Register changed code as a new deployment at an address of its own. To rescue this invocation, register code that executes the recorded steps and resume it there (`platform invocations resume <id> --deployment latest`, or the id of a deployment), or kill it.",
	},
	{
		Code: RT0017, HTTPStatus: http.StatusInternalServerError,
		Title:   "Step refused",
		Meaning: "A precondition of the step does not hold, for example a key for a plain service, an empty idempotency key, or writing state in a shared handler. The step and those after it are discarded, and the invocation is retried from the last recorded step.",
		Remedy:  "Correct the call in the handler that the message names, and deploy.",
	},
	{
		Code: RT0018, HTTPStatus: http.StatusInternalServerError,
		Title:   "Call target does not exist",
		Meaning: "The handler called a service or handler that is not registered. Right after a registration this resolves itself once all nodes have received it.",
		Remedy:  "Register the service that is called, or correct its name in the calling handler.",
	},
	{
		Code: RT0019, HTTPStatus: http.StatusInternalServerError,
		Title:   "Request too large for the endpoint",
		Meaning: "The endpoint or a proxy in front of it responded with 413 Content Too Large. Hosting platforms often limit the size of requests.",
		Remedy:  "Raise the limit there, reduce the size of state and payloads, or enable lazy state so that state is sent only when it is read.",
	},
	{
		Code: RT0020, HTTPStatus: http.StatusBadRequest,
		Title:   "Deployment uses a deprecated protocol version",
		Meaning: "The service is served by a deployment whose protocol version the server no longer accepts for new requests.",
		Remedy:  "Upgrade the SDK of the service and register it as a new deployment.",
	},
	{
		Code: RT0021, HTTPStatus: http.StatusOK,
		Title:   "Inactivity timeout has no effect",
		Meaning: "The deployment runs in request-response mode (function platform or HTTP/1.1), where an attempt ends as soon as it has to wait.",
		Remedy:  "Nothing needs to be done; remove the setting to silence the notice.",
	},
	{
		Code: RT0022, HTTPStatus: http.StatusOK,
		Title:   "Journal retention shortened",
		Meaning: "The journal retention that the service requests is longer than the server's maximum (max-journal-retention), which is used instead.",
		Remedy:  "Reduce the retention of the service, or raise the maximum of the server.",
	},
	{
		Code: RT0023, HTTPStatus: http.StatusServiceUnavailable,
		Title:   "Endpoint is overloaded",
		Meaning: "The deployment or a proxy in front of it responded with 429 Too Many Requests or 503 Service Unavailable. The next attempt starts after the time in the Retry-After header.",
		Remedy:  "Give the endpoint more capacity, or lower worker.invoker.concurrent-invocations-limit.",
	},
	{
		Code: RT0024, HTTPStatus: http.StatusBadRequest,
		Title:   "Invalid use of flow control",
		Meaning: "A scope or limit key was used while flow control is off, a limit key was given without a scope, or one of them is malformed. A scope has 1 to 36 characters of A-Z a-z 0-9 _ . -; a limit key is one such part, or two joined by a slash.",
		Remedy:  "Correct the scope or the limit key as the message says. If flow control is off, call without them, or enable it on a fresh cluster: experimental-enable-vqueues = true and experimental-enable-protocol-v7 = true in the configuration of all nodes.",
	},
	{
		Code: RT0025, HTTPStatus: http.StatusInternalServerError,
		Title:   "Awaited futures nested too deeply",
		Meaning: "The invocation awaits a combination of futures nested deeper than worker.invoker.max-awaited-future-depth. It was paused, since a retry would fail in the same way.",
		Remedy:  "Flatten the combination in the handler or raise the limit, then resume the invocation.",
	},
	{
		Code: RT0026, HTTPStatus: http.StatusServiceUnavailable,
		Title:   "No memory for the request",
		Meaning: "The bodies of the requests in progress, on this connection or on the whole node, use all the memory reserved for them (networking.body-memory-limit, networking.connection-body-memory-limit), or the client's address or the port has too many connections open (connections-per-address-limit). The request had no effect, or, if the response contains the id of an invocation, that invocation has ended and its result is kept.",
		Remedy:  "Repeat the request after the time in the retry-after header, or read the result with /platform/attach/{id}. Send fewer large bodies concurrently, or raise the limit. If the address is that of a proxy, add it to trusted-proxies.",
	},
	{
		Code: RT0027, HTTPStatus: http.StatusRequestEntityTooLarge,
		Title:   "State of an object is too large",
		Meaning: "The state of an object or workflow would be larger than worker.invoker.object-state-size-limit: its keys and values, and 64 bytes for each entry. The command is not stored. The invocation was paused, since a retry would fail in the same way; a replacement of the state by an operator gets status 413. Commands that do not make the state larger are accepted, also above the limit.",
		Remedy:  "Remove state that is no longer needed, distribute it over several objects, or raise the limit on all nodes, then resume the invocation.",
	},
}
