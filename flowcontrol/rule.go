package flowcontrol

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"platform/internal/units"
)

// MaxDescriptionBytes is the longest description of a rule.
const MaxDescriptionBytes = 1024

// Limits is what a rule allows each matching value. The zero Limits allow everything.
type Limits struct {
	Concurrency uint32  // most that run at once; 0: no limit
	Rate        *Rate   // most that start in a period; nil: no limit
	QueueLimit  *uint64 // most that wait; nil: no limit, 0: nobody waits
}

// Equal reports whether both allow the same.
func (l Limits) Equal(other Limits) bool {
	return l.Concurrency == other.Concurrency && same(l.Rate, other.Rate) && same(l.QueueLimit, other.QueueLimit)
}

func same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Check says what is wrong with the limits, nil if nothing is.
func (l Limits) Check() error {
	if l.Rate != nil {
		return l.Rate.Check()
	}
	return nil
}

// Rate allows Count starts in every Period, and Count at once after a pause.
type Rate struct {
	Count  uint32        // at least 1
	Period time.Duration // whole milliseconds, MinPeriod to MaxPeriod
}

// Bounds of periods. Partitions count time in milliseconds.
const (
	MinPeriod = time.Millisecond
	MaxPeriod = 31 * units.Day
)

var (
	errRateForm   = errors.New("a rate is a number and a period, such as 100/s, 30/min or 5/10s")
	errRateCount  = errors.New("a rate allows at least 1 and at most 4294967295 in its period")
	errRatePeriod = fmt.Errorf("the period of a rate is a whole number of milliseconds, at most %s", units.FormatDuration(MaxPeriod))
)

// Check says what is wrong with the rate, nil if nothing is.
func (r Rate) Check() error {
	switch {
	case r.Count == 0:
		return errRateCount
	case r.Period < MinPeriod || r.Period > MaxPeriod || r.Period%MinPeriod != 0:
		return errRatePeriod
	}
	return nil
}

// String is the form that ParseRate reads: 100/s, 30/m, 5/10s.
func (r Rate) String() string {
	period := strings.ReplaceAll(units.FormatDuration(r.Period), " ", "")
	if unit, one := strings.CutPrefix(period, "1"); one && strings.Trim(unit, "smhd") == "" {
		period = unit
	}
	return strconv.FormatUint(uint64(r.Count), 10) + "/" + period
}

// ParseRate reads a number and a period: 100/s, 30/min, 5/10s. Without a period it is
// one second.
func ParseRate(text string) (Rate, error) {
	count, period, given := strings.Cut(strings.TrimSpace(text), "/")
	n, err := strconv.ParseUint(strings.TrimSpace(count), 10, 32)
	if errors.Is(err, strconv.ErrRange) {
		return Rate{}, fmt.Errorf("bad rate '%s': %w", text, errRateCount)
	}
	if err != nil {
		return Rate{}, fmt.Errorf("bad rate '%s': %w", text, errRateForm)
	}
	r := Rate{Count: uint32(n), Period: time.Second}
	if given {
		if r.Period, err = parsePeriod(strings.TrimSpace(period)); err != nil {
			return Rate{}, fmt.Errorf("bad rate '%s': %w", text, errRateForm)
		}
	}
	if err := r.Check(); err != nil {
		return Rate{}, fmt.Errorf("bad rate '%s': %w", text, err)
	}
	return r, nil
}

// parsePeriod reads a duration; a unit alone is one of it.
func parsePeriod(text string) (time.Duration, error) {
	if text != "" && (text[0] < '0' || text[0] > '9') && text[0] != 'P' && text[0] != 'p' {
		text = "1" + text
	}
	return units.ParseDuration(text)
}

// Rule pairs a pattern with limits.
type Rule struct {
	Pattern     Pattern
	Limits      Limits
	Description string
	Disabled    bool   // parked: as if it were absent
	Version     uint32 // grows with every change of limits or Disabled; never used twice for a pattern
	ModifiedAt  int64  // of the last change, milliseconds since 1970
}

// Equal reports whether both are the same in every field.
func (r *Rule) Equal(other *Rule) bool {
	return r.Pattern == other.Pattern && r.Limits.Equal(other.Limits) && r.Description == other.Description &&
		r.Disabled == other.Disabled && r.Version == other.Version && r.ModifiedAt == other.ModifiedAt
}
