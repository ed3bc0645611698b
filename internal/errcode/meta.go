package errcode

import "net/http"

// Codes of the metadata: deployments, services, subscriptions, and their storage.
const (
	META0003 Code = "META0003" // endpoint unreachable during discovery
	META0004 Code = "META0004" // address belongs to an existing deployment
	META0005 Code = "META0005" // metadata cannot be propagated
	META0006 Code = "META0006" // service type differs from the previous revision
	META0009 Code = "META0009" // invalid subscription
	META0010 Code = "META0010" // metadata storage of an incompatible version
	META0011 Code = "META0011" // metadata storage lacks its version
	META0012 Code = "META0012" // no common service protocol version
	META0013 Code = "META0013" // bad discovery response
	META0014 Code = "META0014" // discovery response in HTTP/1.1
	META0015 Code = "META0015" // bidirectional mode over a transport without it
	META0016 Code = "META0016" // deployment update is not compatible
	META0017 Code = "META0017" // several deployments share the address
	META0018 Code = "META0018" // feature level of the cluster is not supported
	META0019 Code = "META0019" // the change would leave a cluster that tolerates no node loss
	META0020 Code = "META0020" // a stored secret cannot be decrypted
	META0021 Code = "META0021" // too many deployments, or services of one
	META0022 Code = "META0022" // address that the server does not connect to
)

