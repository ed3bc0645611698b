package access

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHandlersDoNotGetTheCookiesOfTheServer(t *testing.T) {
	for name, c := range map[string]struct{ given, want []string }{
		"none":        {nil, nil},
		"others":      {[]string{"a=b; c=d"}, []string{"a=b; c=d"}},
		"only ours":   {[]string{"__Host-platform-session=plt_x; platform-login=y"}, nil},
		"among":       {[]string{"a=b; __Host-platform-session=plt_x;c=d", "platform-session=z"}, []string{"a=b; c=d"}},
		"other names": {[]string{"platform-sessions=a; x-platform-session=b"}, []string{"platform-sessions=a; x-platform-session=b"}},
	} {
		header := http.Header{}
		if c.given != nil {
			header["Cookie"] = c.given
		}
		WithoutSession(header)
		require.Equal(t, c.want, header["Cookie"], name)
	}
}

func TestCookiesCountForRequestsOfOwnPages(t *testing.T) {
	s := &Sessions{Origin: "https://platform.example.com", Secure: true}
	secret := NewSecret().Text
	read := func(method string, header ...string) string {
		r := request("platform.example.com", header...)
		r.Method = method
		r.Header.Add("Cookie", "__Host-platform-session="+secret)
		return s.token(r)
	}
	for _, header := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}, {"Origin", "https://platform.example.com"}} {
		require.Equal(t, secret, read(http.MethodPost, header...), header)
	}
	require.Equal(t, secret, read(http.MethodGet))
	for _, header := range [][]string{
		{}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://platform.example.com"}, {"Origin", "https://platform.example.com.evil.example"},
		{"Origin", "null"}, {"Sec-Fetch-Site", "cross-site", "Origin", "https://platform.example.com"},
	} {
		require.Empty(t, read(http.MethodPost, header...), header)
	}
	require.Equal(t, "platform-session", (&Sessions{}).Cookie(SessionCookie))
}

func TestServersOnOneHostHaveCookiesOfTheirOwn(t *testing.T) {
	for _, secure := range []bool{false, true} {
		first := &Sessions{Origin: "http://localhost:9070", Secure: secure}
		second := &Sessions{Origin: "http://localhost:9071", Secure: secure}
		require.NotEqual(t, first.Cookie(SessionCookie), second.Cookie(SessionCookie))
		require.NotEqual(t, first.Cookie(SessionCookie), first.Cookie(LoginCookie))
		header := http.Header{}
		for _, s := range []*Sessions{first, second} {
			header.Add("Cookie", s.Cookie(SessionCookie)+"=x; "+s.Cookie(LoginCookie)+"=y")
		}
		WithoutSession(header)
		require.Empty(t, header["Cookie"], "no handler gets any of them")
	}
}
