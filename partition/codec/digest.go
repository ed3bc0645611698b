package codec

import (
	"platform/internal/feature"
	"platform/partition/machine"
)

func (w *writer) digest(field uint64, c *machine.Digest) {
	w.require(feature.Level2, "comparing replicas")
	n := w.open(field, digestSize(c))
	if c.Scan != nil {
		w.digestScan(1, c.Scan)
	}
	if c.Agreed != nil {
		w.digestResult(2, c.Agreed)
	}
	w.close(n)
}

func digestSize(c *machine.Digest) int {
	size := 16
	if c.Scan != nil {
		size += 48 + len(c.Scan.From)
	}
	if c.Agreed != nil {
		size += 64 + len(c.Agreed.Next) + len(c.Agreed.Sum)
	}
	return size
}

func (w *writer) digestScan(field uint64, s *machine.DigestScan) {
	n := w.open(field, 32+len(s.From))
	w.uint(1, s.Round)
	w.bytes(2, s.From)
	w.uint(3, s.Rows)
	w.uint(4, s.Bytes)
	w.close(n)
}

func (w *writer) digestResult(field uint64, r *machine.DigestResult) {
	n := w.open(field, 48+len(r.Next)+len(r.Sum))
	w.uint(1, r.Epoch)
	w.uint(2, r.Round)
	w.uint(3, r.Rows)
	w.bytes(4, r.Next)
	w.bytes(5, r.Sum)
	w.close(n)
}

func readDigest(b []byte, c *machine.Digest) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			c.Scan = one(&r, readDigestScan)
		case 2:
			c.Agreed = one(&r, readDigestResult)
		default:
			r.unknown("digest")
		}
	}
	return r.err
}

func readDigestScan(b []byte, s *machine.DigestScan) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			s.Round = r.u64()
		case 2:
			s.From = r.bytes()
		case 3:
			s.Rows = r.u64()
		case 4:
			s.Bytes = r.u64()
		default:
			r.unknown("digest scan")
		}
	}
	return r.err
}

func readDigestResult(b []byte, d *machine.DigestResult) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			d.Epoch = r.u64()
		case 2:
			d.Round = r.u64()
		case 3:
			d.Rows = r.u64()
		case 4:
			d.Next = r.bytes()
		case 5:
			d.Sum = r.bytes()
		default:
			r.unknown("digest result")
		}
	}
	return r.err
}
