package codec

import (
	"time"

	"platform/flowcontrol"
	"platform/partition/machine"
)

func (w *writer) setRules(field uint64, c *machine.SetRules) {
	size := bookSize(c.Book)
	n := w.open(field, size)
	if c.Book != nil {
		inner := w.open(1, size)
		w.b = AppendRules(w.b, c.Book)
		w.close(inner)
	}
	w.close(n)
}

func bookSize(b *flowcontrol.Book) int {
	if b == nil {
		return 8
	}
	size := 16
	for i := range b.Rules {
		size += 64 + len(b.Rules[i].Description)
	}
	return size
}

func readSetRules(b []byte, c *machine.SetRules) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			c.Book = one(&r, readRules)
		default:
			r.unknown("set rules")
		}
	}
	return r.err
}

// AppendRules appends the record of a rule book to b.
func AppendRules(b []byte, book *flowcontrol.Book) []byte {
	w := writer{b: b}
	w.uint(1, uint64(book.Version))
	for i := range book.Rules {
		w.rule(2, &book.Rules[i])
	}
	return w.b
}

// DecodeRules reads the record of a rule book, which points into b.
func DecodeRules(b []byte) (book flowcontrol.Book, err error) {
	err = readRules(b, &book)
	return checked(book, "rule book", err)
}

func readRules(b []byte, book *flowcontrol.Book) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			book.Version = r.u32()
		case 2:
			into(&r, more(&r, &book.Rules), readRule)
		default:
			r.unknown("rule book")
		}
	}
	return r.err
}

func (w *writer) rule(field uint64, v *flowcontrol.Rule) {
	n := w.open(field, partSize)
	w.string(1, v.Pattern.Scope)
	w.string(2, v.Pattern.L1)
	w.string(3, v.Pattern.L2)
	w.uint(4, uint64(v.Limits.Concurrency))
	if v.Limits.Rate != nil {
		rate := w.open(5, partSize)
		w.uint(1, uint64(v.Limits.Rate.Count))
		w.int(2, int64(v.Limits.Rate.Period))
		w.close(rate)
	}
	if v.Limits.QueueLimit != nil {
		w.presentUint(6, *v.Limits.QueueLimit)
	}
	w.string(7, v.Description)
	w.bool(8, v.Disabled)
	w.uint(9, uint64(v.Version))
	w.int(10, v.ModifiedAt)
	w.close(n)
}

func readRule(b []byte, v *flowcontrol.Rule) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			v.Pattern.Scope = r.string()
		case 2:
			v.Pattern.L1 = r.string()
		case 3:
			v.Pattern.L2 = r.string()
		case 4:
			v.Limits.Concurrency = r.u32()
		case 5:
			v.Limits.Rate = one(&r, readRate)
		case 6:
			v.Limits.QueueLimit = new(r.u64())
		case 7:
			v.Description = r.string()
		case 8:
			v.Disabled = r.bool()
		case 9:
			v.Version = r.u32()
		case 10:
			v.ModifiedAt = r.i64()
		default:
			r.unknown("rule")
		}
	}
	return r.err
}

func readRate(b []byte, v *flowcontrol.Rate) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			v.Count = r.u32()
		case 2:
			v.Period = time.Duration(r.i64())
		default:
			r.unknown("rate")
		}
	}
	return r.err
}
