package subscription

// destinations are the properties that decide who gets the credentials of a client, and in which
// form.
var destinations = []string{
	"bootstrap.servers", "metadata.broker.list", "security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.oauthbearer.token.endpoint.url",
	"enable.ssl.certificate.verification", "ssl.endpoint.identification.algorithm", "ssl.ca.location", "ssl.ca.pem", "https.ca.location", "https.ca.pem",
}

// sentSecrets are the secrets that a client sends. Keys of certificates stay with the client.
var sentSecrets = []string{"sasl.password", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.client.credentials.client.secret"}

// redirected returns the first destination that differs between properties, with which a secret
// could be sent to whoever edits them; empty if there is none.
func redirected(before, after map[string]string) string {
	for _, n := range destinations {
		was, existed := before[n]
		if is, exists := after[n]; is != was || exists != existed {
			return n
		}
	}
	return ""
}

// checkInherited returns why the properties of a subscription cannot override those of its
// cluster: secrets of the cluster are not for brokers that the subscription chooses.
func checkInherited(cluster, own, merged map[string]string) error {
	changed := redirected(cluster, merged)
	if changed == "" {
		return nil
	}
	for _, n := range sentSecrets {
		if cluster[n] != "" && own[n] == "" {
			return invalid("the option %s differs from the property of the Kafka cluster, so the option %s is needed as well: the value of the cluster is only for the brokers of the cluster", changed, n).In(n)
		}
	}
	return nil
}
