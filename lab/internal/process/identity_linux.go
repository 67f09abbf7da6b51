package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// startTime returns field 22 of /proc/PID/stat, counted after the command name, which may itself hold blanks. A zombie
// counts as gone: it holds no port and no memory.
func startTime(pid int) (string, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	end := strings.LastIndexByte(string(raw), ')')
	if end < 0 {
		return "", fmt.Errorf("unexpected format")
	}
	fields := strings.Fields(string(raw[end+1:]))
	if len(fields) < 20 {
		return "", fmt.Errorf("unexpected format: %d fields", len(fields))
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "", os.ErrProcessDone
	}
	return fields[19], nil
}
