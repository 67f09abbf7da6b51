package rows

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ome.io/ome/api/v1beta1"
)

// sets lists every index set of columns, by field.
func sets(c *v1beta1.InstanceStatusColumns) map[string]*v1beta1.IndexSet {
	out := map[string]*v1beta1.IndexSet{"members": &c.Members}
	if c.Admitted != "" {
		out["admitted"] = &c.Admitted
	}
	if c.ActiveOrdinalOne != "" {
		out["activeOrdinalOne"] = &c.ActiveOrdinalOne
	}
	for i := range c.Phases {
		out["phases "+string(c.Phases[i].Value)] = &c.Phases[i].Indexes
	}
	for name, groups := range map[string][]v1beta1.InstanceRevisionGroup{"runningRevisions": c.RunningRevisions, "targetRevisions": c.TargetRevisions} {
		for i := range groups {
			out[name+" "+groups[i].Value] = &groups[i].Indexes
		}
	}
	for i := range c.Incarnations {
		out["incarnations "+quote(c.Incarnations[i].Value)] = &c.Incarnations[i].Indexes
	}
	for name, groups := range map[string][]v1beta1.InstanceCountGroup{
		"podCounts": c.PodCounts, "servingPodCounts": c.ServingPodCounts, "availablePodCounts": c.AvailablePodCounts,
	} {
		for i := range groups {
			out[name+" "+quote(int64(groups[i].Value))] = &groups[i].Indexes
		}
	}
	return out
}

// edits are all texts that one character more, less or other makes of a text.
func edits(text string) []string {
	const alphabet = "0123456789,- +x"
	var out []string
	for i := 0; i <= len(text); i++ {
		for j := range len(alphabet) {
			c := alphabet[j : j+1]
			out = append(out, text[:i]+c+text[i:])
			if i < len(text) && text[i:i+1] != c {
				out = append(out, text[:i]+c+text[i+1:])
			}
		}
		if i < len(text) {
			out = append(out, text[:i]+text[i+1:])
		}
	}
	return out
}

// tryEdits makes every edit of one set. Each is refused for a documented reason, or
// is itself the one spelling of other rows.
func tryEdits(t interface {
	Helper()
	Fatalf(string, ...any)
}, columns *v1beta1.InstanceStatusColumns, rows []v1beta1.InstanceStatus, field string, set *v1beta1.IndexSet, reasons map[Reason]int) {
	t.Helper()
	was := *set
	defer func() { *set = was }()
	for _, edit := range edits(string(was)) {
		*set = v1beta1.IndexSet(edit)
		s := &v1beta1.InferenceReplicaStatus{InstanceStatusEncoding: v1beta1.InstanceStatusColumnarV2, InstanceStatusColumns: columns}
		got, err := Decode(s, 4096)
		if err != nil {
			decode, ok := err.(*DecodeError)
			if !ok || got != nil {
				t.Fatalf("%s: %q for %q gives %d rows and the error %v", field, edit, was, len(got), err)
			}
			reasons[decode.Reason]++
			continue
		}
		reasons[""]++
		if cmp.Equal(rows, got) {
			t.Fatalf("%s: %q is another spelling of %q", field, edit, was)
		}
		if diff := cmp.Diff(columns, columnsOf(got)); diff != "" {
			t.Fatalf("%s: %q for %q decodes and is not canonical (-stored +again):\n%s", field, edit, was, diff)
		}
	}
}

// No set of a stored status has a second spelling: one edit of one character gives
// other rows or an error, whichever set it is in.
func TestPropertyOneSpellingOfEachSet(t *testing.T) {
	reasons := map[Reason]int{}
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		rows = rows[:min(len(rows), rapid.IntRange(1, 12).Draw(t, "rows"))]
		columns := columnsOf(normalized(rows))
		all := sets(columns)
		field := rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(t, "set")
		tryEdits(t, columns, rows, field, all[field], reasons)
	})
	// The rarer outcomes are reached for certain in the next test.
	for _, r := range []Reason{RangeSyntax, NotMember, IndexOverflow} {
		if reasons[r] == 0 {
			t.Errorf("no edit ends as %q: %v", r, reasons)
		}
	}
}

// The same for all sets of one status that holds every column.
func TestOneSpellingOfEachSetOfAGang(t *testing.T) {
	s := status(t, gangStatus)
	s.InstanceStatusColumns.ActiveOrdinalOne = "1-2,7"
	rows, err := Decode(s, limit)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[Reason]int{}
	all := sets(s.InstanceStatusColumns)
	for field, set := range all {
		tryEdits(t, s.InstanceStatusColumns, rows, field, set, reasons)
	}
	if len(all) != 14 {
		t.Errorf("%d sets tried", len(all))
	}
	for _, r := range []Reason{"", RangeSyntax, NotMember, Coverage, Overlap} {
		if reasons[r] == 0 {
			t.Errorf("no edit ends as %q: %v", r, reasons)
		}
	}
}
