package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Desc describes a metric whose name begins with the namespace.
func Desc(name, help string, labels ...string) *prometheus.Desc {
	return constDesc(name, help, nil, labels...)
}

// constDesc is Desc with labels that have the same values in all series of a collector, so that
// several collectors can provide one metric.
func constDesc(name, help string, constant prometheus.Labels, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(Namespace, "", name), help, labels, constant)
}

// Values receives the values of metrics.
type Values chan<- prometheus.Metric

// Gauge sends the value of a gauge.
func (v Values) Gauge(d *prometheus.Desc, value float64, labels ...string) {
	v <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

// Counter sends the value of a counter.
func (v Values) Counter(d *prometheus.Desc, value uint64, labels ...string) {
	v <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

// Seconds sends the value of a counter of time.
func (v Values) Seconds(d *prometheus.Desc, value time.Duration, labels ...string) {
	v <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value.Seconds(), labels...)
}

// Bool sends a gauge with the value 1 if yes is true, 0 otherwise.
func (v Values) Bool(d *prometheus.Desc, yes bool) {
	value := 0.0
	if yes {
		value = 1
	}
	v.Gauge(d, value)
}

// NewCollector returns a collector that reads the metrics with the given descriptions at each
// scrape. read may be called concurrently.
func NewCollector(read func(Values), descs ...*prometheus.Desc) prometheus.Collector {
	return &collector{read, descs}
}

type collector struct {
	read  func(Values)
	descs []*prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) { c.read(Values(out)) }
