package feature

// Kind classifies a change.
type Kind string

// The kinds of changes.
const (
	LogCommand   Kind = "log command"   // a new command in a partition's or the metadata log
	CommandField Kind = "command field" // a new field of a log command
	RecordField  Kind = "record field"  // a new field or table in stored state and snapshots
	RPC          Kind = "rpc"           // a new request, or a field that an older node would misread
	Derivation   Kind = "derivation"    // the same bytes have another meaning, such as IDs derived from other input
)

// Change is a change of formats that a level introduces.
type Change struct {
	Level       Level
	Kind        Kind
	Name        string // as in the protocol files, such as "Lead.flow"
	Description string // one line, for operators
}

// changes lists the changes of all levels, in ascending order of levels.
// Rows are only added, and only to a level that was not released yet.
var changes = []Change{
	{Level1, LogCommand, "first release", "all formats of the first release"},

	{Level2, LogCommand, "SetFeatureLevel", "the metadata log raises the cluster's feature level"},
	{Level2, RecordField, "Cluster.feature_level", "the metadata has the cluster's feature level, in state files of format 4"},
	{Level2, RecordField, "Node.feature_level", "the metadata has the level that each node supports, and rejects nodes below the cluster's level"},
	{Level2, RecordField, "Meta.level", "each partition stores the highest feature level of its log"},
	{Level2, LogCommand, "Digest", "leaders compare the tables of the replicas of a partition"},
	{Level2, Derivation, "replica server ids", "a rebuilt replica has a new Raft server id"},
	{Level2, RPC, "NodeCluster.Digest", "leaders request digests of the tables of replicas"},
	{Level2, Derivation, "ids of keys with commas", "keys of objects and workflows and idempotency keys that contain a comma have distinct ids"},
	{Level2, CommandField, "Attach.legacy", "an attach finds invocations whose ids were derived by the first release"},
	{Level2, RPC, "PartitionOutcome.id", "the leader returns the actual id of an invocation if it differs from the requested one"},
	{Level2, Derivation, "retention below a minute", "results with an idempotency key and of workflows expire exactly after their retention, even if it is below a minute"},
	{Level2, RecordField, "Invocation.pausing", "a pause lets the open attempt store its current step"},
	{Level2, CommandField, "Step.kind yield", "an attempt ends because of a requested pause"},
	{Level2, RecordField, "Timer.kind 5 and 6", "a result with many waiting invocations is delivered in batches, driven by timers"},

	{Level3, RecordField, "Invocation.last_pause", "the record of an invocation stores who paused it last, when and why, and when it was resumed"},
	{Level3, RecordField, "Invocation.cancel_requested_at", "the record of an invocation stores when its cancellation was requested"},
	{Level3, CommandField, "Pause.by", "a pause records who requested it"},
	{Level3, CommandField, "Step.unretryable", "an attempt records that it paused because of a failure that is not retried"},

	{Level4, CommandField, "Pause.reason", "a pause of an invocation stores the operator's reason"},
	{Level4, RecordField, "PauseRecord.reason", "the record of an invocation stores the reason of its last pause"},
	{Level4, CommandField, "Step.attempts", "an attempt that pauses its invocation records how many have failed"},
	{Level4, RecordField, "PauseRecord.attempts", "the record of an invocation stores how many attempts had failed before its last pause"},
	{Level4, CommandField, "Pause.repin", "an invocation that waits for its next attempt continues on another deployment, which is one event of its history"},
	{Level4, CommandField, "PauseQueue.by and reason", "a pause of a vqueue records who requested it and why"},
	{Level4, RecordField, "VQueue.pause", "the record of a paused vqueue stores who paused it, when and why"},
	{Level4, Derivation, "PauseQueue without a service", "an operator pauses all vqueues of a scope"},
	{Level4, RecordField, "Counter.pause", "the counter of a paused scope stores who paused it, when and why"},
	{Level4, Derivation, "size of failures with metadata", "the metadata of a failure counts as part of a result that many wait for"},
	{Level4, Derivation, "cancel before the pause of a last attempt", "an invocation that was cancelled while its last attempt failed runs once more instead of pausing"},
	{Level4, Derivation, "waiters for a promise", "a promise has at most 10,000 waiters, like the result of an invocation"},
	{Level4, Derivation, "message of a second workflow run", "the result of a call of a workflow that already ran says that its key was used before"},
	{Level4, Derivation, "call of oneself", "a handler that calls itself with its own idempotency key gets a failure instead of waiting forever"},
	{Level4, RecordField, "Timer.kind 7 and 8", "a kill of thousands of invocations, and thousands of state updates, are applied in batches, driven by timers"},
	{Level4, Derivation, "waiters that have ended", "the waiters for a result that have ended are removed only if they are an eighth of the list"},
	{Level4, Derivation, "kill of an invocation with a long journal", "a kill reads a long journal in batches, driven by timers, and pauses the invocation meanwhile"},
	{Level4, RecordField, "Timer.kind 9", "the sleeps that are pending when an invocation ends are deleted in batches, driven by timers"},
	{Level4, RecordField, "Timer.kind 10 and Meta.reevaluation", "a change of the rules is applied to the waiting invocations in batches, driven by timers"},
	{Level4, Derivation, "queues that cannot use a slot", "an entry of the log removes a bounded number of queues and counters from their rings"},
	{Level4, Derivation, "purge of a workflow with many waiters", "the waiters for the promises of a workflow that is purged fail in batches, driven by timers"},
	{Level4, CommandField, "Step.kind retry", "an attempt that failed and is retried records its failure"},
	{Level4, RecordField, "Event and Invocation.history", "failed attempts, pauses and requests to cancel of an invocation are kept with its journal"},
	{Level4, Derivation, "suspension after a long attempt", "a handler that suspends on repeated signals after it has stored very much runs once more instead of having all of that read"},
	{Level4, RecordField, "Invocation.await_reduced", "what a suspended invocation waits for is stored without what has arrived, even if it was signalled"},
	{Level4, Derivation, "suspensions on very many results", "an entry of the log looks up a bounded number of awaited results; further handlers that suspend or wait run once more"},
	{Level4, CommandField, "Step.cause", "an attempt that failed records the cause of its failure"},
	{Level4, RecordField, "Invocation.causes", "the record of an invocation stores when failures of the same cause first occurred"},
	{Level4, RecordField, "Invocation.signal_bytes", "the signals and awakeables in the journal of an invocation are bounded to 256 MiB, of which each counts at least 4 KiB"},
	{Level4, RecordField, "Invocation.result_in_journal", "results of 4 KiB and more are stored once, in the journal, instead of also in the record of the invocation"},
	{Level4, CommandField, "Lead.recovered", "a leader that was recovered without all data skips the sequence numbers that it may have used"},
	{Level4, LogCommand, "CreateJob, AdvanceJob and StopJob", "the metadata has jobs: operations on many invocations"},
	{Level4, LogCommand, "CreateToken, RevokeToken and UseTokens", "the metadata has the tokens of clients of the HTTP ports"},
	{Level4, RecordField, "Token.session", "the metadata has the sessions of users of an identity provider, several with one name"},
	{Level4, CommandField, "PutRules.renew", "after a recovery of the cluster, the rules of flow control get a version above all that were lost"},
	{Level4, CommandField, "Entry.action", "an entry of the metadata contains who requested it, for the audit log"},
	{Level4, CommandField, "Options.ingress_auth", "an operator sets what callers of a service must present"},
	{Level4, RecordField, "Service.declared", "a service whose options an operator has changed also has those that its code announced"},
	{Level4, CommandField, "Options.forward_headers", "an operator sets which credentials of callers the handlers of a service get"},
	{Level4, RecordField, "KeptOptions", "what an operator has set for the callers of a service is kept when its last deployment is deleted"},
	{Level4, LogCommand, "RecordAction", "the metadata has the audit log of actions that do not change it"},
	{Level4, RecordField, "AuditRecord and AuditNode", "the audit log keeps 20,000 records or 64 MiB, the oldest of the principal with the most are deleted"},
	{Level4, LogCommand, "MarkFailure", "the metadata has marks of failure groups: muted, and notes of operators"},
	{Level4, LogCommand, "PutSubscription and PutKafkaCluster", "the metadata has event subscriptions and the Kafka clusters that they read"},
	{Level4, LogCommand, "Barrier", "a node confirms that its view of the metadata is current before it deletes what depends on it"},
	{Level4, RPC, "NodeCluster.Subscriptions and StreamRecord", "nodes report the state of the event streams that they read, and retry, skip or drop records"},
	{Level4, RPC, "NodeCluster.LogLevels", "nodes return their log levels and change them"},
	{Level4, RPC, "NodeCluster.Events", "nodes return the changes of the cluster that they have observed"},
	{Level4, RPC, "NodeCluster.Stats", "nodes return their time series of invocations"},
	{Level4, RPC, "PartitionRequest.list", "nodes request lists, counts and failure groups of invocations from the leader of a partition"},
	{Level4, LogCommand, "Ingest, PutPosition and ForgetStreams", "partitions store invocations made from records of event streams, each once, and how far the streams were read"},
	{Level4, LogCommand, "SetAside and DropDeadLetters", "partitions keep records of event streams that cannot be delivered, until an operator retries or drops them"},
	{Level4, RPC, "NodeCluster.DeadLetters", "nodes list the records of event streams that are set aside"},
	{Level4, RPC, "PartitionRequest.ingest", "the node that reads an event stream hands records over to the leaders of partitions"},
	{Level4, RecordField, "Pair.value encrypted", "secrets in the metadata can be encrypted, with a key that is not part of it"},
	{Level4, LogCommand, "ReplaceSecrets", "secrets in the metadata are encrypted with another key"},
	{Level4, LogCommand, "PutAuthority", "the metadata has the authority that issues the certificates of nodes, its key encrypted"},
	{Level4, LogCommand, "CreateJoinToken, UseJoinToken and RevokeJoinToken", "the metadata has tokens with which new nodes get a certificate, each once"},
	{Level4, RPC, "NodeCluster.Certify", "nodes renew their certificates"},
	{Level4, CommandField, "Trace.baggage", "invocations store the baggage of their caller, for their attempts and calls; below this level it is left out"},
	{Level4, RecordField, "Invocation.trace.baggage", "the record of an invocation stores the baggage of its caller"},
	{Level4, CommandField, "RegisterDeployment.limit", "a new deployment is refused if there are as many as admin.deployments-limit"},
	{Level4, CommandField, "UpdateDeployment.expected", "an update of a deployment is refused if another request has changed its address or headers meanwhile"},
	{Level4, Derivation, "ids of requests with idempotency keys", "the idempotency keys of a caller with credentials are its own"},
	{Level4, CommandField, "Invoke.fresh", "the leader records that the id of an invocation is new, so that replicas need not look it up"},
	{Level4, RPC, "Invoke.since and PartitionResponse.moment", "nodes tell the leader what it had proposed before they chose the id of an invocation"},
	{Level4, Derivation, "Deliver without messages", "a partition that has lost data in a recovery accepts later messages of other partitions"},
	{Level4, CommandField, "Progress.failed", "an attempt that failed reports how many have failed so far"},
	{Level4, RecordField, "Invocation.failed", "the record of an invocation counts its failed attempts, and a new leader continues counting"},
	{Level4, Derivation, "waits of invocations that have ended", "the record of an invocation with a scope that has ended keeps how long its latest attempt waited"},
}

// Changes returns the changes of all levels, in ascending order of levels. The slice is
// shared.
func Changes() []Change { return changes }
