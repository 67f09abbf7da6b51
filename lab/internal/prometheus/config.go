package prometheus

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Interval is the time between two scrapes of a pod. A rate needs two, so a query's range is a few of them.
const Interval = time.Second

// files of one server, in its directory.
func configFile(dir string) string  { return filepath.Join(dir, "prometheus.yml") }
func targetsFile(dir string) string { return filepath.Join(dir, "targets.json") }

// config reads the targets from a file. The servers' own labels are as good as those of the target, and a pod whose
// revision changes in place keeps the label that its series had.
const config = `global:
  scrape_interval: %[1]s
  scrape_timeout: %[1]s
  evaluation_interval: 1h
scrape_configs:
  - job_name: pods
    honor_labels: true
    file_sd_configs:
      - files: [%[2]s]
`

// Prepare writes what the server reads at its start.
func Prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make Prometheus' directory: %w", err)
	}
	text := fmt.Sprintf(config, Interval, strconv.Quote(targetsFile(dir)))
	if err := os.WriteFile(configFile(dir), []byte(text), 0o644); err != nil {
		return fmt.Errorf("write Prometheus' configuration: %w", err)
	}
	return nil
}

// Args of the program.
func Args(dir string, port int) []string {
	return []string{
		"--config.file=" + configFile(dir),
		"--storage.tsdb.path=" + filepath.Join(dir, "data"),
		"--storage.tsdb.retention.time=1d",
		"--web.listen-address=127.0.0.1:" + strconv.Itoa(port),
		// A new pod is scraped within a second or so; the stock value is 5 s.
		"--scrape.discovery-reload-interval=500ms",
		"--log.level=warn",
	}
}
