package codec

import (
	"google.golang.org/protobuf/encoding/protowire"

	"platform/internal/feature"
	"platform/partition/machine"
)

func (w *writer) digest(field protowire.Number, c *machine.Digest) {
	w.require(feature.Level2, "comparing replicas")
	n := w.open(field, digestSize(c))
	if c.Scan != nil {
		w.digestScan(fieldDigestScan, c.Scan)
	}
	if c.Agreed != nil {
		w.digestResult(fieldDigestAgreed, c.Agreed)
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

func (w *writer) digestScan(field protowire.Number, s *machine.DigestScan) {
	n := w.open(field, 32+len(s.From))
	w.uint(fieldDigestScanRound, s.Round)
	w.bytes(fieldDigestScanFrom, s.From)
	w.uint(fieldDigestScanRows, s.Rows)
	w.uint(fieldDigestScanBytes, s.Bytes)
	w.close(n)
}

func (w *writer) digestResult(field protowire.Number, r *machine.DigestResult) {
	n := w.open(field, 48+len(r.Next)+len(r.Sum))
	w.uint(fieldDigestResultEpoch, r.Epoch)
	w.uint(fieldDigestResultRound, r.Round)
	w.uint(fieldDigestResultRows, r.Rows)
	w.bytes(fieldDigestResultNext, r.Next)
	w.bytes(fieldDigestResultSum, r.Sum)
	w.close(n)
}

func readDigest(b []byte, c *machine.Digest) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldDigestScan:
			c.Scan = decodeNew(&r, readDigestScan)
		case fieldDigestAgreed:
			c.Agreed = decodeNew(&r, readDigestResult)
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
		case fieldDigestScanRound:
			s.Round = r.u64()
		case fieldDigestScanFrom:
			s.From = r.bytes()
		case fieldDigestScanRows:
			s.Rows = r.u64()
		case fieldDigestScanBytes:
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
		case fieldDigestResultEpoch:
			d.Epoch = r.u64()
		case fieldDigestResultRound:
			d.Round = r.u64()
		case fieldDigestResultRows:
			d.Rows = r.u64()
		case fieldDigestResultNext:
			d.Next = r.bytes()
		case fieldDigestResultSum:
			d.Sum = r.bytes()
		default:
			r.unknown("digest result")
		}
	}
	return r.err
}
