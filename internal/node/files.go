package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"platform/internal/cluster/datadir"
	"platform/internal/config"
	"platform/internal/diskspace"
	"platform/internal/pebbledb"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/watchdog"
	"platform/metadata"
	"platform/partition/store"
)

// ballastBytes is the size of a file that is deleted when the disk is full, so that the node can
// still store its votes and terms.
const ballastBytes = 64 << 20

const ballastFile = "BALLAST"

// listeners are the TCP ports of the node.
type listeners struct {
	node, admin net.Listener
	ingress     *ingressPort
}

// listen opens the ports. After an error some of them may be open.
func listen(ctx context.Context, cfg *config.Config) (l listeners, err error) {
	if l.node, err = cfg.Listen(ctx, ""); err != nil {
		return l, err
	}
	port, err := cfg.Ingress.Listen(ctx, "ingress")
	if err != nil {
		return l, err
	}
	l.ingress = &ingressPort{port: port}
	if !strings.HasSuffix(cfg.Ingress.Address(), ":0") {
		l.ingress.suspend() // connections would be reset if it turns out that other nodes serve the clients
	}
	l.admin, err = cfg.Admin.Listen(ctx, "admin")
	return l, err
}

func (l *listeners) close() {
	for _, port := range []io.Closer{l.node, l.admin} {
		if port != nil {
			_ = port.Close() // its server has closed it already
		}
	}
	if l.ingress != nil {
		_ = l.ingress.Close()
	}
}

// files are the data directory and its databases.
type files struct {
	dir  *datadir.Dir
	self datadir.Identity
	disk *diskspace.Monitor

	hard     *hardstate.File
	logs     *logstore.DB
	tables   *store.DB
	watchdog *watchdog.Watchdog
}

// openFiles locks and opens the data directory. short is called when its disk becomes short of
// space, and when it no longer is. The files must be closed even after an error.
func openFiles(cfg *config.Config, short func(bool), log *slog.Logger) (f files, err error) {
	others := datadir.Idle(cfg.BaseDir, cfg.NodeName)
	if f.dir, err = datadir.Open(cfg.BaseDir, cfg.NodeName); err != nil {
		return f, err
	}
	if f.dir.CopiedInUse() {
		log.Warn("the data directory is a copy, made while its server ran or after it was killed; if the server ran, the copy may lack acknowledged calls or be inconsistent: restore a copy that was made while the server was stopped", "data", f.dir.Path())
	}
	if len(others) > 0 {
		log.Warn("this node is new, although base-dir contains data of nodes that do not run; if one of them is meant, stop this node and set node-name, whose default is the host name",
			"node", cfg.NodeName, "others", strings.Join(others, ", "))
	}
	if f.self, err = f.dir.LoadIdentity(cfg.ClusterName, cfg.NodeName); err != nil {
		return f, err
	}
	if f.hard, f.self, err = f.dir.OpenHardState(f.self, log); err != nil {
		return f, err
	}
	f.disk = diskspace.New(f.dir.Path(), short, log)
	return f, nil
}

// awaitRoom waits while the disk is full, and reports that. Otherwise failed writes would end the
// process immediately after each restart.
func (f *files) awaitRoom(ctx context.Context, report func(reason string)) error {
	tick := time.NewTicker(diskspace.Tick)
	defer tick.Stop()
	for f.disk.Check() >= diskspace.Full {
		report("the disk of " + f.dir.Path() + " is full: " + f.disk.Balance(diskspace.Full) + "; free space on it")
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// openStores opens the databases. timeout is disk-timeout.
func (f *files) openStores(timeout time.Duration, log *slog.Logger) (err error) {
	ballast := f.dir.In(ballastFile)
	if err := logstore.CreateBallast(ballast, ballastBytes); err != nil {
		log.Warn("no space for the ballast file", "err", err)
	}
	if f.logs, err = f.dir.OpenLogs(f.self, logstore.Options{Ballast: ballast, Logger: log}); err != nil {
		return err
	}
	if f.tables, err = f.dir.OpenTables(f.self, store.Options{Logger: log}); err != nil {
		return err
	}
	f.watchdog = watchdog.New(watchdog.Config{
		Hung: timeout, LogProgress: f.logs.Written, StateProgress: f.tables.Written, Logger: log,
	})
	return nil
}

// saveIdentity changes the identity of the directory.
func (f *files) saveIdentity(change func(*datadir.Identity)) error {
	id := f.self
	change(&id)
	if err := f.dir.SaveIdentity(id); err != nil {
		return err
	}
	f.self = id
	return nil
}

// reclaimSpace frees the space of deleted rows of the databases until ctx ends.
func (f *files) reclaimSpace(ctx context.Context, log *slog.Logger) error {
	room := func() uint64 {
		f.disk.Check()
		return f.disk.Spare()
	}
	return pebbledb.RunReclaimers(ctx, room, log, f.tables.Reclaimer(), f.logs.Reclaimer())
}

// close closes the files that are open. With inUse, a replica that did not stop may still
// write: the databases then stay open until the process ends.
func (f *files) close(inUse bool) error {
	if f.watchdog != nil {
		f.watchdog.Close()
	}
	var errs []error
	if f.tables != nil && !inUse {
		errs = append(errs, f.tables.Close())
	}
	if f.logs != nil && !inUse {
		errs = append(errs, f.logs.Close())
	}
	if f.hard != nil {
		errs = append(errs, f.hard.Close())
	}
	if f.dir != nil {
		errs = append(errs, f.dir.Close())
	}
	return errors.Join(errs...)
}

// knownNodes returns the nodes of the metadata on disk, which are not open yet. If they cannot be read,
// openMetadata reports it.
func (f *files) knownNodes() []metadata.Node {
	if f.dir.Holds(datadir.MetadataLog) == "" {
		return nil
	}
	nodes, _ := metadata.ReadNodes(f.dir.In(datadir.MetadataDir)) //nolint:errcheck // see above
	return nodes
}
