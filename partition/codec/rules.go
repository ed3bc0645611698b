package codec

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"platform/flowcontrol"
	"platform/partition/machine"
)

func (w *writer) setRules(field protowire.Number, c *machine.SetRules) {
	size := ruleBookSize(c.Book)
	n := w.open(field, size)
	if c.Book != nil {
		inner := w.open(fieldSetRulesBook, size)
		w.b = AppendRules(w.b, c.Book)
		w.close(inner)
	}
	w.close(n)
}

func ruleBookSize(b *flowcontrol.Book) int {
	if b == nil {
		return 8
	}
	size := 16
	for i := range b.Rules {
		rule := &b.Rules[i]
		size += 128 + len(rule.Pattern.Scope) + len(rule.Pattern.L1) + len(rule.Pattern.L2) + len(rule.Description)
	}
	return size
}

func readSetRules(b []byte, c *machine.SetRules) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldSetRulesBook:
			c.Book = decodeNew(&r, readRules)
		default:
			r.unknown("set rules")
		}
	}
	return r.err
}

// AppendRules appends the record of a rule book to b.
func AppendRules(b []byte, book *flowcontrol.Book) []byte {
	w := writer{b: b}
	w.uint(fieldRuleBookVersion, uint64(book.Version))
	for i := range book.Rules {
		w.rule(fieldRuleBookRules, &book.Rules[i])
	}
	return w.b
}

// DecodeRules decodes the record of a rule book, which aliases b.
func DecodeRules(b []byte) (book flowcontrol.Book, err error) {
	err = readRules(b, &book)
	return decoded(book, "rule book", err)
}

func readRules(b []byte, book *flowcontrol.Book) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldRuleBookVersion:
			book.Version = r.u32()
		case fieldRuleBookRules:
			decodeInto(&r, grow(&r, &book.Rules), readRule)
		default:
			r.unknown("rule book")
		}
	}
	return r.err
}

func (w *writer) rule(field protowire.Number, v *flowcontrol.Rule) {
	n := w.open(field, sizeHint)
	w.string(fieldRuleScope, v.Pattern.Scope)
	w.string(fieldRuleL1, v.Pattern.L1)
	w.string(fieldRuleL2, v.Pattern.L2)
	w.uint(fieldRuleConcurrency, uint64(v.Limits.Concurrency))
	if v.Limits.Rate != nil {
		rate := w.open(fieldRuleRate, sizeHint)
		w.uint(fieldRateCount, uint64(v.Limits.Rate.Count))
		w.int(fieldRatePeriod, int64(v.Limits.Rate.Period))
		w.close(rate)
	}
	if v.Limits.QueueLimit != nil {
		w.explicitUint(fieldRuleQueueLimit, *v.Limits.QueueLimit)
	}
	w.string(fieldRuleDescription, v.Description)
	w.bool(fieldRuleDisabled, v.Disabled)
	w.uint(fieldRuleVersion, uint64(v.Version))
	w.int(fieldRuleModifiedAt, v.ModifiedAt)
	w.close(n)
}

func readRule(b []byte, v *flowcontrol.Rule) error {
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldRuleScope:
			v.Pattern.Scope = r.string()
		case fieldRuleL1:
			v.Pattern.L1 = r.string()
		case fieldRuleL2:
			v.Pattern.L2 = r.string()
		case fieldRuleConcurrency:
			v.Limits.Concurrency = r.u32()
		case fieldRuleRate:
			v.Limits.Rate = decodeNew(&r, readRate)
		case fieldRuleQueueLimit:
			v.Limits.QueueLimit = new(r.u64())
		case fieldRuleDescription:
			v.Description = r.string()
		case fieldRuleDisabled:
			v.Disabled = r.bool()
		case fieldRuleVersion:
			v.Version = r.u32()
		case fieldRuleModifiedAt:
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
		case fieldRateCount:
			v.Count = r.u32()
		case fieldRatePeriod:
			v.Period = time.Duration(r.i64())
		default:
			r.unknown("rate")
		}
	}
	return r.err
}
