package guarded

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxShown is the longest value, in characters, that a preview shows. A longer
// one can't be checked by eye, so it is refused instead of being cut.
const maxShown = 768

// maxDetail bounds text of foreign origin, such as an API server's message, on
// a detail line.
const maxDetail = 400

// Unsafe reports whether a value must not be shown: it isn't valid UTF-8, could
// move the cursor or hide itself, is too long to read, or looks like a secret.
func Unsafe(s string) bool {
	if !utf8.ValidString(s) || utf8.RuneCountInString(s) > maxShown {
		return true
	}
	for _, r := range s {
		if !printable(r) {
			return true
		}
	}
	return looksLikeCredential(s)
}

// printable accepts what occupies a cell of the screen, and the plain space.
func printable(r rune) bool {
	return r == ' ' || (unicode.IsGraphic(r) && !unicode.Is(unicode.Zs, r))
}

// Clean makes text of foreign origin fit for one terminal line: control and
// invisible characters become spaces, runs of spaces one, secrets and the tail
// of long text are cut.
func Clean(s string) string {
	var b strings.Builder
	space := false
	for _, r := range strings.ToValidUTF8(s, "?") {
		if !printable(r) || r == ' ' {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	words := strings.Split(b.String(), " ")
	for i, w := range words {
		if looksLikeCredential(w) {
			words[i] = "[hidden]"
		}
	}
	out := []rune(strings.Join(words, " "))
	if len(out) > maxDetail {
		return string(out[:maxDetail-3]) + "..."
	}
	return string(out)
}

// Quote shows a value in double quotes with everything unusual escaped.
func Quote(s string) string { return strconv.Quote(s) }

// looksLikeCredential spots the two secrets that end up in annotations and
// names by accident: API keys that start with sk- and JSON Web Tokens.
func looksLikeCredential(s string) bool {
	for i := 0; ; {
		j := strings.Index(s[i:], "sk-")
		if j < 0 {
			break
		}
		at := i + j
		if (at == 0 || !isWord(s[at-1])) && tokenLen(s[at+3:]) >= 16 {
			return true
		}
		i = at + 3
	}
	for i := 0; ; {
		j := strings.Index(s[i:], "eyJ")
		if j < 0 {
			return false
		}
		at := i + j
		rest := s[at:]
		head := tokenLen(rest)
		if head >= 12 && head < len(rest) && rest[head] == '.' && tokenLen(rest[head+1:]) >= 8 {
			return true
		}
		i = at + 3
	}
}

// tokenLen counts the leading base64url characters.
func tokenLen(s string) int {
	for i := range len(s) {
		if c := s[i]; !isWord(c) && c != '-' && c != '_' {
			return i
		}
	}
	return len(s)
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// ShellQuote makes one shell word of a value, with quotes only when needed.
func ShellQuote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r > unicode.MaxASCII || !(isWord(byte(r)) || strings.ContainsRune("_./:@%+=-", r))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