var metaEntries = []Entry{
	{
		Code: META0003, HTTPStatus: http.StatusBadGateway,
		Title:   "Service endpoint cannot be reached",
		Meaning: "The discovery request to the endpoint failed: the connection failed, the name did not resolve, or the status was not a success.",
		Remedy:  "Check that the address is right and that the endpoint is running and reachable from where the server runs (inside a container, localhost is the container). If the endpoint requires authentication, register it with additional_headers (in the command line client: --extra-header). If it verifies signatures, its key must be the public key that the server logs at start.",
	},
	{
		Code: META0004, HTTPStatus: http.StatusConflict,
		Title:   "Address already registered",
		Meaning: "Another deployment has this URI or ARN. Deployments are immutable and their addresses unique, so that an invocation in flight always continues on the code it started with.",
		Remedy:  "Deploy the new version under a new address and register that. During development, register with force to replace the existing deployment; invocations in flight may then be unable to continue.",
	},
	{
		Code: META0005, HTTPStatus: http.StatusInternalServerError,
		Title:   "Service metadata cannot be propagated",
		Meaning: "The information about a deployment or service could not be applied by the server: a name is reserved, or, at start-up, the stored metadata is damaged.",
		Remedy:  "Rename a service whose name is reserved. If this appears at start-up, recreate the metadata by registering the deployments again in their original order.",
	},
	{
		Code: META0006, HTTPStatus: http.StatusConflict,
		Title:   "Service type changed",
		Meaning: "A new revision of a service must be of the same type (service, virtual object, workflow) as the revision before it.",
		Remedy:  "Give the changed service another name, or register with breaking when nothing in flight depends on the old type.",
	},
	{
		Code: META0009, HTTPStatus: http.StatusBadRequest,
		Title:   "Invalid subscription",
		Meaning: "A part of an event subscription or of a Kafka cluster is invalid: the source or the sink is malformed, its cluster, service or handler does not exist, a property or a setting is unknown or has an invalid value, or the brokers do not know the topic.",
		Remedy:  "Correct what the message names. The source is kafka://<cluster>/<topic>, the sink service://<service>/<handler>; both the cluster (`platform kafka-clusters create`) and the service must exist, and with --check the brokers must respond.",
	},
	{
		Code: META0010, HTTPStatus: http.StatusInternalServerError,
		Title:   "Metadata storage of an incompatible version",
		Meaning: "The metadata directory was written by a server version whose format this version cannot read.",
		Remedy:  "Start the version that wrote the directory and upgrade in the documented steps, or use an empty directory and register the deployments again.",
	},
	{
		Code: META0011, HTTPStatus: http.StatusInternalServerError,
		Title:   "Metadata storage lacks its version",
		Meaning: "The metadata directory is not empty but does not state its format. It is damaged, or older than any format that this version supports.",
		Remedy:  "Restore the directory from a backup, or use an empty directory and register the deployments again.",
	},
	{
		Code: META0012, HTTPStatus: http.StatusBadRequest,
		Title:   "No common service protocol version",
		Meaning: "The service protocol versions that the endpoint announced and those that the server speaks do not overlap.",
		Remedy:  "Upgrade the older side: the SDK of the service, or the server.",
	},
	{
		Code: META0013, HTTPStatus: http.StatusBadGateway,
		Title:   "Bad discovery response",
		Meaning: "The response of the endpoint to the discovery request is not a valid manifest.",
		Remedy:  "Check that the address leads to an SDK endpoint and not to another HTTP server, including the path it is mounted on, and that the SDK version is compatible with the server.",
	},
	{
		Code: META0014, HTTPStatus: http.StatusBadGateway,
		Title:   "Endpoint seems to speak HTTP/1.1",
		Meaning: "Discovery uses HTTP/2 with prior knowledge, and the response looks like HTTP/1.1. Development servers of function platforms often support only HTTP/1.1.",
		Remedy:  "Register with use_http_11 (in the command line client: --use-http1.1). Production endpoints should support HTTP/2.",
	},
	{
		Code: META0015, HTTPStatus: http.StatusBadGateway,
		Title:   "Bidirectional mode is not possible here",
		Meaning: "The endpoint announced bidirectional streaming, but it was discovered over a transport that cannot stream both ways, such as a function platform or HTTP/1.1.",
		Remedy:  "Configure the SDK for request-response mode, or serve the endpoint over HTTP/2.",
	},
	{
		Code: META0016, HTTPStatus: http.StatusBadRequest,
		Title:   "Deployment update is not compatible",
		Meaning: "A deployment can be updated in place only if all its services and handlers still exist, every service keeps its type, and the supported protocol versions are exactly the same.",
		Remedy:  "Restore the missing services and handlers, or register the code as a new deployment, or update with overwrite when nothing in flight depends on the old code.",
	},
	{
		Code: META0017, HTTPStatus: http.StatusConflict,
		Title:   "Several deployments share this address",
		Meaning: "A forced registration must know which deployment to replace, but two or more have this URI or ARN.",
		Remedy:  "Delete the deployments that are no longer wanted (DELETE /deployments/{deployment_id}) until one remains, then register again.",
	},
	{
		Code: META0018, HTTPStatus: http.StatusConflict,
		Title:   "Feature level is not supported",
		Meaning: "The cluster has been raised to a feature level that this server does not support, because the server is older than the others. It could not read what they write, so it does not start or join. A downgrade is possible only until the level rises.",
		Remedy:  "Install the server version that the other nodes run (`platform cluster status` shows it) and start the node again. The process ended with exit status 3; nothing in its data directory was changed.",
	},
	{
		Code: META0019, HTTPStatus: http.StatusConflict,
		Title:   "No node failure would be survived",
		Meaning: "Partitions and the metadata are available while a majority of their replicas is. After this change the failure of a single node would make some of them unavailable: with one or two replicas, each replica is needed. An even number of replicas survives no more failures than the odd number below it.",
		Remedy:  "Keep three nodes that are not drained and replication 3 (5 on five nodes to survive two failures), and add a node before removing one.",
	},
	{
		Code: META0020, HTTPStatus: http.StatusConflict,
		Title:   "Stored secret cannot be decrypted",
		Meaning: "Headers of deployments and credentials of Kafka clusters are stored encrypted, and this node does not have the key whose id the message contains, or what is stored was damaged or moved from another record. The node does not use the deployment or cluster until it can decrypt the secret; invocations wait and are retried.",
		Remedy:  "Add the key to the file of security.secrets.key-file on this node, which reads it again. If the key is lost, set the secret again with `platform deployments update --extra-header`, `platform kafka-clusters edit` or `platform subscriptions edit`. `platform cluster secrets status` shows the keys of all nodes and what cannot be decrypted.",
	},
	{
		Code: META0021, HTTPStatus: http.StatusTooManyRequests,
		Title:   "Too many deployments, services, subscriptions or Kafka clusters",
		Meaning: "There are as many deployments, event subscriptions or Kafka clusters as admin.deployments-limit, admin.subscriptions-limit or admin.kafka-clusters-limit allow (status 429), or an endpoint announces more services than admin.services-per-deployment-limit (status 413). All nodes keep all of them in memory.",
		Remedy:  "Remove deployments that no invocation uses with `platform deployments prune`, subscriptions or Kafka clusters that are not needed, split the endpoint, or raise the limit in the configuration of all nodes.",
	},
	{
		Code: META0022, HTTPStatus: http.StatusBadRequest,
		Title:   "Address that the server does not connect to",
		Meaning: "The address is the ingress, the admin API or the node port of a server, where no service listens, or an address or function that the configuration does not permit.",
		Remedy:  "Register the address at which the service listens, usually port 9080. What the configuration denies is permitted by a change of egress.allow, egress.deny, egress.functions or egress.roles on all nodes; link-local, multicast and metadata addresses cannot be permitted.",
	},
}
