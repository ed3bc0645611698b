package main

// allReads has a line for each read: what it shows and its path, separated by a tab.
const allReads = `
invocations	/invocations?limit=100
second page	/invocations?limit=100&cursor={second}
31st page	/invocations?limit=100&cursor={later}
oldest first	/invocations?limit=100&oldest_first=true
by last change	/invocations?limit=100&sort=modified
completed	/invocations?limit=100&status=completed
suspended	/invocations?limit=100&status=suspended
held up	/invocations?limit=100&status=pending&status=backing-off&status=paused&oldest_first=true
failed	/invocations?limit=100&result=failure
of a rare service	/invocations?limit=100&service=Rare
of a handler	/invocations?limit=100&service=Orders&handler=reject
of a key	/invocations?limit=100&service=Account&key=a17
of a scope	/invocations?limit=100&scope=tenant-3
of an error code	/invocations?limit=100&error_code=409
none	/invocations?limit=100&idempotency_key=none
of the last hour	/invocations?limit=100&created_after={hour}
of a deployment	/invocations?limit=100&deployment={deployment}
counts	/invocations/counts
counts of a service	/invocations/counts?service=Orders&created_after={hour}
counts of a deployment	/invocations/counts?deployment={deployment}
failures	/failures?limit=50&muted=false
failure group	/failures/{group}
its members	/invocations?failure_group={group}&limit=50
invocation	{completed}
journal	{completed}/journal?from=0&limit=500
events	{flaky}/events
why, suspended	{suspended}/explain
why, failing	{flaky}/explain
why, held by a limit	{held}/explain
objects	/objects?service=Account&limit=100
objects by prefix	/objects?service=Account&limit=100&prefix=a19
object	/objects/Account/a17
state	/services/Account/state?object_key=a17
services	/services
service	/services/Orders
deployments	/deployments
deployment	/deployments/{deployment}
charts of an hour	/stats?range=1h&step=30s
charts of 3 hours	/stats?range=3h&step=60s
rules	/limits/rules
counters	/limits/counters?limit=100
queues	/vqueues?limit=100
cluster health	/cluster-health
nodes	/cluster/nodes
partitions	/cluster/partitions
cluster events	/cluster/events?limit=300
cluster settings	/cluster/config
jobs	/jobs
subscriptions	/subscriptions
Kafka clusters	/kafka-clusters
SQL tables	/query/tables
version	/version
own access	/whoami
UI	/ui/
`
