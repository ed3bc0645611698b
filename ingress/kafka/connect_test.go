package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"platform/internal/subscription"
)

// With ordering by partition, a record is passed on when the previous invocation has ended, also
// by the next leader.
func TestOneRecordOfATopicPartitionAtATime(t *testing.T) {
	w := newTestCluster(t, 3)
	w.topic("orders", 1)
	for range 3 {
		w.produce(record("orders", 0, "", "1"))
	}
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"}, func(s *subscription.Subscription) { s.Ordering = subscription.OrderByPartition })
	first := w.start().leadAll()
	w.eventually("the first is handed over", func() bool { return w.createdCount() == 1 && first.status("orders", 0).InFlight == 1 })
	require.Zero(t, first.status("orders", 0).Position)
	for id := range w.partitions {
		first.resign(uint32(id))
	}
	second := w.start().leadAll()
	w.eventually("the next leader waits for it", func() bool { return second.status("orders", 0).InFlight == 1 })
	require.Equal(t, 1, w.createdCount())
	for n := 1; n <= 3; n++ {
		w.end(w.created()[n-1].id)
		w.eventually("the next is handed over", func() bool { return w.createdCount() == min(n+1, 3) })
	}
	w.eventually("all have ended", func() bool { return second.status("orders", 0).Position == 3 })
}

// While the broker does not respond the subscription is in error, and it is read once the
// broker responds.
func TestAnUnreachableBroker(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "", "1"))
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, silent.Close())
	real := w.source.clusters["main"]
	w.source.setCluster(subscription.Cluster{Name: "main", Version: 2, Properties: map[string]string{"bootstrap.servers": silent.Addr().String()}})
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("it is an error", func() bool {
		all := h.engine.Statuses("sub_1", true)
		return len(all) == 1 && all[0].State == subscription.Failed && all[0].Reason == subscription.BrokerUnreachable
	})
	real.Version = 3
	w.source.setCluster(real)
	w.eventually("it is read", func() bool { return w.createdCount() == 1 })
}

func TestAMissingTopicAndAMissingCluster(t *testing.T) {
	w := newTestCluster(t, 2)
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	w.subscribe("sub_2", "Greeter/greet", []string{"orders"}, func(s *subscription.Subscription) { s.Cluster = "other" })
	h := w.start().leadAll()
	w.eventually("both say why", func() bool {
		all := h.engine.Statuses("", true)
		return len(all) == 2 && all[0].Reason == subscription.TopicMissing && all[1].State == subscription.Orphaned
	})
	w.topic("orders", 1)
	w.produce(record("orders", 0, "", "1"))
	w.eventually("the topic is read", func() bool { return w.createdCount() == 1 })
}

// certificate returns a certificate for 127.0.0.1 that is its own authority, in PEM.
func certificate(t *testing.T) (cert tls.Certificate, authority string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestEncryptionAndCredentials(t *testing.T) {
	cert, authority := certificate(t)
	w := newTestCluster(t, 2)
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "user", "secret"), kfake.Superuser("PLAIN", "user", "secret"),
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}}))
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	require.NoError(t, fake.CreateTopic("orders", 1, nil))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(authority))
	producer, err := kgo.NewClient(kgo.SeedBrokers(fake.ListenAddrs()...), kgo.SASL(scram.Auth{User: "user", Pass: "secret"}.AsSha256Mechanism()), kgo.DialTLSConfig(&tls.Config{RootCAs: roots}))
	require.NoError(t, err)
	defer producer.Close()
	require.NoError(t, producer.ProduceSync(t.Context(), record("orders", 0, "", "1")).FirstErr())

	properties := func(mechanism, password string) map[string]string {
		return map[string]string{
			"bootstrap.servers": fake.ListenAddrs()[0], "security.protocol": "sasl_ssl", "ssl.ca.pem": authority,
			"sasl.mechanism": mechanism, "sasl.username": "user", "sasl.password": password,
		}
	}
	w.source.setCluster(subscription.Cluster{Name: "main", Version: 2, Properties: properties("SCRAM-SHA-256", "wrong")})
	w.subscribe("sub_1", "Greeter/greet", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("wrong credentials are an error", func() bool {
		all := h.engine.Statuses("sub_1", true)
		return len(all) == 1 && all[0].State == subscription.Failed
	})
	w.source.setCluster(subscription.Cluster{Name: "main", Version: 3, Properties: properties("SCRAM-SHA-256", "secret")})
	w.eventually("it is read", func() bool { return w.createdCount() == 1 })
	w.source.setCluster(subscription.Cluster{Name: "main", Version: 4, Properties: properties("PLAIN", "secret")})
	require.NoError(t, producer.ProduceSync(t.Context(), record("orders", 0, "", "2")).FirstErr())
	w.eventually("it is read with another mechanism", func() bool { return w.createdCount() == 2 })
}
