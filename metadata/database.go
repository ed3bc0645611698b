package metadata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"platform/flowcontrol"
	"platform/internal/boltfile"
	"platform/internal/durable"
	"platform/internal/errcode"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	pb "platform/proto/metadata"
)

// record is a stored message.
type record interface{ UnmarshalVT([]byte) error }

// mmapBytes is the address space for each file, so that it need not be remapped under
// readers when it grows.
const mmapBytes = 64 << 20

// database is the state file. Every record in it has a checksum, because bbolt has none for
// data.
type database struct{ bolt *bbolt.DB }

// openDatabase opens or creates the state file.
func openDatabase(path string) (*database, error) {
	_, statErr := os.Stat(path)
	if err := boltfile.Check(path); err != nil { // bbolt would panic
		return nil, fmt.Errorf("open metadata state: %w", err)
	}
	bolt, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         time.Second,
		NoFreelistSync:  true,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mmapBytes,
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, errcode.New(errcode.RT0005, "metadata state %s is locked by another process", path)
	case err != nil:
		return nil, fmt.Errorf("open metadata state %s: %w", path, err)
	}
	db := &database{bolt}
	if errors.Is(statErr, fs.ErrNotExist) {
		err = errors.Join(db.create(), durable.SyncDir(filepath.Dir(path)))
	} else {
		err = db.checkVersion()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open metadata state %s: %w", path, err), bolt.Close())
	}
	return db, nil
}

func (db *database) close() error { return db.bolt.Close() }

// create creates the missing tables.
func (db *database) create() error {
	return db.bolt.Update(func(tx *bbolt.Tx) error {
		for _, table := range tables {
			if _, err := tx.CreateBucketIfNotExists([]byte(table)); err != nil {
				return err
			}
		}
		return putFormat(tx, formatVersion)
	})
}

func putFormat(tx *bbolt.Tx, format uint32) error {
	return tx.Bucket([]byte(tableMeta)).Put([]byte(versionKey), sealedFormat(format))
}

