package sim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"ome.io/ome/api/v1beta1"
)

// timelines are the logs that are drawn. A progression that comes later needs a log, and
// a line here; lines of its log that are no pod moves become notes.
var timelines = []struct{ log, title string }{
	{"blue-green", "Blue-green"},
	{"rolling-update", "Rolling update, maxSurge 1, maxUnavailable 0"},
	{"sequence", "Sequence, soak 10m"},
	{"ratio-25", "Blue-green with maintainRatio, tolerance 25"},
	{"pairing-1-1", "Blue-green with a new pairingProtocol"},
}

// count is what one component has at one moment.
type count struct{ old, fresh, coming int }

func (n count) serving() int { return n.old + n.fresh }

// moment is a row of a timeline.
type moment struct {
	at    time.Duration
	count map[v1beta1.ComponentType]count
	notes []string
}

// line is a whole timeline: what changes after the service first came to rest.
type line struct {
	title   string
	kinds   []v1beta1.ComponentType
	desired map[v1beta1.ComponentType]int
	moments []moment
}

var podMove = regexp.MustCompile(`^(\w+): (create|serve|unserve|delete|force-delete)? ?(\d+/\d)(?: at (\w))?(.*)$`)

// readLine makes a timeline of the lines of a log, and of nothing else.
func readLine(t *testing.T, title string, log []string) *line {
	type pod struct {
		rev     string
		serving bool
	}
	pods := map[v1beta1.ComponentType]map[string]*pod{}
	old := map[v1beta1.ComponentType]string{}
	l := &line{title: title, desired: map[v1beta1.ComponentType]int{}}
	now, verb, begun := time.Duration(0), "", false
	state := func() map[v1beta1.ComponentType]count {
		out := map[v1beta1.ComponentType]count{}
		for _, kind := range l.kinds {
			var n count
			for _, p := range pods[kind] {
				switch {
				case !p.serving:
					n.coming++
				case p.rev == old[kind]:
					n.old++
				default:
					n.fresh++
				}
			}
			out[kind] = n
		}
		return out
	}
	row := func(notes ...string) {
		if begun {
			l.moments = append(l.moments, moment{now, state(), notes})
		}
		verb = ""
	}
	for _, text := range log {
		if d, ok := strings.CutPrefix(text, "-- "); ok {
			d, ok = strings.CutSuffix(d, " later")
			switch {
			case ok:
				passed, err := time.ParseDuration(d)
				if err != nil {
					t.Fatal(err)
				}
				now += passed
				row(d + " later")
			case strings.HasPrefix(text, "-- at rest") && !begun:
				for kind, all := range pods {
					l.desired[kind] = len(all)
				}
				l.kinds = slices.DeleteFunc(slices.Clone(order), func(k v1beta1.ComponentType) bool { return len(pods[k]) == 0 })
				begun = true
			}
			continue
		}
		m := podMove.FindStringSubmatch(text)
		if m == nil {
			row(text)
			continue
		}
		kind, name := v1beta1.ComponentType(m[1]), m[3]
		if pods[kind] == nil {
			pods[kind], old[kind] = map[string]*pod{}, m[4]
		}
		// Moves of one kind in a row are one moment.
		if now := m[2]; now == "create" || now == "serve" || now == "unserve" {
			if verb != "" && verb != now {
				row()
			}
			verb = now
		}
		switch m[2] {
		case "create":
			pods[kind][name] = &pod{rev: m[4]}
		case "serve":
			pods[kind][name].serving = true
		case "unserve", "delete", "force-delete":
			delete(pods[kind], name)
		}
	}
	row()
	return l.thin()
}

// thin drops the rows that say what the row before said.
func (l *line) thin() *line {
	var out []moment
	for _, m := range l.moments {
		n := len(out) - 1
		if n >= 0 && out[n].at == m.at && cmp.Equal(out[n].count, m.count, cmp.AllowUnexported(count{})) && (len(m.notes) == 0 || len(out[n].notes) > 0) {
			out[n].notes = append(out[n].notes, m.notes...)
			continue
		}
		out = append(out, m)
	}
	l.moments = out
	return l
}

// text is the timeline for a page in monospace.
func (l *line) text(from string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", l.title)
	fmt.Fprintf(&b, "From %s. Time goes down; rows without a time follow at once.\n\n", from)
	b.WriteString("█ serves the old revision   ░ serves the new one   · comes up\n\n")
	width := func(kind v1beta1.ComponentType) int {
		most := len(kind)
		for _, m := range l.moments {
			most = max(most, m.count[kind].serving()+m.count[kind].coming)
		}
		return most
	}
	head := fmt.Sprintf("%8s", "")
	for _, kind := range l.kinds {
		head += fmt.Sprintf("  %-*s  old new serving", width(kind), kind)
	}
	b.WriteString(head + "\n")
	last := time.Duration(-1)
	for _, m := range l.moments {
		stamp := ""
		if m.at != last {
			stamp, last = m.at.String(), m.at
		}
		row := fmt.Sprintf("%8s", stamp)
		for _, kind := range l.kinds {
			n := m.count[kind]
			bar := strings.Repeat("█", n.old) + strings.Repeat("░", n.fresh) + strings.Repeat("·", n.coming)
			row += fmt.Sprintf("  %s%s  %3d %3d %7d", bar, strings.Repeat(" ", width(kind)-n.serving()-n.coming), n.old, n.fresh, n.serving())
		}
		for i, note := range m.notes {
			if i > 0 {
				row += "\n" + strings.Repeat(" ", len([]rune(head)))
			}
			row += "   " + note
		}
		b.WriteString(row + "\n")
	}
	return b.String()
}

// TestTimeline sees that the drawings of docs/timelines are those of the logs.
func TestTimeline(t *testing.T) {
	for _, tl := range timelines {
		t.Run(tl.log, func(t *testing.T) {
			from := "docs/scenarios/" + tl.log + ".txtar"
			raw, err := os.ReadFile("../../" + from)
			if err != nil {
				t.Fatal(err)
			}
			l := readLine(t, tl.title, lines(txtar.Parse(raw), "log"))
			if len(l.moments) < 4 {
				t.Fatalf("%d moments: the log is not understood", len(l.moments))
			}
			for ext, got := range map[string]string{".txt": l.text(from), ".svg": l.svg()} {
				file := filepath.Join("../../docs/timelines", tl.log+ext)
				want, err := os.ReadFile(file)
				if *update {
					if !bytes.Equal(want, []byte(got)) {
						err = os.WriteFile(file, []byte(got), 0o644)
					}
					if err != nil {
						t.Fatal(err)
					}
				} else if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("%s is not what the log says; run with -update (-want +got):\n%s", file, diff)
				}
			}
		})
	}
}
