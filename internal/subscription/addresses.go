package subscription

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

const defaultBrokerPort = "9092"

// brokerAddresses parses addresses of brokers: host:port, host or protocol://host:port, separated by
// commas. The results have ports.
func brokerAddresses(list string) ([]string, error) {
	var addresses []string
	for _, entry := range strings.Split(list, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		if _, rest, hasProtocol := strings.Cut(entry, "://"); hasProtocol {
			entry = rest
		}
		host, port, err := net.SplitHostPort(entry)
		if err != nil {
			host, port, err = net.SplitHostPort(entry + ":" + defaultBrokerPort)
		}
		n, numeric := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || numeric != nil || n == 0 || strings.ContainsAny(host, " /@\t\n") {
			return nil, fmt.Errorf("%s is not an address of the form host:port", quote(entry))
		}
		addresses = append(addresses, net.JoinHostPort(host, port))
	}
	if len(addresses) == 0 {
		return nil, errors.New("it has no address of the form host:port")
	}
	return addresses, nil
}

func brokers(list string) error {
	_, err := brokerAddresses(list)
	return err
}

var errCredentials = errors.New("a URL must not contain credentials; use sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret")

func httpURL(value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("expected an http or https URL")
	}
	if u.User != nil { // it would be shown to all who may read the cluster
		return errCredentials
	}
	return nil
}
