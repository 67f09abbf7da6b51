package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ome.io/ome/internal/testenv"
)

// TestDocsMatchTheProgram: every line of an output block of a command page, apart
// from lines with values of their own, is a line of some transcript of the tests.
func TestDocsMatchTheProgram(t *testing.T) {
	var transcripts strings.Builder
	for _, pattern := range []string{"testdata/*/*.txt", "../view/testdata/*.txt", "../view/testdata/*/*.txt"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no transcripts at %s: %v", pattern, err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			transcripts.Write(b)
		}
	}
	own := []string{"Context ", "Workload NS ", "Target ", "UID ", "ResourceVersion ", "Affected ", "target ", "follow-up ",
		"Parent UID ", "parent UID ", "IR UID ", "IR RV ", "workload namespace "}
	pages, err := filepath.Glob(filepath.Join(testenv.Root(), "docs", "commands", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		inside := false
	lines:
		for line := range strings.SplitSeq(string(b), "\n") {
			if strings.HasPrefix(line, "```") {
				inside = line == "```output"
				continue
			}
			if !inside || line == "" {
				continue
			}
			for _, prefix := range own {
				if strings.HasPrefix(line, prefix) {
					continue lines
				}
			}
			checked++
			if !strings.Contains(transcripts.String(), line+"\n") {
				t.Errorf("%s: no transcript has the line %q", filepath.Base(page), line)
			}
		}
	}
	if checked < 30 {
		t.Errorf("only %d lines checked", checked)
	}
}
