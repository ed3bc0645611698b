package node

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"platform/internal/config"
)

// configurationInterval is the interval at which the configuration file is checked for changes.
const configurationInterval = time.Second

// watchConfiguration loads the configuration again when its file has changed and on SIGHUP, until ctx ends.
func (n *Node) watchConfiguration(ctx context.Context) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	tick := time.NewTicker(configurationInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if n.reloader.Changed() {
				n.reloadConfiguration()
			}
		case <-hangup:
			n.reloadConfiguration()
		case <-ctx.Done():
			return nil
		}
	}
}

// reloadConfiguration applies what may change while the node runs, and logs what has changed.
func (n *Node) reloadConfiguration() {
	cfg, changes, err := n.reloader.Reload()
	if err != nil {
		n.log.Error("configuration not reloaded, the previous one remains in effect", "err", err)
		return
	}
	n.applyDefaults(cfg)
	n.invoker.SetDefaults(*n.defaults.Load())
	if err := n.logLevels.Configure(cfg.LogFilter); err != nil {
		n.log.Error("log levels not changed", "err", err)
	}
	for _, c := range changes {
		if c.Pending {
			n.log.Warn("configuration changed, which takes effect when the server is restarted", "key", c.Key)
			continue
		}
		n.log.Info("configuration changed", "key", c.Key, "from", c.From, "to", c.To)
	}
}

// applyDefaults sets the options of handlers that announce none.
func (n *Node) applyDefaults(cfg *config.Config) {
	d := defaultsOf(cfg)
	n.defaults.Store(&d)
}
