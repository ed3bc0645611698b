package machine

import "strings"

// Owned returns a copy of an admitted invocation whose strings are in memory of their own. Those
// of a record are parts of the log entry or row that it was decoded from, so a record of 300 bytes
// that is kept would keep the input that came with it, too.
func (inv *Invocation) Owned() *Invocation {
	c := *inv
	texts := []*string{
		&c.Target.Scope, &c.Target.Service, &c.Target.Key, &c.Target.Handler, &c.Source.CallerTarget, &c.Source.Subscription,
		&c.LimitKey, &c.Trace.Parent, &c.Trace.State, &c.Trace.Baggage, &c.ServerVersion, (*string)(&c.Pin.Deployment),
	}
	if c.IdempotencyKey != nil {
		key := *c.IdempotencyKey
		c.IdempotencyKey = &key
		texts = append(texts, &key)
	}
	if c.LastPause != nil {
		pause := *c.LastPause
		c.LastPause = &pause
		texts = append(texts, &pause.By, &pause.Reason)
	}
	own(texts)
	return &c
}

// own moves strings into memory of their own.
func own(texts []*string) {
	size := 0
	for _, text := range texts {
		size += len(*text)
	}
	var b strings.Builder
	b.Grow(size)
	for _, text := range texts {
		b.WriteString(*text)
	}
	all := b.String()
	for _, text := range texts {
		*text, all = all[:len(*text)], all[len(*text):]
	}
}
