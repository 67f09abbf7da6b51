package source

import (
	"strings"
	"testing"
)

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"http://prom:9090":                 "",
		"https://prom.example/prometheus/": "",
		"HTTP://prom":                      "",
		"http://[2001:db8::1]:9090":        "",
		"":                                 "scheme",
		"prom:9090":                        "scheme",
		"//prom":                           "scheme",
		"file:///etc/passwd":               "scheme",
		"ftp://prom":                       "scheme",
		"http://":                          "names no host",
		"http://:9090":                     "names no host",
		"http:prom":                        "names no host",
		"http://a:pa55word@prom":           "user or password",
		"http://a@prom":                    "user or password",
		"http://prom?x=1":                  "query",
		"http://prom?":                     "query",
		"http://prom#x":                    "fragment",
		"http://prom#":                     "fragment",
		"http://prom /":                    "is not a URL",
		"http://prom\n":                    "is not a URL",
		"http://a:pa55word@prom:port":      "is not a URL",
		"http://%zz":                       "is not a URL",
	} {
		_, err := Address(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "pa55word") {
			t.Errorf("%q: the error repeats a password: %v", text, err)
		}
	}
}

func TestHeader(t *testing.T) {
	for _, tc := range []struct{ name, value, want string }{
		{"X-Scope-OrgID", "team-a", ""},
		{"X-Note", "a\tb ü", ""},
		{"Authorization", "Bearer x", "authRef"},
		{"authorization", "Basic x", "authRef"},
		{"HOST", "other", "set by the client"},
		{"Transfer-Encoding", "chunked", "set by the client"},
		{"connection", "X-A", "set by the client"},
		{"Content-Length", "0", "set by the client"},
		{"", "x", "not the name of a header"},
		{"X A", "x", "not the name of a header"},
		{"X-A:", "x", "not the name of a header"},
		{"X-Ä", "x", "not the name of a header"},
		{"X-A", "a\r\nHost: b", "control character"},
		{"X-A", "a\x00", "control character"},
		{"X-A", strings.Repeat("x", 5000), "more than"},
	} {
		err := Header(tc.name, tc.value)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %.20q: %v, want %q", tc.name, tc.value, err, tc.want)
		}
	}
}
