// Package source says what may be the address of a metrics server and what
// may be sent to it as a header. Admission and the sampler both ask it. It
// looks nothing up.
package source

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// maxHeader bounds the value of a header.
const maxHeader = 4 << 10

// Address reads the base address of a Prometheus HTTP API. Errors don't repeat the address, which may
// hold a password.
func Address(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || strings.ContainsAny(text, " \t\r\n") {
		return nil, errors.New("is not a URL; use one such as http://prometheus.monitoring:9090")
	}
	switch {
	case u.User != nil:
		return nil, errors.New("has a user or password in it, which everybody can read; use a token by authRef")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("has scheme %q; use http or https", u.Scheme)
	case u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("names no host; use a URL such as http://prometheus.monitoring:9090")
	case u.RawQuery != "" || u.ForceQuery:
		return nil, errors.New("has a query (?); give the base address alone")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return nil, errors.New("has a fragment (#); give the base address alone")
	}
	return u, nil
}

// ownHeaders are the client's to set: the token has its own field, Host would reach another server
// behind the same address, and the others are about the connection.
var ownHeaders = map[string]bool{
	"authorization": true, "host": true, "connection": true, "proxy-connection": true, "keep-alive": true, "te": true,
	"trailer": true, "transfer-encoding": true, "upgrade": true, "proxy-authorization": true, "proxy-authenticate": true,
	"content-length": true, "content-type": true, "content-encoding": true, "accept-encoding": true, "expect": true,
}

// Header judges one extra header.
func Header(name, value string) error {
	const token = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	switch {
	case name == "" || strings.Trim(name, token) != "":
		return fmt.Errorf("%q is not the name of a header", name)
	case strings.EqualFold(name, "Authorization"):
		return errors.New("a token doesn't go into a header, where everybody can read it; use authRef")
	case ownHeaders[strings.ToLower(name)]:
		return fmt.Errorf("%s is set by the client; remove it", name)
	case len(value) > maxHeader:
		return fmt.Errorf("a value of %d bytes is more than %d", len(value), maxHeader)
	}
	for _, c := range []byte(value) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return errors.New("the value has a control character in it")
		}
	}
	return nil
}
