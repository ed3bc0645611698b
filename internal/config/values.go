package config

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limit is a positive number or Unlimited.
type Limit int

// Unlimited is the Limit without bound, written "unlimited".
const Unlimited Limit = 0

// MarshalText prints the number or "unlimited".
func (l Limit) MarshalText() ([]byte, error) {
	if l == Unlimited {
		return []byte("unlimited"), nil
	}
	return strconv.AppendInt(nil, int64(l), 10), nil
}

// UnmarshalText reads a whole number of at least 1, or "unlimited".
func (l *Limit) UnmarshalText(text []byte) error {
	if strings.EqualFold(string(text), "unlimited") {
		*l = Unlimited
		return nil
	}
	n, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || n < 1 {
		return errors.New(l.expected())
	}
	*l = Limit(n)
	return nil
}

func (l *Limit) expected() string { return `a whole number of 1 or more, or "unlimited"` }

// Ratio is a number from 0 to 1.
type Ratio float64

// MarshalText prints the number.
func (r Ratio) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(r), 'g', -1, 64), nil
}

// UnmarshalText reads a number.
func (r *Ratio) UnmarshalText(text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return errors.New(r.expected())
	}
	*r = Ratio(f)
	return nil
}

func (*Ratio) expected() string { return "a number from 0 to 1" }

// Rate is how often something may happen, written as 100, 100/s, 6000/min or 50/h; the zero Rate is no
// bound, written "unlimited".
type Rate struct {
	Count int
	Per   time.Duration
}

// rateUnits are the units of rates; the first name of each is printed.
var rateUnits = []struct {
	per   time.Duration
	names []string
}{
	{time.Second, []string{"s", "sec", "second"}},
	{time.Minute, []string{"min", "m", "minute"}},
	{time.Hour, []string{"h", "hr", "hour"}},
}

// MarshalText prints the rate or "unlimited".
func (r Rate) MarshalText() ([]byte, error) {
	for _, unit := range rateUnits {
		if r.Count > 0 && r.Per == unit.per {
			return append(strconv.AppendInt(nil, int64(r.Count), 10), "/"+unit.names[0]...), nil
		}
	}
	return []byte("unlimited"), nil
}

// UnmarshalText reads a rate or "unlimited". Without a unit, it is per second.
func (r *Rate) UnmarshalText(text []byte) error {
	if strings.EqualFold(string(text), "unlimited") {
		*r = Rate{}
		return nil
	}
	count, name, hasUnit := strings.Cut(strings.ToLower(string(text)), "/")
	n, err := strconv.ParseInt(strings.TrimSpace(count), 10, 32)
	if err != nil || n < 1 {
		return errors.New(r.expected())
	}
	if !hasUnit {
		*r = Rate{int(n), time.Second}
		return nil
	}
	for _, unit := range rateUnits {
		if slices.Contains(unit.names, strings.TrimSpace(name)) {
			*r = Rate{int(n), unit.per}
			return nil
		}
	}
	return errors.New(r.expected())
}

func (r *Rate) expected() string { return `a rate such as 100/s, 6000/min or 50/h, or "unlimited"` }

// Tokens is how many tokens a bucket holds.
type Tokens int

// MarshalText prints the number.
func (t Tokens) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(t), 10), nil }

// UnmarshalText reads a whole number of at least 1.
func (t *Tokens) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || n < 1 {
		return errors.New(t.expected())
	}
	*t = Tokens(n)
	return nil
}

func (*Tokens) expected() string { return "a whole number of 1 or more" }

// LogFormat is the format of log records.
type LogFormat string

// The log formats.
const (
	LogPretty  LogFormat = "pretty"  // for people at a terminal
	LogCompact LogFormat = "compact" // one line of text
	LogJSON    LogFormat = "json"    // one JSON object per line
)

// UnmarshalText parses a format.
func (f *LogFormat) UnmarshalText(text []byte) error { return choose(f, text, f.choices()) }

func (f *LogFormat) choices() []LogFormat { return []LogFormat{LogPretty, LogCompact, LogJSON} }
func (f *LogFormat) expected() string     { return oneOf(f.choices()) }

// SecurityMode is the authentication that the ports require of clients.
type SecurityMode string

// The modes.
const (
	SecurityDefault SecurityMode = "default" // the admin API requires a token, unless only this machine reaches it
	SecurityOpen    SecurityMode = "open"    // no port requires a token
	SecurityStrict  SecurityMode = "strict"  // all ports require a token
)

// UnmarshalText parses a mode.
func (m *SecurityMode) UnmarshalText(text []byte) error { return choose(m, text, m.choices()) }

func (m *SecurityMode) choices() []SecurityMode {
	return []SecurityMode{SecurityDefault, SecurityOpen, SecurityStrict}
}
func (m *SecurityMode) expected() string { return oneOf(m.choices()) }

// IngressAuth is the authentication required of callers of handlers.
type IngressAuth string

// The kinds.
const (
	IngressNone  IngressAuth = "none"
	IngressToken IngressAuth = "token"
)

// UnmarshalText parses a kind.
func (a *IngressAuth) UnmarshalText(text []byte) error { return choose(a, text, a.choices()) }

func (a *IngressAuth) choices() []IngressAuth { return []IngressAuth{IngressNone, IngressToken} }
func (a *IngressAuth) expected() string       { return oneOf(a.choices()) }

// LogLevels lists the levels that log-filter accepts.
func LogLevels() []string {
	return []string{"trace", "debug", "info", "warn", "warning", "error", "off"}
}

// OnMaxAttempts determines what happens to an invocation after its last attempt.
type OnMaxAttempts string

// The outcomes of an exhausted retry policy.
const (
	PauseOnMaxAttempts OnMaxAttempts = "pause" // wait for an operator
	KillOnMaxAttempts  OnMaxAttempts = "kill"  // complete with the failure
)

// UnmarshalText parses an outcome.
func (o *OnMaxAttempts) UnmarshalText(text []byte) error { return choose(o, text, o.choices()) }

func (o *OnMaxAttempts) choices() []OnMaxAttempts {
	return []OnMaxAttempts{PauseOnMaxAttempts, KillOnMaxAttempts}
}
func (o *OnMaxAttempts) expected() string { return oneOf(o.choices()) }

// choose sets the choice that text names, in any letter case.
func choose[T ~string](to *T, text []byte, choices []T) error {
	at := slices.IndexFunc(choices, func(c T) bool { return strings.EqualFold(string(c), string(text)) })
	if at < 0 {
		return errors.New(oneOf(choices))
	}
	*to = choices[at]
	return nil
}

func oneOf[T ~string](choices []T) string {
	words := make([]string, len(choices))
	for i, c := range choices {
		words[i] = string(c)
	}
	return "one of " + strings.Join(words, ", ")
}
