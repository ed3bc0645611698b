package node

import (
	"context"
	"errors"
	"time"

	"platform/internal/datadir"
	"platform/internal/diskspace"
	"platform/internal/raftgroup"
	"platform/partition/store"
)

// ballastBytes is the size of a file that is given up when the disk is full, so
// that the node can still note its votes and terms.
const ballastBytes = 64 << 20

const ballastFile = "BALLAST"

// openFiles takes the ports and the data directory. The ports come first: whoever
// starts a second server by mistake hears of the port, not of the lock.
func (n *Node) openFiles(ctx context.Context) (err error) {
	if n.port, err = n.cfg.Listen(ctx, ""); err != nil {
		return err
	}
	if n.ingress, err = n.cfg.Ingress.Listen(ctx, "ingress"); err != nil {
		return err
	}
	if n.admin, err = n.cfg.Admin.Listen(ctx, "admin"); err != nil {
		return err
	}
	if n.dir, err = datadir.Open(n.cfg.BaseDir, n.cfg.NodeName); err != nil {
		return err
	}
	if n.self, err = n.dir.LoadIdentity(n.cfg.ClusterName, n.cfg.NodeName); err != nil {
		return err
	}
	if n.hard, n.self, err = n.dir.OpenHardState(n.self, n.log); err != nil {
		return err
	}
	n.disk = diskspace.New(n.dir.Path(), n.shortOfRoom, n.log)
	return nil
}

// awaitRoom waits while the disk is full: writes that fail would end the process at
// once, and whoever starts it again would do so for ever.
func (n *Node) awaitRoom(ctx context.Context) error {
	tick := time.NewTicker(diskspace.Tick)
	defer tick.Stop()
	for n.disk.Check() >= diskspace.Full {
		reason := "waiting for room on the disk of " + n.dir.Path() + " (" + n.disk.Free() + " free)"
		n.waiting.Store(&reason)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	n.waiting.Store(nil)
	return nil
}

func (n *Node) openStores() (err error) {
	ballast := n.dir.In(ballastFile)
	if err := raftgroup.CreateBallast(ballast, ballastBytes); err != nil {
		n.log.Warn("no room for the ballast file", "err", err)
	}
	if n.logs, err = n.dir.OpenLogs(n.self, raftgroup.LogDBOptions{Ballast: ballast, Logger: n.log}); err != nil {
		return err
	}
	if n.tables, err = n.dir.OpenTables(n.self, store.Options{Logger: n.log}); err != nil {
		return err
	}
	n.watchdog = raftgroup.NewWatchdog(raftgroup.WatchdogConfig{Logger: n.log})
	return nil
}

// closeFiles releases what openFiles took, as far as it got.
func (n *Node) closeFiles() error {
	n.ending.enter("ports and files")
	var errs []error
	errs = append(errs, n.closePort())
	if n.watchdog != nil {
		n.watchdog.Close()
	}
	// A replica that has not ended in time may be writing: its files are left to the end
	// of the process.
	inUse := n.inUse.Load()
	if n.tables != nil && !inUse {
		errs = append(errs, n.tables.Close())
	}
	if n.logs != nil && !inUse {
		errs = append(errs, n.logs.Close())
	}
	if n.hard != nil {
		errs = append(errs, n.hard.Close())
	}
	for _, l := range []interface{ Close() error }{n.port, n.ingress, n.admin} {
		if l != nil {
			_ = l.Close() // closed already by whoever served it
		}
	}
	if n.dir != nil {
		errs = append(errs, n.dir.Close())
	}
	return errors.Join(errs...)
}
