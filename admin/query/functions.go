package query

import (
	"cmp"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"modernc.org/sqlite"

	"platform/admin/rest"
)

// function is a function that SQLite does not have. args is the number of arguments, -1 if
// variable. The result is NULL if any argument is.
type function struct {
	args int
	call func(s *session, args []driver.Value) (driver.Value, error)
}

// functions are the functions of the query language that SQLite does not have.
var functions = map[string]function{
	"now": {0, func(s *session, _ []driver.Value) (driver.Value, error) { return timestampText(s.now), nil }},
	"to_timestamp": {1, func(_ *session, args []driver.Value) (driver.Value, error) {
		t, err := timeOf(args[0])
		return timestampText(t), err
	}},
	"to_timestamp_millis": {1, func(_ *session, args []driver.Value) (driver.Value, error) {
		ms, err := wholeOf(args[0])
		return timestampText(time.UnixMilli(ms)), err
	}},
	"time_add": {2, timeAdd},
	"time_sub": {2, func(s *session, args []driver.Value) (driver.Value, error) {
		if _, isText := args[1].(string); isText { // the difference of two times
			return timeDiff(s, args)
		}
		return timeSub(s, args)
	}},
	"time_diff":  {2, timeDiff},
	plusFunction: {2, timeAdd},
	minusFunction: {2, func(s *session, args []driver.Value) (driver.Value, error) {
		_, fromNumber := numberOf(args[0])
		_, isNumber := numberOf(args[1])
		switch {
		case isNumber:
			return timeSub(s, args)
		case fromNumber:
			return nil, fmt.Errorf("the time %q cannot be subtracted from a number", stringOf(args[1]))
		}
		return timeDiff(s, args)
	}},
	"to_unixtime": {1, func(_ *session, args []driver.Value) (driver.Value, error) {
		t, err := timeOf(args[0])
		return t.Unix(), err
	}},
	"from_unixtime": {1, func(_ *session, args []driver.Value) (driver.Value, error) {
		t, err := timeOf(args[0])
		return timestampText(t), err
	}},
	"date_trunc":     {2, dateTrunc},
	"date_bin":       {-1, dateBin},
	"date_part":      {2, datePart},
	"iso_duration":   {1, func(_ *session, args []driver.Value) (driver.Value, error) { return isoOf(args[0]) }},
	"array_contains": {2, arrayContains},
	"array_has":      {2, arrayContains},
	"array_length":   {1, arrayLength},
	"cardinality":    {1, arrayLength},
	"regexp":         {2, func(s *session, args []driver.Value) (driver.Value, error) { return s.matches(args[1], args[0]) }},
	"regexp_like":    {2, func(s *session, args []driver.Value) (driver.Value, error) { return s.matches(args[0], args[1]) }},
	"starts_with": {2, func(_ *session, args []driver.Value) (driver.Value, error) {
		return boolean(strings.HasPrefix(stringOf(args[0]), stringOf(args[1]))), nil
	}},
	"ends_with": {2, func(_ *session, args []driver.Value) (driver.Value, error) {
		return boolean(strings.HasSuffix(stringOf(args[0]), stringOf(args[1]))), nil
	}},
	orderFunction:      {1, keyText},
	valueFunction:      {1, storedKey},
	"char_length":      {1, charLength},
	"character_length": {1, charLength},
	"match":            {2, matchList},
	"strpos": {2, func(_ *session, args []driver.Value) (driver.Value, error) {
		return int64(strings.Index(stringOf(args[0]), stringOf(args[1])) + 1), nil
	}},
	"split_part": {3, splitPart},
	"left":       {2, left},
	"right":      {2, right},
}

// Functions for sums and differences of which the rewriter does not know whether they are those of
// times or of numbers.
const (
	plusFunction  = "plus"
	minusFunction = "minus"
)

// timeAdd adds milliseconds and a time in any order, or two numbers: the rewriter knows times by their
// names only.
func timeAdd(_ *session, args []driver.Value) (driver.Value, error) {
	if sum, ok := sumOf(args[0], args[1], 1); ok {
		return sum, nil
	}
	if _, isNumber := numberOf(args[0]); isNumber {
		slices.Reverse(args)
	}
	t, err := timeOf(args[0])
	ms, badNumber := wholeOf(args[1])
	return timestampText(later(t, ms)), errors.Join(err, badNumber)
}

// timeSub is like timeAdd, but subtracts.
func timeSub(_ *session, args []driver.Value) (driver.Value, error) {
	if difference, ok := sumOf(args[0], args[1], -1); ok {
		return difference, nil
	}
	t, err := timeOf(args[0])
	ms, badNumber := wholeOf(args[1])
	return timestampText(later(t, -ms)), errors.Join(err, badNumber)
}

