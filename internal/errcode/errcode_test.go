package errcode

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// documented lists every code of the published catalogue, in order.
var documented = strings.Fields(`
META0003 META0004 META0005 META0006 META0009 META0010 META0011 META0012 META0013 META0014 META0015 META0016 META0017 META0018 META0019 META0020 META0021 META0022
RT0001 RT0002 RT0003 RT0004 RT0005 RT0006 RT0007 RT0009 RT0010 RT0011 RT0012 RT0013 RT0014 RT0015 RT0016 RT0017 RT0018
RT0019 RT0020 RT0021 RT0022 RT0023 RT0024 RT0025 RT0026 RT0027`)

func TestCatalogueHoldsEveryDocumentedCodeOnceInOrder(t *testing.T) {
	var codes []string
	for _, entry := range All() {
		codes = append(codes, string(entry.Code))
	}
	require.Equal(t, documented, codes)
}

func TestEveryEntryExplainsItself(t *testing.T) {
	var titles []string
	for _, entry := range All() {
		for _, text := range []string{entry.Title, entry.Meaning, entry.Remedy} {
			require.NotEmpty(t, strings.TrimSpace(text), entry.Code)
		}
		require.True(t, strings.HasSuffix(entry.Meaning, ".") && strings.HasSuffix(entry.Remedy, "."), entry.Code)
		require.NotEmpty(t, http.StatusText(entry.HTTPStatus), entry.Code)
		require.False(t, slices.Contains(titles, entry.Title), "title of %s is used twice", entry.Code)
		titles = append(titles, entry.Title)
	}
}

func TestLookup(t *testing.T) {
	for _, code := range documented {
		for _, spelled := range []string{code, strings.ToLower(code)} {
			entry, ok := Lookup(Code(spelled))
			require.True(t, ok, spelled)
			require.Equal(t, Code(code), entry.Code)
		}
	}
	for _, code := range []Code{"", "RT0008", "META0001", "RT", "rt00071"} {
		_, ok := Lookup(code)
		require.False(t, ok, code)
	}
}

func TestErrorCarriesCodeStatusAndCause(t *testing.T) {
	err := fmt.Errorf("register: %w", New(META0003, "connect to %s: %w", "http://x/", io.ErrUnexpectedEOF))
	code, ok := Of(err)
	require.True(t, ok)
	require.Equal(t, META0003, code)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, http.StatusBadGateway, Status(err, 418))
	require.Equal(t, "[META0003] register: connect to http://x/: unexpected EOF", Text(err))

	moved := New(META0005, "name is reserved").WithStatus(http.StatusBadRequest)
	require.Equal(t, http.StatusBadRequest, moved.httpStatus())
	require.Equal(t, http.StatusInternalServerError, New("XX0001", "unknown").httpStatus())
}

func TestErrorWithoutCode(t *testing.T) {
	err := errors.New("plain")
	_, ok := Of(err)
	require.False(t, ok)
	require.Equal(t, 418, Status(err, 418))
	require.Equal(t, "plain", Text(err))
}

func TestCodeIsPrintedExactlyOnceHoweverOftenItIsWrapped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		err := error(New(RT0010, "%s", rapid.SampledFrom([]string{"dial", "[RT0010] dial", "[RT0010][RT0010] dial"}).Draw(t, "message")))
		for range rapid.IntRange(0, 4).Draw(t, "layers") {
			if rapid.Bool().Draw(t, "coded") {
				err = New(RT0010, "attempt: %w", err)
			} else {
				err = fmt.Errorf("invocation: %w", err)
			}
		}
		text := Text(err)
		require.Equal(t, 1, strings.Count(text, "RT0010"), text)
		require.True(t, strings.HasPrefix(text, "[RT0010] "), text)
		require.True(t, strings.HasSuffix(text, "dial"), text)
	})
}
