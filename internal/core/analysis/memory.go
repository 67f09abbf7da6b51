package analysis

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"ome.io/ome/api/v1beta1"
)

// MaxSeries is the number of series of one metric whose coming and going is followed.
const MaxSeries = 256

// width is the length of one hash in the memory: 30 bits, so that two of MaxSeries series agree
// once in some 30,000 metrics, and then a loss of one of the two may go unseen.
const width = 5

// seen is the memory of a metric, while its query is the one that it was made with.
func (o *Output) seen(m metric) string {
	for _, s := range o.series {
		if s.Name == m.Name && s.Query == hash(m.query) {
			return s.Hashes
		}
	}
	return ""
}

func (o *Output) remember(m metric, hashes string) {
	next := []v1beta1.AnalysisSeries{}
	for _, s := range o.series {
		if s.Name != m.Name {
			next = append(next, s)
		}
	}
	if hashes != "" {
		next = append(next, v1beta1.AnalysisSeries{Name: m.Name, Query: hash(m.query), Hashes: hashes})
	}
	o.series = next
}

// grow adds the series of an answer to the memory, and counts those of the memory that are gone.
// The memory keeps them: a series that went and a sample later passes without it is still gone.
func grow(memory string, series []Series) (grown string, gone int) {
	var known, now []string
	for ; len(memory) >= width; memory = memory[width:] {
		known = append(known, memory[:width])
	}
	for _, s := range series {
		now = append(now, hash(s.Labels))
	}
	slices.Sort(now)
	now = slices.Compact(now)
	for _, k := range known {
		if _, here := slices.BinarySearch(now, k); !here {
			gone++
		}
	}
	all := append(known, now...)
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > MaxSeries {
		all = known // what is kept is never forgotten; a metric of so many series doesn't pass
	}
	return strings.Join(all, ""), gone
}

func hash(labels string) string {
	sum := sha256.Sum256([]byte(labels))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:width]
}