// checkVersion rejects a file whose format is unknown or missing. An empty file, left by a
// crash before its first write, is initialized; one of an older format is upgraded.
func (db *database) checkVersion() error {
	var empty, old bool
	err := db.bolt.View(func(tx *bbolt.Tx) error {
		first, _ := tx.Cursor().First()
		if empty = first == nil; empty {
			return nil
		}
		meta := tx.Bucket([]byte(tableMeta))
		if meta == nil || meta.Get([]byte(versionKey)) == nil {
			return errcode.New(errcode.META0011, "the metadata state has no format version")
		}
		version, err := readFormat(meta.Get([]byte(versionKey)))
		old = version < formatVersion
		return err
	})
	if err == nil && (empty || old) {
		return db.create()
	}
	if err == nil {
		err = db.bolt.Update(func(tx *bbolt.Tx) error {
			for _, table := range addedTables {
				if _, err := tx.CreateBucketIfNotExists([]byte(table)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return err
}

// readFormat decodes a format version and checks that this server supports it.
func readFormat(stored []byte) (uint32, error) {
	version, err := unsealed(stored)
	if err != nil {
		return 0, fmt.Errorf("read format version: %w", err)
	}
	if len(version) != 4 {
		return 0, fmt.Errorf("format version of %d bytes: %w", len(version), ErrCorrupt)
	}
	v := binary.BigEndian.Uint32(version)
	if v == 0 || v > newestFormat {
		return 0, errcode.New(errcode.META0010, "the metadata state has format %d, this server reads 1 to %d", v, newestFormat)
	}
	return v, nil
}

// write stores records and their applied position in one synced transaction.
func (db *database) write(at raftgroup.Position, writes []write) error {
	err := db.bolt.Update(func(tx *bbolt.Tx) error {
		for _, w := range writes {
			bucket := tx.Bucket([]byte(w.table))
			if w.value == nil {
				if err := bucket.Delete([]byte(w.key)); err != nil {
					return err
				}
				continue
			}
			if err := bucket.Put([]byte(w.key), w.value); err != nil {
				return err
			}
		}
		return putApplied(tx, at)
	})
	if err != nil {
		return fmt.Errorf("write metadata state: %w", err)
	}
	return nil
}

func putApplied(tx *bbolt.Tx, at raftgroup.Position) error {
	value := binary.BigEndian.AppendUint64(nil, at.Index)
	value = binary.BigEndian.AppendUint64(value, at.Term)
	return tx.Bucket([]byte(tableMeta)).Put([]byte(appliedKey), sealed(value))
}

// load reads the entire state.
func (db *database) load() (*state, raftgroup.Position, error) {
	var (
		st *state
		at raftgroup.Position
	)
	err := db.bolt.View(func(tx *bbolt.Tx) (err error) {
		if at, err = readApplied(tx); err != nil {
			return err
		}
		st, err = readState(tx, at.Index)
		return err
	})
	if err != nil {
		return nil, at, fmt.Errorf("read metadata state: %w", err)
	}
	return st, at, nil
}

func readState(tx *bbolt.Tx, index uint64) (*state, error) {
	st := &state{book: &flowcontrol.Book{}}
	deployments, kept := map[ids.Deployment]*Deployment{}, map[string]*Options{}
	err := errors.Join(
		each(tx, tableCluster, func(c *pb.Cluster) { st.cluster = clusterFromProto(c) }),
		each(tx, tableNodes, func(n *pb.Node) { st.nodes = append(st.nodes, nodeFromProto(n)) }),
		each(tx, tableDeployments, func(d *pb.Deployment) {
			dep := deploymentFromProto(d)
			deployments[dep.ID] = dep
		}),
		each(tx, tableKeptOptions, func(k *pb.KeptOptions) {
			options := optionsFromProto(k.GetOptions())
			kept[k.GetService()] = &options
		}),
		each(tx, tablePartitions, func(p *pb.Partition) { st.partitions = append(st.partitions, partitionFromProto(p)) }),
		readBook(tx, st.book),
		each(tx, tableJobs, func(j *pb.Job) { st.jobs = append(st.jobs, jobFromProto(j)) }),
		each(tx, tableTokens, func(t *pb.Token) { st.tokens = append(st.tokens, tokenFromProto(t)) }),
		each(tx, tableAuthority, func(a *pb.Authority) { st.authority = authorityFromProto(a) }),
		each(tx, tableJoinTokens, func(t *pb.JoinToken) { st.joinTokens = append(st.joinTokens, joinTokenFromProto(t)) }),
		each(tx, tableFailureMarks, func(m *pb.FailureMark) { st.failureMarks = append(st.failureMarks, failureMarkFromProto(m)) }),
		readSubscriptions(tx, st),
		each(tx, tableRequests, func(r *pb.Request) { st.requests.add(requestFromProto(r)) }),
	)
	st.schemas = newSchemas(index, deployments, kept)
	if err == nil {
		st.audit, err = readAuditLog(tx)
	}
	if err == nil {
		err = checkLevel(st.cluster)
	}
	return st, err
}

// readBook reads a book. The key order of rules differs from the order in a book.
func readBook(tx *bbolt.Tx, book *flowcontrol.Book) error {
	var bad error
	err := errors.Join(
		each(tx, tableRuleBook, func(b *pb.RuleBook) { book.Version = b.GetVersion() }),
		each(tx, tableRules, func(r *pb.Rule) {
			rule, err := ruleFromProto(r)
			if err != nil {
				bad = fmt.Errorf("%s %s: %w", tableRules, r.GetPattern(), err)
			}
			book.Rules = append(book.Rules, rule)
		}),
	)
	slices.SortFunc(book.Rules, func(a, b flowcontrol.Rule) int { return a.Pattern.Compare(b.Pattern) })
	return errors.Join(err, bad)
}

func readApplied(tx *bbolt.Tx) (at raftgroup.Position, err error) {
	stored := tx.Bucket([]byte(tableMeta)).Get([]byte(appliedKey))
	if stored == nil {
		return at, nil
	}
	value, err := unsealed(stored)
	if err != nil {
		return at, fmt.Errorf("read applied index: %w", err)
	}
	if len(value) != 16 {
		return at, fmt.Errorf("applied index of %d bytes: %w", len(value), ErrCorrupt)
	}
	return raftgroup.Position{Index: binary.BigEndian.Uint64(value), Term: binary.BigEndian.Uint64(value[8:])}, nil
}

// each decodes the records of a table in key order.
func each[M any, P interface {
	*M
	record
}](tx *bbolt.Tx, table string, use func(P)) error {
	return tx.Bucket([]byte(table)).ForEach(func(key, stored []byte) error {
		value, err := unsealed(stored)
		if err != nil {
			return fmt.Errorf("%s %s: %w", table, key, err)
		}
		m := P(new(M))
		if err := m.UnmarshalVT(value); err != nil {
			return fmt.Errorf("%s %s: %w", table, key, err)
		}
		use(m)
		return nil
	})
}
