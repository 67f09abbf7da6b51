//go:build !linux

package process

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
)

func startTime(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", err
	}
	stat, start, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if strings.HasPrefix(stat, "Z") || start == "" {
		return "", os.ErrProcessDone
	}
	return strings.TrimSpace(start), nil
}
