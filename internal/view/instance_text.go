package view

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	// maxText is the longest text of foreign origin, in characters, in a report.
	maxText = 256
	// maxScan is how many bytes of it are looked at.
	maxScan = 4096

	redacted = "[REDACTED]"
)

// credentials matches what looks like a secret that slipped into a message: keys
// of well-known services, tokens, key=value pairs and passwords inside URLs.
var credentials = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`\bsk-[A-Za-z0-9_-]{16,}`,
		`eyJ[A-Za-z0-9_-]{9,}\.[A-Za-z0-9_.-]{8,}`,
		`\bhf_[A-Za-z0-9]{16,}`,
		`\bgh[pousr]_[A-Za-z0-9]{16,}`,
		`\bA[KS]IA[0-9A-Z]{16}`,
		`-----BEGIN [A-Z ]*PRIVATE KEY-----.*`,
		`(?i)\b(?:bearer|basic) +[A-Za-z0-9+/_.=-]{8,}`,
		`(?i)(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)["']?[=:] *["']?[^\s"',;]{6,}`,
		`://[^/\s:@]+:[^/\s@]+@`,
	}, "|"))
})

// safe makes text of foreign origin fit for one line of a report: what can't be
// seen becomes a space, runs of spaces one, what looks like a secret is replaced
// and the tail of long text is cut.
func safe(s string) string { return safeTo(s, maxText) }

func safeTo(s string, limit int) string {
	if len(s) <= limit && harmless(s) {
		return s
	}
	if len(s) > maxScan {
		s = s[:maxScan]
	}
	var b strings.Builder
	space := false
	for _, r := range strings.ToValidUTF8(s, "?") {
		if r == ' ' || !unicode.IsGraphic(r) || unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return clip(credentials().ReplaceAllString(b.String(), redacted), limit)
}

// harmless is true for the characters of names, words and times without the start
// of a key of a well-known service. It spares the many rows of a list the search.
func harmless(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '/':
		default:
			return false
		}
	}
	return !strings.Contains(s, "sk-") && !strings.Contains(s, "eyJ") && !strings.Contains(s, "IA")
}

// clip cuts text to a number of characters and says so with three dots.
func clip(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	r := []rune(s)
	if limit <= 3 {
		return string(r[:limit])
	}
	return string(r[:limit-3]) + "..."
}

// ends keeps the first and the last four characters of a long name, which are
// what tells two revisions of a service apart.
func ends(s string) string {
	r := []rune(s)
	if len(r) <= 9 {
		return s
	}
	return string(r[:4]) + "…" + string(r[len(r)-4:])
}

// objectName is true for a name that an API server would store.
func objectName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case (c == '-' || c == '.') && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return true
}

// IsRevision is true for the full name of a revision of a replica.
func IsRevision(replica, name string) bool { return revisionOf(replica, name) }

// revisionOf is true for the full name of a revision of a component: the
// replica's name, a hyphen and eight lowercase hexadecimal digits.
func revisionOf(replica, name string) bool {
	hash, ok := strings.CutPrefix(name, replica+"-")
	if !ok || len(hash) != 8 {
		return false
	}
	for i := range len(hash) {
		if c := hash[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
