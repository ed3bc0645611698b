package tracing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"pgregory.net/rapid"
)

func TestBaggageIsValidAndBounded(t *testing.T) {
	many := make([]string, 2*maxBaggageMembers)
	for i := range many {
		many[i] = fmt.Sprintf("k%d=v", i)
	}
	long := strings.Repeat("x", maxBaggage-len("b=1,a="))
	for _, c := range []struct {
		name   string
		values []string
		want   string
	}{
		{"none", nil, ""},
		{"empty", []string{"", " ,, "}, ""},
		{"one", []string{"user=alice"}, "user=alice"},
		{"several headers", []string{"a=1 , b=2;ttl=3", "c=%20x"}, "a=1,b=2;ttl=3,c=%20x"},
		{"malformed members", []string{"a=1,nothing,=2,b=c d,c=\"q\",e=\\,f=1"}, "a=1,f=1"},
		{"control characters", []string{"a=1\r\nx: y,b=2"}, "b=2"},
		{"not ASCII", []string{"a=\xff,b=ü,c=3"}, "c=3"},
		{"too many", []string{strings.Join(many, ",")}, strings.Join(many[:maxBaggageMembers], ",")},
		{"too many malformed ones", []string{strings.Repeat("x,", maxBaggageRead-1) + "a=1", "b=2"}, "a=1"},
		{"too long", []string{"b=1", "a=" + long + "x", "c=2"}, "b=1,c=2"},
		{"as long as possible", []string{"b=1", "a=" + long, "c=2"}, "b=1,a=" + long},
	} {
		require.Equal(t, c.want, Baggage(c.values), c.name)
	}
}

func TestWhatBaggageReturnsIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z]{1,3}=[a-z%0-9]{0,4}(;[a-z]=?[0-9]?)?`))
		b := Baggage([]string{strings.Join(rapid.SliceOfN(part, 0, 80).Draw(t, "parts"), ",")})
		require.LessOrEqual(t, len(b), maxBaggage)
		_, err := baggage.Parse(b)
		require.NoError(t, err)
		require.Equal(t, b, Baggage([]string{b}))
	})
}
