package metadata

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInputRulesCheck(t *testing.T) {
	const (
		js     = "application/json"
		absent = "(absent)"
	)
	schema := json.RawMessage(`{}`)
	for _, tc := range []struct {
		name        string
		rules       InputRules
		contentType string
		body        string
		rejection   string // part of the error; empty: accepted
	}{
		{"nothing announced takes nothing", InputRules{Any: true}, absent, "", ""},
		{"nothing announced takes a value", InputRules{Any: true}, "text/plain", "x", ""},
		{"nothing announced takes an untyped value", InputRules{Any: true}, absent, "x", ""},

		{"empty rules take nothing", InputRules{}, absent, "", ""},
		{"empty rules refuse a value", InputRules{}, js, "1", "expected an empty body"},
		{"empty rules refuse an untyped value", InputRules{}, absent, "1", "expected an empty body"},
		{"empty rules refuse a content type", InputRules{}, js, "", "expected no content-type, got 'application/json'"},

		{"optional takes nothing", InputRules{ContentType: js, JSONSchema: schema}, absent, "", ""},
		{"optional takes a value", InputRules{ContentType: js, JSONSchema: schema}, js, "1", ""},
		{"optional refuses an empty typed body", InputRules{ContentType: js, JSONSchema: schema}, js, "", "the body is empty"},
		{"without schema a typed body may be empty", InputRules{ContentType: js}, js, "", ""},
		{"optional refuses an untyped value", InputRules{ContentType: js}, absent, "1", "lacks a content-type, expected 'application/json'"},

		{"required refuses nothing", InputRules{Required: true, ContentType: js}, absent, "", "a body with content-type 'application/json' is required"},
		{"required takes an empty typed body", InputRules{Required: true, ContentType: js}, js, "", ""},
		{"required with schema refuses an empty typed body", InputRules{Required: true, ContentType: js, JSONSchema: schema}, js, "", "the body is empty"},
		{"required without a type takes any", InputRules{Required: true}, "image/png", "x", ""},
		{"required without a type refuses an empty body", InputRules{Required: true}, "image/png", "", "the body is empty"},

		{"parameters are ignored", InputRules{ContentType: js}, "application/json; charset=utf-8", "1", ""},
		{"spaces are ignored", InputRules{ContentType: js}, " application/json ;q=1", "1", ""},
		{"letter case is ignored", InputRules{ContentType: js}, "Application/JSON", "1", ""},
		{"another type is refused", InputRules{ContentType: js}, "text/plain", "1", "Content-type 'text/plain' does not match 'application/json'"},
		{"a longer type is refused", InputRules{ContentType: js}, "application/json5", "1", "does not match"},
		{"wildcard subtype matches", InputRules{ContentType: "text/*"}, "text/html", "1", ""},
		{"wildcard subtype refuses another type", InputRules{ContentType: "text/*"}, js, "1", "does not match 'text/*'"},
		{"wildcard subtype compares whole types", InputRules{ContentType: "text/*"}, "textual/html", "1", "does not match"},
		{"full wildcard matches", InputRules{ContentType: "*/*"}, "image/png", "1", ""},
		{"full wildcard needs a type", InputRules{ContentType: "*/*"}, absent, "1", "lacks a content-type"},
		{"full wildcard refuses an empty type", InputRules{ContentType: "*/*"}, "", "1", "does not match"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			contentType, has := tc.contentType, true
			if contentType == absent {
				contentType, has = "", false
			}
			err := tc.rules.Check(contentType, has, []byte(tc.body))
			if tc.rejection == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "input validation error: ")
			require.ErrorContains(t, err, tc.rejection)
			require.IsType(t, &InputError{}, err)
		})
	}
}

func TestDescriptions(t *testing.T) {
	for want, rules := range map[string]InputRules{
		`none`: {},
		`one of ["none", "value of content-type */*"]`:              {Any: true},
		`one of ["none", "value of content-type application/json"]`: {ContentType: "application/json"},
		`value of content-type application/json`:                    {ContentType: "application/json", Required: true},
		`value of content-type */*`:                                 {Required: true},
	} {
		require.Equal(t, want, rules.Description())
	}
	require.Equal(t, "none", (&OutputRules{}).Description())
	require.Equal(t, "value of content-type text/plain", (&OutputRules{ContentType: "text/plain"}).Description())
}

func TestAnswerContentType(t *testing.T) {
	for _, tc := range []struct {
		rules  OutputRules
		length int
		want   string
	}{
		{OutputRules{}, 3, ""},
		{OutputRules{SetContentTypeIfEmpty: true}, 0, ""},
		{OutputRules{ContentType: "text/plain"}, 3, "text/plain"},
		{OutputRules{ContentType: "text/plain"}, 0, ""},
		{OutputRules{ContentType: "text/plain", SetContentTypeIfEmpty: true}, 0, "text/plain"},
	} {
		require.Equal(t, tc.want, tc.rules.ResponseContentType(tc.length))
	}
}

func TestValidContentType(t *testing.T) {
	for _, good := range []string{"*/*", "text/*", "application/json", "application/json; charset=utf-8", "application/vnd.x+json"} {
		require.True(t, ValidContentType(good), good)
	}
	for _, bad := range []string{"", "json", "*/json", "/json", "text/", "a/b/c", "text /plain", "text/plain, text/html"} {
		require.False(t, ValidContentType(bad), bad)
	}
}
