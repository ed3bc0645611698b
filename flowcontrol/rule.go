package flowcontrol

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"platform/internal/units"
)

// MaxDescriptionBytes is the maximum length of a rule's description.
const MaxDescriptionBytes = 1024

// Limits are the limits of a rule for each matching value. The zero Limits allow
// everything.
type Limits struct {
	Concurrency uint32  // maximum running concurrently; 0: no limit
	Rate        *Rate   // maximum starts per period; nil: no limit
	QueueLimit  *uint64 // maximum waiting; nil: no limit, 0: none may wait
}

// equal reports whether both allow the same.
func (l Limits) equal(other Limits) bool {
	return l.Concurrency == other.Concurrency && equalOrNil(l.Rate, other.Rate) && equalOrNil(l.QueueLimit, other.QueueLimit)
}

func equalOrNil[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Check validates the limits.
func (l Limits) Check() error {
	if l.Rate != nil {
		return l.Rate.check()
	}
	return nil
}

// Rate allows Count starts per Period, as a token bucket with a burst of Count.
type Rate struct {
	Count  uint32        // at least 1
	Period time.Duration // whole milliseconds, MinPeriod to MaxPeriod
}

// Bounds of periods. The resolution of partition time is a millisecond.
const (
	MinPeriod = time.Millisecond
	MaxPeriod = 31 * units.Day
)

var (
	errRateForm   = errors.New("a rate is a number and a period, such as 100/s, 30/min or 5/10s")
	errRateCount  = errors.New("a rate allows at least 1 and at most 4294967295 in its period")
	errRatePeriod = fmt.Errorf("the period of a rate is a whole number of milliseconds, at most %s", units.FormatDuration(MaxPeriod))
)

// check validates the rate.
func (r Rate) check() error {
	switch {
	case r.Count == 0:
		return errRateCount
	case r.Period < MinPeriod || r.Period > MaxPeriod || r.Period%MinPeriod != 0:
		return errRatePeriod
	}
	return nil
}

// String returns the form that ParseRate accepts: 100/s, 30/m, 5/10s.
func (r Rate) String() string {
	period := strings.ReplaceAll(units.FormatDuration(r.Period), " ", "")
	if unit, one := strings.CutPrefix(period, "1"); one && strings.Trim(unit, "smhd") == "" {
		period = unit
	}
	return strconv.FormatUint(uint64(r.Count), 10) + "/" + period
}

// ParseRate parses a number and a period: 100/s, 30/min, 5/10s. The default period is one
// second.
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
	if err := r.check(); err != nil {
		return Rate{}, fmt.Errorf("bad rate '%s': %w", text, err)
	}
	return r, nil
}

// parsePeriod parses a duration; a unit alone means one of it.
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
	Disabled    bool   // inactive, as if it did not exist
	Version     uint32 // grows with every change of Limits or Disabled; never reused for a pattern
	ModifiedAt  int64  // time of the last change, milliseconds since 1970
}

// Equal reports whether all fields are equal.
func (r *Rule) Equal(other *Rule) bool {
	return r.Pattern == other.Pattern && r.Limits.equal(other.Limits) && r.Description == other.Description &&
		r.Disabled == other.Disabled && r.Version == other.Version && r.ModifiedAt == other.ModifiedAt
}
