package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrDamaged means that bbolt cannot have written the file in this form.
var ErrDamaged = errors.New("database file damaged")

// The file format of bbolt, version 2, on little-endian machines.
const (
	magic   = 0xED0CDAED
	version = 2

	headerLen  = 16 // id, flags, count, overflow
	metaLen    = 64
	elementLen = 16
	bucketLen  = 16 // root, sequence
	minPage    = 1 << 10
	maxPage    = 16 << 20

	branchPage = 0x01
	leafPage   = 0x02
	bucketFlag = 0x01

	maxDepth = 64
	noList   = ^uint64(0)
)

// Check verifies all pages of a file that are in use. It returns ErrDamaged if they do not
// form complete trees: bbolt could panic, or miss keys. Damage within keys and values is
// not detected. A missing or empty file passes, and so does one that is open for writing.
func Check(path string) (err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		return nil //nolint:nilerr // locked by a writer, which opening reports
	}
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	c := &checker{file: f, size: info.Size(), seen: map[uint64]bool{}}
	if err := c.check(); err != nil {
		return fmt.Errorf("check %s: %w", path, err)
	}
	return nil
}

type checker struct {
	file io.ReaderAt
	size int64
	meta
	seen map[uint64]bool // pages that belong to a tree
}

// meta is the content of a meta page.
type meta struct {
	pageSize             uint32
	root, freelist, next uint64 // pages; next follows the last one
	transaction          uint64
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

func (c *checker) check() error {
	found := false
	take := func(at int64) {
		m, valid := c.readMeta(at)
		if valid && (!found || m.transaction > c.transaction) {
			c.meta, found = m, true
		}
	}
	take(0)
	for at := int64(minPage); at <= maxPage; at *= 2 { // the page size is in the meta page
		if !found || at == int64(c.pageSize) {
			take(at)
		}
	}
	if !found {
		return damaged("both meta pages are invalid")
	}
	if c.next < 2 || c.next > uint64(c.size)/uint64(c.pageSize) {
		return damaged("it has %d bytes of %d", c.size, c.next*uint64(c.pageSize))
	}
	if c.freelist != noList {
		if err := c.claim(c.freelist, 0); err != nil {
			return err
		}
	}
	return c.tree(c.root)
}

func (c *checker) readMeta(at int64) (m meta, valid bool) {
	var page [headerLen + metaLen]byte
	if _, err := c.file.ReadAt(page[:], at); err != nil {
		return m, false
	}
	b, le := page[headerLen:], binary.LittleEndian
	sum := fnv.New64a()
	sum.Write(b[:metaLen-8])
	m = meta{pageSize: le.Uint32(b[8:]), root: le.Uint64(b[16:]), freelist: le.Uint64(b[32:]), next: le.Uint64(b[40:]), transaction: le.Uint64(b[48:])}
	return m, le.Uint32(b) == magic && le.Uint32(b[4:]) == version && le.Uint64(b[56:]) == sum.Sum64() &&
		m.pageSize >= minPage && m.pageSize <= maxPage
}

// claim marks pages as part of a tree.
func (c *checker) claim(id uint64, overflow uint32) error {
	for i := range uint64(overflow) + 1 {
		if id+i < 2 || id+i >= c.next {
			return damaged("page %d of %d", id+i, c.next)
		}
		if c.seen[id+i] {
			return damaged("page %d is referred to twice", id+i)
		}
		c.seen[id+i] = true
	}
	return nil
}

// tree verifies the tree of a bucket.
func (c *checker) tree(root uint64) error {
	_, err := c.node(root, nil, nil, 0)
	return err
}

// node verifies a page and its descendants, whose keys are at least low and less than high;
// nil: unbounded. It returns the distance to the leaves.
func (c *checker) node(id uint64, low, high []byte, depth int) (height int, err error) {
	if depth > maxDepth {
		return 0, damaged("page %d is %d levels deep", id, depth)
	}
	page, err := c.read(id)
	if err != nil {
		return 0, err
	}
	elements, leaf, err := parse(page)
	if err != nil {
		return 0, fmt.Errorf("page %d: %w", id, err)
	}
	if len(elements) == 0 && (!leaf || depth > 0) {
		return 0, damaged("page %d is empty", id)
	}
	for i, e := range elements {
		// The first key of a branch may be greater than the first key below it, but not
		// less than the bound, which repeats it.
		if bytes.Compare(e.key, low) < 0 || high != nil && bytes.Compare(e.key, high) >= 0 || i > 0 && bytes.Equal(e.key, low) {
			return 0, damaged("page %d: key %d is out of order", id, i)
		}
		low = e.key
		below := -1
		switch {
		case !leaf:
			end := high
			if i+1 < len(elements) {
				end = elements[i+1].key
			}
			below, err = c.node(e.page, e.key, end, depth+1)
		case e.flags&bucketFlag != 0:
			err = c.bucket(id, e.value)
		}
		if err != nil {
			return 0, err
		}
		if i > 0 && below+1 != height {
			return 0, damaged("page %d: leaves are not of one depth", id)
		}
		height = below + 1
	}
	return height, nil
}

// read returns a page including its overflow pages.
func (c *checker) read(id uint64) ([]byte, error) {
	var header [headerLen]byte
	if id < 2 || id >= c.next {
		return nil, damaged("page %d of %d", id, c.next)
	}
	at := int64(id) * int64(c.pageSize)
	if _, err := c.file.ReadAt(header[:], at); err != nil {
		return nil, damaged("page %d: %v", id, err)
	}
	if found := binary.LittleEndian.Uint64(header[:]); found != id {
		return nil, damaged("page %d says that it is page %d", id, found)
	}
	overflow := binary.LittleEndian.Uint32(header[12:])
	if err := c.claim(id, overflow); err != nil {
		return nil, err
	}
	page := make([]byte, (int64(overflow)+1)*int64(c.pageSize))
	if _, err := c.file.ReadAt(page, at); err != nil {
		return nil, damaged("page %d: %v", id, err)
	}
	return page, nil
}

// bucket verifies a bucket, whose tree may be inline in the value.
func (c *checker) bucket(id uint64, value []byte) error {
	if len(value) < bucketLen {
		return damaged("page %d: bucket of %d bytes", id, len(value))
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return c.tree(root)
	}
	elements, leaf, err := parse(value[bucketLen:])
	if err != nil {
		return fmt.Errorf("page %d: bucket: %w", id, err)
	}
	var low []byte
	for i, e := range elements {
		if !leaf || e.flags&bucketFlag != 0 || i > 0 && bytes.Compare(low, e.key) >= 0 {
			return damaged("page %d: bucket: element %d", id, i)
		}
		low = e.key
	}
	return nil
}

// element is an element of a page: a value in a leaf, or a child in a branch.
type element struct {
	flags      uint32
	page       uint64
	key, value []byte
}

// parse returns the elements of a page. Keys and values follow the elements without gaps,
// as bbolt writes them.
func parse(page []byte) (elements []element, leaf bool, err error) {
	if len(page) < headerLen {
		return nil, false, damaged("%d bytes", len(page))
	}
	le := binary.LittleEndian
	flags, count := le.Uint16(page[8:]), int(le.Uint16(page[10:]))
	if flags != leafPage && flags != branchPage {
		return nil, false, damaged("type %#x", flags)
	}
	leaf = flags == leafPage
	at := headerLen + count*elementLen
	if at > len(page) {
		return nil, leaf, damaged("%d elements", count)
	}
	elements = make([]element, count)
	for i := range elements {
		begin := headerLen + i*elementLen
		raw := page[begin : begin+elementLen]
		var pos, keyLen, valueLen uint32
		e := &elements[i]
		if leaf {
			e.flags, pos, keyLen, valueLen = le.Uint32(raw), le.Uint32(raw[4:]), le.Uint32(raw[8:]), le.Uint32(raw[12:])
		} else {
			pos, keyLen, e.page = le.Uint32(raw), le.Uint32(raw[4:]), le.Uint64(raw[8:])
		}
		if e.flags&^bucketFlag != 0 || begin+int(pos) != at || keyLen == 0 || uint64(at)+uint64(keyLen)+uint64(valueLen) > uint64(len(page)) {
			return nil, leaf, damaged("element %d", i)
		}
		e.key = page[at : at+int(keyLen)]
		at += int(keyLen)
		e.value = page[at : at+int(valueLen)]
		at += int(valueLen)
	}
	return elements, leaf, nil
}