// sumOf returns a plus b, or with the sign -1 minus b; false if they are not numbers. Like that of
// SQLite, the result is a floating-point number if it does not have 64 bits.
func sumOf(a, b driver.Value, sign int64) (driver.Value, bool) {
	x, xNumber := numberOf(a)
	y, yNumber := numberOf(b)
	if !xNumber || !yNumber {
		return nil, false
	}
	m, mWhole := a.(int64)
	n, nWhole := b.(int64)
	float := x + float64(sign)*y
	if !mWhole || !nWhole || math.Abs(float) > 1<<62 {
		return float, true
	}
	return m + sign*n, true
}

// later returns t plus ms milliseconds. It does not use time.Duration, which overflows after 292
// years.
func later(t time.Time, ms int64) time.Time {
	return time.Unix(t.Unix()+ms/1000, int64(t.Nanosecond())+ms%1000*int64(time.Millisecond))
}

// charLength returns the number of characters of a text.
func charLength(_ *session, args []driver.Value) (driver.Value, error) {
	return int64(utf8.RuneCountInString(textOf(args[0]))), nil
}

var errMatch = errors.New("MATCH is not supported; use LIKE, GLOB or regexp_like(text, pattern)")

// matchList implements MATCH if the source does not evaluate it. It returns true for lists of the
// rewriter: the IN next to each of them selects the rows.
func matchList(_ *session, args []driver.Value) (driver.Value, error) {
	if !strings.HasPrefix(stringOf(args[0]), listMark) {
		return nil, errMatch
	}
	return int64(1), nil
}

// timeDiff returns the milliseconds between two times.
func timeDiff(_ *session, args []driver.Value) (driver.Value, error) {
	if difference, ok := sumOf(args[0], args[1], -1); ok {
		return difference, nil
	}
	a, err := timeOf(args[0])
	b, badTime := timeOf(args[1])
	return a.Sub(b).Milliseconds(), errors.Join(err, badTime)
}

// builtin are the functions of SQLite that queries may use. Others are rejected because they
// access the connection or internals.
var builtin = strings.Fields(`
	abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos cosh count cume_dist
	date datetime degrees dense_rank exp first_value floor format glob group_concat hex if ifnull iif instr json json_array
	json_array_length json_extract json_group_array json_group_object json_object json_pretty json_quote
	json_remove json_replace json_set json_insert json_type json_valid julianday lag last_value lead length like likelihood
	likely ln log log10 log2 lower ltrim max min mod nth_value ntile nullif octet_length percent_rank
	pi pow power printf quote radians random rank replace round row_number rtrim sign sin sinh
	sqrt string_agg strftime substr substring sum tan tanh time timediff total trim trunc typeof unhex unicode unistr
	unixepoch unlikely upper -> ->> current_date current_time current_timestamp subtype`)

var allowedFunctions = func() map[string]bool {
	allowed := map[string]bool{}
	for _, name := range builtin {
		allowed[name] = true
	}
	for name := range functions {
		allowed[name] = true
	}
	for _, name := range []string{"greatest", "least", firstOf, lastOf} {
		allowed[name] = true
	}
	for name := range quantiles {
		allowed[name] = true
	}
	return allowed
}()

// functionNames are the candidates for suggestions.
func functionNames() []string { return slices.Sorted(maps.Keys(allowedFunctions)) }

func (s *session) registerFunctions(d *sqlite.Driver) error {
	all := maps.Clone(functions)
	maps.Copy(all, textFunctions)
	for name, f := range all {
		err := d.RegisterScalarFunction(name, int32(f.args), func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			if slices.Contains(args, nil) {
				return nil, nil
			}
			return f.call(s, args)
		})
		if err != nil {
			return fmt.Errorf("register function %s: %w", name, err)
		}
	}
	for name, sign := range map[string]int{"greatest": 1, "least": -1} {
		if err := d.RegisterScalarFunction(name, -1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			return extreme(args, sign), nil
		}); err != nil {
			return fmt.Errorf("register function %s: %w", name, err)
		}
	}
	return s.registerAggregates(d)
}

// extreme returns the greatest value, or with the sign -1 the least one, ignoring NULL. As in
// SQLite, numbers sort before text.
func extreme(args []driver.Value, sign int) driver.Value {
	var best driver.Value
	for _, v := range args {
		if v != nil && (best == nil || compareValues(v, best)*sign > 0) {
			best = v
		}
	}
	return best
}

func compareValues(a, b driver.Value) int {
	x, xNumber := numberOf(a)
	y, yNumber := numberOf(b)
	switch {
	case xNumber && yNumber:
		if m, ok := a.(int64); ok {
			if n, ok := b.(int64); ok {
				return cmp.Compare(m, n)
			}
		}
		return cmp.Compare(x, y)
	case xNumber:
		return -1
	case yNumber:
		return 1
	}
	return strings.Compare(stringOf(a), stringOf(b))
}

