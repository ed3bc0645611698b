package config

import (
	"maps"
	"os"
	"strings"

	"platform/internal/units"
)

// Loaded is the result of Load.
type Loaded struct {
	Config   *Config
	Options  Options
	Warnings []string // to be logged once the log is set up

	origins       map[string]string
	args, environ []string // of Load
}

// Load assembles the configuration from the defaults, the TOML file that
// --config-file or PLATFORM_CONFIG names, the environment (os.Environ form) and
// the command line (without the program's name). The error carries RT0002 and
// names every problem found. With --help or --version only the command
// line is read, and Config is nil.
func Load(args, environ []string) (*Loaded, error) {
	l := newLoader()
	flags, options := l.parseFlags(args)
	if len(l.problems) > 0 {
		return nil, asError(l.problems)
	}
	if options.Help || options.Version {
		return &Loaded{Options: options}, nil
	}
	if options.ConfigFile == "" {
		options.ConfigFile = lookupEnv(environ, variablePrefix+"CONFIG")
	}
	if options.ConfigFile != "" {
		l.applyFile(options.ConfigFile)
	}
	l.applyEnv(environ)
	l.applyFlags(flags)
	l.applyCommonEnv(environ)
	if options.Production && !l.isSet("auto-provision") {
		l.cfg.AutoProvision = false
		l.origins["auto-provision"] = "flag --production"
	}
	l.resolveReferences(environ)
	l.complete()
	l.validate()
	if err := asError(l.problems); err != nil {
		return nil, err
	}
	l.warnInert()
	return &Loaded{
		Config: l.cfg, Options: options, Warnings: l.warnings,
		origins: maps.Clone(l.origins), args: args, environ: environ,
	}, nil
}

// complete sets the values that were not given and depend on others.
func (l *loader) complete() {
	cfg := l.cfg
	if cfg.NodeName == "" {
		cfg.NodeName = hostName()
	}
	// Other machines connect to a node that is configured for a cluster.
	if !l.isSet("bind-ip") && (cfg.BootstrapExpect > 1 || len(cfg.MetadataClient.Addresses) > 0 || cfg.Listener.advertised()) {
		cfg.BindIP = allAddresses
	}
	for _, section := range []*Listener{&cfg.Ingress.Listener, &cfg.Admin.Listener} {
		if section.BindIP == "" && !l.isSet("bind-ip") && section.advertised() {
			section.BindIP = allAddresses
		}
		section.inherit(cfg.Listener)
	}
	if !l.isSet("default-replication") {
		cfg.DefaultReplication = max(1, min(cfg.BootstrapExpect, usualReplication))
	}
	if cfg.UseRandomPorts {
		cfg.BindPort, cfg.Ingress.BindPort, cfg.Admin.BindPort = 0, 0, 0
	}
	invoker := &cfg.Worker.Invoker
	if !l.isSet("worker.invoker.additional-request-headers") {
		invoker.AdditionalRequestHeaders = map[string]string{clusterNameHeader: cfg.ClusterName}
	}
	if cfg.EnableVQueues && !cfg.FlowControl() {
		l.warnings = append(l.warnings, "flow control stays off: experimental-enable-vqueues needs experimental-enable-protocol-v7 as well")
	}
	most := cfg.Networking.MessageSizeLimit
	for _, size := range []struct {
		path  string
		limit *units.ByteSize
	}{
		{"ingress.request-size-limit", &cfg.Ingress.RequestSizeLimit},
		{"worker.invoker.message-size-limit", &invoker.MessageSizeLimit},
	} {
		if !l.isSet(size.path) {
			*size.limit = most // which is also their default
		}
		l.bound(size.path, size.limit, "networking.message-size-limit", most)
	}
	l.bound("worker.invoker.per-invocation-memory-limit", &invoker.PerInvocationMemoryLimit, "worker.invoker.memory-limit", invoker.MemoryLimit)
}

// usualReplication tolerates the loss of one node.
const usualReplication = 3

// bound limits a size to another one.
func (l *loader) bound(path string, limit *units.ByteSize, by string, most units.ByteSize) {
	if *limit <= most {
		return
	}
	if l.isSet(path) {
		l.warnings = append(l.warnings, path+" is lowered to "+by+", "+most.String())
	}
	*limit = most
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil || strings.TrimSpace(name) == "" {
		return "localhost"
	}
	return name
}
