package process

import (
	"bytes"
	"io"
	"os"
	"strings"
)

const tailBytes = 64 << 10

// ReadFrom returns what was written to a log after offset, at most the last 64 KiB of it.
func ReadFrom(path string, offset int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err == nil && end-offset > tailBytes {
		offset = end - tailBytes
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return ""
	}
	raw, _ := io.ReadAll(f)
	return string(bytes.ToValidUTF8(raw, []byte("?")))
}

// Tail returns the last n lines of a log.
func Tail(path string, n int) string {
	lines := strings.Split(strings.TrimRight(ReadFrom(path, 0), "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}

// PortTaken reports whether a log says that a port could not be bound.
func PortTaken(log string) bool {
	return strings.Contains(log, "address already in use") || strings.Contains(log, "bind: permission denied")
}