func numberOf(v driver.Value) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func stringOf(v driver.Value) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	}
	return fmt.Sprint(v)
}

func wholeOf(v driver.Value) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case float64:
		return int64(v), nil
	}
	return 0, fmt.Errorf("%s is not a number", rest.Shorten(stringOf(v)))
}

// timeOf parses a time: text, or seconds since 1970.
func timeOf(v driver.Value) (time.Time, error) {
	switch v := v.(type) {
	case int64:
		return time.Unix(v, 0), nil
	case float64:
		return time.UnixMilli(int64(v * 1000)), nil
	}
	return parseTime(stringOf(v))
}

func isoOf(v driver.Value) (driver.Value, error) {
	ms, err := wholeOf(v)
	return isoDuration(ms), err
}

func arrayContains(_ *session, args []driver.Value) (driver.Value, error) {
	contains, wanted := false, stringOf(args[1])
	err := elements(stringOf(args[0]), func(element string) {
		text := elementText(element)
		contains = contains || text == wanted || element[0] != '"' && isNumeral(text, args[1])
	})
	if err != nil {
		return nil, fmt.Errorf("array_contains: %w", err)
	}
	return boolean(contains), nil
}

// elementText returns an element of a JSON array as SQLite does: the content of a text, and true as 1.
func elementText(element string) string {
	switch element[0] {
	case '"':
		var text string
		_ = json.Unmarshal([]byte(element), &text) // cannot fail, since the array is valid
		return text
	case 't':
		return "1"
	case 'f':
		return "0"
	}
	return element
}

// isNumeral reports whether a text is a number in any notation, such as 1e3.
func isNumeral(text string, number driver.Value) bool {
	f, isNumber := numberOf(number)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if whole, ok := number.(int64); ok {
			return n == whole // which a float64 may not be able to distinguish from others
		}
	}
	parsed, err := strconv.ParseFloat(text, 64)
	return isNumber && err == nil && parsed == f
}

func arrayLength(_ *session, args []driver.Value) (driver.Value, error) {
	n := int64(0)
	if err := elements(stringOf(args[0]), func(string) { n++ }); err != nil {
		return nil, fmt.Errorf("array_length: %w", err)
	}
	return n, nil
}

// elements calls visit for the elements of a JSON array, one at a time: a list of the elements of a large
// value would need many times its memory.
func elements(text string, visit func(string)) error {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "[") || !json.Valid([]byte(text)) {
		return fmt.Errorf("%s is not an array", rest.Shorten(text))
	}
	depth, start := 0, 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if end := depth == 0; end || depth == 1 && text[i] == ',' {
			if element := strings.TrimSpace(text[start:i]); element != "" {
				visit(element)
			}
			start = i + 1
		}
	}
	return nil
}

// splitPart returns a part of a text, which are counted from 1, or from the end with negative numbers; "" if
// there is none with the number.
func splitPart(_ *session, args []driver.Value) (driver.Value, error) {
	text, separator := stringOf(args[0]), stringOf(args[1])
	n, err := wholeOf(args[2])
	if err == nil && n == 0 {
		err = errors.New("split_part: parts are counted from 1, or from the end with negative numbers; there is no part 0")
	}
	if err != nil {
		return nil, err
	}
	parts := int64(1)
	if separator != "" {
		parts += int64(strings.Count(text, separator))
	}
	if n < 0 {
		n += parts + 1
	}
	if n < 1 || n > parts {
		return "", nil
	}
	for ; n > 1; n-- {
		_, text, _ = strings.Cut(text, separator)
	}
	if separator != "" {
		text, _, _ = strings.Cut(text, separator)
	}
	return text, nil
}

// left returns the first characters of a text, or with a negative number all but the last ones.
func left(_ *session, args []driver.Value) (driver.Value, error) {
	text := textOf(args[0])
	n, err := wholeOf(args[1])
	if n < 0 {
		n += int64(utf8.RuneCountInString(text))
	}
	return text[:byteOffset(text, n)], err
}

// right returns the last characters of a text, or with a negative number all but the first ones.
func right(_ *session, args []driver.Value) (driver.Value, error) {
	text := textOf(args[0])
	n, err := wholeOf(args[1])
	if n >= 0 {
		return text[byteOffset(text, int64(utf8.RuneCountInString(text))-n):], err
	}
	return text[byteOffset(text, -n):], err
}

// byteOffset returns where the nth character of a text begins, within the bounds of the text.
func byteOffset(text string, n int64) int {
	for at := range text {
		if n <= 0 {
			return at
		}
		n--
	}
	return len(text)
}
