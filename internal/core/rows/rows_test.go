package rows

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/api/v1beta1"
)

const limit = 1000

func status(t testing.TB, text string) *v1beta1.InferenceReplicaStatus {
	t.Helper()
	var s v1beta1.InferenceReplicaStatus
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return &s
}

// columnar wraps columns in a status.
func columnar(columns string) string {
	return `{"instanceStatusEncoding":"ColumnarV2","instanceStatusColumns":` + columns + `}`
}

// gangStatus is a component of three pods an Instance: four rows at rest, one that
// moves and its replacement.
const gangStatus = `{"instanceStatusEncoding":"ColumnarV2","instanceStatusColumns":{
  "members":"0-4,7",
  "phases":[{"value":"Creating","indexes":"7"},{"value":"Ready","indexes":"0-3"},{"value":"Updating","indexes":"4"}],
  "runningRevisions":[{"value":"tide-engine-1a2b3c4d","indexes":"0-4"}],
  "targetRevisions":[{"value":"tide-engine-99e0f1a2","indexes":"4,7"}],
  "incarnations":[{"value":1,"indexes":"0-2,4,7"},{"value":3,"indexes":"3"}],
  "podCounts":[{"value":2,"indexes":"7"},{"value":3,"indexes":"0-4"}],
  "servingPodCounts":[{"value":3,"indexes":"0-4"}],
  "availablePodCounts":[{"value":3,"indexes":"0-4"}],
  "admitted":"0-4,7",
  "entries":[
    {"index":4,"operation":{"id":"u-51","type":"Update","step":"GangSurgeTarget","strategy":"SurgeThenDrain","targetRevision":"tide-engine-99e0f1a2","startedAt":"2031-02-03T04:05:06Z","lastProgressAt":"2031-02-03T04:05:06Z","deadline":"2031-02-03T04:35:06Z"}},
    {"index":7,"operation":{"id":"c-52","type":"Create","step":"CreatePods","targetRevision":"tide-engine-99e0f1a2","startedAt":"2031-02-03T04:05:06Z","lastProgressAt":"2031-02-03T04:05:06Z","deadline":null,"waiting":"Unschedulable"}}]}}`

func TestDecodeExample(t *testing.T) {
	rows, err := Decode(status(t, gangStatus), limit)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for i := range rows {
		line, _ := json.Marshal(rows[i])
		got.Write(append(line, '\n'))
	}
	rest := func(index, incarnation int) string {
		return fmt.Sprintf(`{"index":%d,"phase":"Ready","incarnation":%d,"runningRevision":"tide-engine-1a2b3c4d","podCount":3,"servingPodCount":3,"availablePodCount":3,"admitted":true}`+"\n", index, incarnation)
	}
	want := rest(0, 1) + rest(1, 1) + rest(2, 1) + rest(3, 3) +
		`{"index":4,"phase":"Updating","incarnation":1,"runningRevision":"tide-engine-1a2b3c4d","targetRevision":"tide-engine-99e0f1a2","podCount":3,"servingPodCount":3,"availablePodCount":3,"admitted":true,"operation":{"id":"u-51","type":"Update","step":"GangSurgeTarget","startedAt":"2031-02-03T04:05:06Z","lastProgressAt":"2031-02-03T04:05:06Z","deadline":"2031-02-03T04:35:06Z","targetRevision":"tide-engine-99e0f1a2","strategy":"SurgeThenDrain"}}` + "\n" +
		`{"index":7,"phase":"Creating","incarnation":1,"targetRevision":"tide-engine-99e0f1a2","podCount":2,"admitted":true,"operation":{"id":"c-52","type":"Create","step":"CreatePods","startedAt":"2031-02-03T04:05:06Z","lastProgressAt":"2031-02-03T04:05:06Z","targetRevision":"tide-engine-99e0f1a2","waiting":"Unschedulable"}}` + "\n"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestDecodeEmptyAndDense(t *testing.T) {
	for name, c := range map[string]struct {
		status string
		want   []int32
	}{
		"nothing":                       {`{}`, nil},
		"a list keeps its order":        {`{"instanceStatuses":[{"index":7,"phase":"Ready"},{"index":2,"phase":"Failed"}]}`, []int32{7, 2}},
		"columns ascend":                {columnar(`{"members":"2,7","phases":[{"value":"Ready","indexes":"2,7"}]}`), []int32{2, 7}},
		"columns in another order":      {columnar(`{"members":"2,7","rowOrder":[7,2],"phases":[{"value":"Ready","indexes":"2,7"}]}`), []int32{7, 2}},
		"the largest index is an index": {columnar(`{"members":"2147483646-2147483647","phases":[{"value":"Ready","indexes":"2147483646-2147483647"}]}`), []int32{2147483646, 2147483647}},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := Decode(status(t, c.status), limit)
			if err != nil {
				t.Fatal(err)
			}
			var got []int32
			for _, r := range rows {
				got = append(got, r.Index)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("indexes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	// with replaces the columns of a good status of rows 0, 1 and 3, by field.
	with := func(edits ...string) string {
		columns := map[string]json.RawMessage{"members": json.RawMessage(`"0-1,3"`), "phases": json.RawMessage(`[{"value":"Ready","indexes":"0-1,3"}]`)}
		for i := 0; i < len(edits); i += 2 {
			columns[edits[i]] = json.RawMessage(edits[i+1])
		}
		raw, _ := json.Marshal(columns)
		return columnar(string(raw))
	}
	members := func(set string) string {
		return with("members", `"`+set+`"`, "phases", `[{"value":"Ready","indexes":"`+set+`"}]`)
	}
	cases := []struct {
		name   string
		status string
		reason Reason
		text   string
	}{
		{"unknown marker", `{"instanceStatusEncoding":"ColumnarV3","instanceStatusColumns":{"members":"0"}}`, EncodingUnknown,
			`status.instanceStatusEncoding: encoding "ColumnarV3" is not known to this release; a newer manager may have written it (encoding_unknown)`},
		{"DenseV1 is never spelled", `{"instanceStatusEncoding":"DenseV1"}`, EncodingUnknown, ""},
		{"columns without marker", `{"instanceStatusColumns":{"members":"0","phases":[{"value":"Ready","indexes":"0"}]}}`, UnionMixed, ""},
		{"marker without columns", `{"instanceStatusEncoding":"ColumnarV2"}`, ColumnsMissing, ""},
		{"columns beside a list", strings.TrimSuffix(with(), "}") + `,"instanceStatuses":[{"index":0,"phase":"Ready"}]}`, UnionMixed, ""},
		{"columns beside an empty list", strings.TrimSuffix(with(), "}") + `,"instanceStatuses":[]}`, UnionMixed, ""},

		{"list with an index twice", `{"instanceStatuses":[{"index":1,"phase":"Ready"},{"index":1,"phase":"Ready"}]}`, Overlap,
			`status.instanceStatuses[1].index: index 1 has two rows (overlap)`},
		{"list with a negative index", `{"instanceStatuses":[{"index":-1,"phase":"Ready"}]}`, IndexOverflow, ""},

		{"too many rows", members("0-1000"), CardinalityLimit,
			`status.instanceStatusColumns.members: columns hold 1001 rows, above the bound of 1000 (cardinality_limit)`},
		{"a short text that claims 2^31 rows", members("0-2147483647"), CardinalityLimit, ""},
		{"no members", with("members", `""`), RangeSyntax, ""},
		{"range that does not ascend", members("3-3"), RangeSyntax, `status.instanceStatusColumns.members: range "3-3" must have its first index below its last (range_syntax)`},
		{"range backwards", members("3-1"), RangeSyntax, ""},
		{"neighbours not merged", members("3,4"), RangeSyntax, `status.instanceStatusColumns.members: term "4" must start at 5 or later: terms ascend and neighbours are one range (range_syntax)`},
		{"touching ranges", members("0-1,2-3"), RangeSyntax, ""},
		{"descending", members("3,0"), RangeSyntax, ""},
		{"twice", members("3,3"), RangeSyntax, ""},
		{"leading zero", members("03"), RangeSyntax, ""},
		{"plus sign", members("+3"), RangeSyntax, ""},
		{"minus sign", members("-3"), RangeSyntax, ""},
		{"space", members("1, 3"), RangeSyntax, ""},
		{"trailing comma", members("1,"), RangeSyntax, ""},
		{"empty term", members("1,,3"), RangeSyntax, ""},
		{"three ends", members("1-2-3"), RangeSyntax, ""},
		{"digits of another script", members("١"), RangeSyntax, ""},
		{"above 31 bits", members("2147483648"), IndexOverflow, `status.instanceStatusColumns.members: "2147483648" is above the largest index 2147483647 (index_overflow)`},
		{"above 64 bits", members("99999999999999999999"), IndexOverflow, ""},

		{"no phases", with("phases", `null`), Coverage, `status.instanceStatusColumns.phases: index 0 has no phase (coverage)`},
		{"empty phases", with("phases", `[]`), Coverage, ""},
		{"phases leave one out", with("phases", `[{"value":"Ready","indexes":"0-1"}]`), Coverage, `status.instanceStatusColumns.phases: index 3 has no phase (coverage)`},
		{"phase of a stranger", with("phases", `[{"value":"Ready","indexes":"0-3"}]`), NotMember, `status.instanceStatusColumns.phases[0].indexes: 0-3 is not in members (not_member)`},
		{"two phases", with("phases", `[{"value":"Failed","indexes":"0"},{"value":"Ready","indexes":"0-1,3"}]`), Overlap, `status.instanceStatusColumns.phases[1].indexes: index 0 has two values (overlap)`},
		{"phases out of order", with("phases", `[{"value":"Ready","indexes":"0-1"},{"value":"Failed","indexes":"3"}]`), GroupOrder,
			`status.instanceStatusColumns.phases[1].value: value "Failed" must come once, and before "Ready" (group_order)`},
		{"phase listed twice", with("phases", `[{"value":"Ready","indexes":"0-1"},{"value":"Ready","indexes":"3"}]`), GroupOrder, ""},
		{"unknown phase", with("phases", `[{"value":"Resting","indexes":"0-1,3"}]`), GroupValue, ""},
		{"bad phase set", with("phases", `[{"value":"Ready","indexes":"0,1,3"}]`), RangeSyntax, ""},

		{"empty list of revisions", with("runningRevisions", `[]`), GroupValue, ""},
		{"empty revision", with("runningRevisions", `[{"value":"","indexes":"0"}]`), GroupValue, ""},
		{"revisions out of order", with("targetRevisions", `[{"value":"b","indexes":"0"},{"value":"a","indexes":"1"}]`), GroupOrder, ""},
		{"bytewise order of revisions", with("targetRevisions", `[{"value":"a","indexes":"0"},{"value":"B","indexes":"1"}]`), GroupOrder, ""},
		{"revision of a stranger", with("targetRevisions", `[{"value":"a","indexes":"2"}]`), NotMember, ""},
		{"two revisions", with("targetRevisions", `[{"value":"a","indexes":"0-1"},{"value":"b","indexes":"1"}]`), Overlap, ""},
		{"incarnation 0", with("incarnations", `[{"value":0,"indexes":"0"}]`), GroupValue, ""},
		{"incarnations not numeric", with("incarnations", `[{"value":10,"indexes":"0"},{"value":9,"indexes":"1"}]`), GroupOrder, ""},
		{"incarnations not signed", with("incarnations", `[{"value":1,"indexes":"0"},{"value":-1,"indexes":"1"}]`), GroupOrder, ""},
		{"count 0", with("podCounts", `[{"value":0,"indexes":"0"}]`), GroupValue, ""},
		{"negative count", with("servingPodCounts", `[{"value":-1,"indexes":"0"}]`), GroupValue, ""},
		{"counts out of order", with("availablePodCounts", `[{"value":2,"indexes":"0"},{"value":1,"indexes":"1"}]`), GroupOrder, ""},
		{"admitted stranger", with("admitted", `"2"`), NotMember, `status.instanceStatusColumns.admitted: 2 is not in members (not_member)`},
		{"admitted past the last member", with("admitted", `"3-4"`), NotMember, ""},
		{"bad admitted set", with("admitted", `"1,0"`), RangeSyntax, ""},
		{"ordinal of a stranger", with("activeOrdinalOne", `"5"`), NotMember, ""},

		{"empty row order", with("rowOrder", `[]`), RowOrder, ""},
		{"row order too short", with("rowOrder", `[3,0]`), RowOrder, ""},
		{"row order too long", with("rowOrder", `[3,0,1,0]`), RowOrder, ""},
		{"row order with a stranger", with("rowOrder", `[3,0,2]`), RowOrder, `status.instanceStatusColumns.rowOrder[2]: index 2 is not in members (row_order)`},
		{"row order with a negative index", with("rowOrder", `[3,0,-1]`), RowOrder, ""},
		{"row order with an index twice", with("rowOrder", `[3,0,0]`), RowOrder, ""},
		{"row order that says nothing", with("rowOrder", `[0,1,3]`), RowOrder, ""},

		{"no entries", with("entries", `[]`), EntryEmpty, ""},
		{"entry without a record", with("entries", `[{"index":1}]`), EntryEmpty, `status.instanceStatusColumns.entries[0]: index 1 has an entry that holds no record (entry_empty)`},
		{"entry with empty conditions", with("entries", `[{"index":1,"conditions":[],"announced":["a@1"]}]`), EntryEmpty, ""},
		{"entry with empty announcements", with("entries", `[{"index":1,"announced":[]}]`), EntryEmpty, ""},
		{"entry of a stranger", with("entries", `[{"index":2,"announced":["a@1"]}]`), NotMember, ""},
		{"entry with a negative index", with("entries", `[{"index":-2,"announced":["a@1"]}]`), IndexOverflow, ""},
		{"entries out of order", with("entries", `[{"index":3,"announced":["a@1"]},{"index":1,"announced":["a@1"]}]`), EntryOrder, ""},
		{"two entries", with("entries", `[{"index":1,"announced":["a@1"]},{"index":1,"readySince":"2031-02-03T04:05:06Z"}]`), EntryOrder, ""},
	}
	reached := map[Reason]bool{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rows, err := Decode(status(t, c.status), limit)
			decodeErr, ok := err.(*DecodeError)
			if !ok {
				t.Fatalf("decoded to %d rows, error %v; want %s", len(rows), err, c.reason)
			}
			if decodeErr.Reason != c.reason || rows != nil {
				t.Errorf("reason %s with %d rows, want %s with none: %v", decodeErr.Reason, len(rows), c.reason, err)
			}
			if c.text != "" && err.Error() != c.text {
				t.Errorf("error\n  %s\nwant\n  %s", err, c.text)
			}
			reached[decodeErr.Reason] = true
		})
	}
	for _, r := range Reasons() {
		if !reached[r] {
			t.Errorf("no case reaches reason %s", r)
		}
	}
	if _, err := Decode(status(t, with()), limit); err != nil {
		t.Errorf("the status that the cases edit does not decode itself: %v", err)
	}
	for _, n := range []int{0, -1} {
		if _, err := Decode(status(t, with()), n); err == nil || err.(*DecodeError).Reason != CardinalityLimit {
			t.Errorf("bound %d: error %v, want %s", n, err, CardinalityLimit)
		}
	}
	if _, err := Decode(status(t, with()), 3); err != nil {
		t.Errorf("three rows within a bound of three: %v", err)
	}
}

// A set decodes only as it is encoded: whatever one edit makes of a canonical
// set, the result is refused or encodes to itself.
func TestOneSpellingOfASet(t *testing.T) {
	const alphabet = "0123456789,- "
	for _, text := range []string{"0", "9", "10", "0-3", "0,2", "1-3,5,7-9", "10-19,21,100-200"} {
		for i := 0; i <= len(text); i++ {
			var edits []string
			for _, c := range alphabet {
				edits = append(edits, text[:i]+string(c)+text[i:])
				if i < len(text) {
					edits = append(edits, text[:i]+string(c)+text[i+1:])
				}
			}
			if i < len(text) {
				edits = append(edits, text[:i]+text[i+1:])
			}
			for _, edit := range edits {
				spans, err := parseSet(edit)
				if err != nil {
					continue
				}
				var b setBuilder
				for _, s := range spans {
					if s.size() > 1<<20 {
						continue
					}
					for x := s.first; x <= s.last; x++ {
						b.add(x)
					}
				}
				if cardinality(spans) <= 1<<20 && b.String() != edit {
					t.Errorf("%q decodes to the set that is written %q", edit, b.String())
				}
			}
		}
	}
}

func TestDecodeCopies(t *testing.T) {
	for name, text := range map[string]string{
		"columns": gangStatus,
		"list":    `{"instanceStatuses":[{"index":0,"phase":"Updating","conditions":[{"type":"Drained","status":"True","reason":"R","message":"m","lastTransitionTime":"2031-02-03T04:05:06Z"}],"operation":{"id":"u","type":"Update","step":"Surge","startedAt":"2031-02-03T04:05:06Z","lastProgressAt":"2031-02-03T04:05:06Z"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := status(t, text)
			before, _ := json.Marshal(s)
			rows, err := Decode(s, limit)
			if err != nil {
				t.Fatal(err)
			}
			for i := range rows {
				rows[i].Phase = v1beta1.InstanceFailed
				if rows[i].Operation != nil {
					rows[i].Operation.Step = "Changed"
				}
				for j := range rows[i].Conditions {
					rows[i].Conditions[j].Reason = "Changed"
				}
			}
			after, _ := json.Marshal(s)
			if diff := cmp.Diff(string(before), string(after)); diff != "" {
				t.Errorf("the stored status changed with the rows (-before +after):\n%s", diff)
			}
		})
	}
}

func restingRows(n int) []v1beta1.InstanceStatus {
	rows := make([]v1beta1.InstanceStatus, n)
	for i := range rows {
		rows[i] = v1beta1.InstanceStatus{
			Index: int32(i), Phase: v1beta1.InstanceReady, Incarnation: 1, RunningRevision: "chat-engine-0a1b2c3d",
			PodCount: 1, ServingPodCount: 1, AvailablePodCount: 1, Admitted: true,
		}
	}
	return rows
}

func TestEncodeChooses(t *testing.T) {
	columnarTo := func(n int) Options {
		return Options{Encoding: v1beta1.InstanceStatusColumnarV2, MaxDecoded: n}
	}
	noisy := []v1beta1.InstanceStatus{{Index: 0, Phase: v1beta1.InstancePending}, {Index: 5, Phase: v1beta1.InstanceFailed}}
	for name, c := range map[string]struct {
		rows []v1beta1.InstanceStatus
		opts Options
		want v1beta1.InstanceStatusEncoding
	}{
		"no rows":                         {nil, columnarTo(limit), v1beta1.InstanceStatusDenseV1},
		"the default is a list":           {restingRows(50), Options{MaxDecoded: limit}, v1beta1.InstanceStatusDenseV1},
		"a list when asked for":           {restingRows(50), Options{Encoding: v1beta1.InstanceStatusDenseV1, MaxDecoded: limit}, v1beta1.InstanceStatusDenseV1},
		"columns when smaller":            {restingRows(50), columnarTo(limit), v1beta1.InstanceStatusColumnarV2},
		"columns at the bound":            {restingRows(50), columnarTo(50), v1beta1.InstanceStatusColumnarV2},
		"a list above the bound":          {restingRows(51), columnarTo(50), v1beta1.InstanceStatusDenseV1},
		"a list without a bound":          {restingRows(50), columnarTo(0), v1beta1.InstanceStatusDenseV1},
		"a list when columns are no gain": {noisy, columnarTo(limit), v1beta1.InstanceStatusDenseV1},
		"one row":                         {restingRows(1), columnarTo(limit), v1beta1.InstanceStatusDenseV1},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Encode(c.rows, c.opts)
			if err != nil {
				t.Fatal(err)
			}
			var s v1beta1.InferenceReplicaStatus
			Apply(&s, e)
			if e.Encoding != c.want || EncodingOf(&s) != c.want {
				t.Fatalf("encoding %s, in status %s, want %s", e.Encoding, EncodingOf(&s), c.want)
			}
			back, err := Decode(&s, max(limit, c.opts.MaxDecoded))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.rows, back); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// The choice is by serialized size: for every number of rows the smaller form wins.
func TestEncodeIsNeverTheLargerForm(t *testing.T) {
	seen := map[v1beta1.InstanceStatusEncoding]bool{}
	for n := 1; n <= 40; n++ {
		rows := restingRows(n)
		e, err := Encode(rows, Options{Encoding: v1beta1.InstanceStatusColumnarV2, MaxDecoded: limit})
		if err != nil {
			t.Fatal(err)
		}
		list, _ := json.Marshal(rows)
		columns, _ := json.Marshal(columnsOf(rows))
		want := v1beta1.InstanceStatusColumnarV2
		if len(list) <= len(columns) {
			want = v1beta1.InstanceStatusDenseV1
		}
		size, err := e.Size()
		if err != nil || e.Encoding != want || size != min(len(list), len(columns)) {
			t.Errorf("%d rows: %s of %d bytes (%v), list %d, columns %d", n, e.Encoding, size, err, len(list), len(columns))
		}
		seen[e.Encoding] = true
	}
	if len(seen) != 2 {
		t.Errorf("only %v was ever the smaller form", seen)
	}
}

// A tie is written as a list: columns must be smaller to be worth reading.
func TestEncodeTie(t *testing.T) {
	sizes := func(length int) (rows []v1beta1.InstanceStatus, list, columns int) {
		rows = restingRows(2)
		for i := range rows {
			rows[i].RunningRevision = strings.Repeat("r", length)
		}
		a, _ := json.Marshal(rows)
		b, _ := json.Marshal(columnsOf(rows))
		return rows, len(a), len(b)
	}
	// Each letter of the name costs the list two bytes and the columns one.
	for length := 1; length < 500; length++ {
		rows, list, columns := sizes(length)
		if list != columns {
			continue
		}
		longer, _, _ := sizes(length + 1)
		for want, rows := range map[v1beta1.InstanceStatusEncoding][]v1beta1.InstanceStatus{
			v1beta1.InstanceStatusDenseV1: rows, v1beta1.InstanceStatusColumnarV2: longer,
		} {
			e, err := Encode(rows, Options{Encoding: v1beta1.InstanceStatusColumnarV2, MaxDecoded: limit})
			if err != nil || e.Encoding != want {
				t.Errorf("a name of %d letters is written as %s (%v), want %s", len(rows[0].RunningRevision), e.Encoding, err, want)
			}
		}
		return
	}
	t.Fatal("no length of the name makes both forms as long")
}

// Fields that only older readers know don't count in the comparison.
func TestEncodeComparesWhatIsWritten(t *testing.T) {
	plain := []v1beta1.InstanceStatus{{Index: 0, Phase: v1beta1.InstancePending}, {Index: 5, Phase: v1beta1.InstanceFailed}}
	padded := slices.Clone(plain)
	for i := range padded {
		padded[i].ReadyPodCount, padded[i].ScheduledPodCount = 1<<30, 1<<30
		padded[i].NodesOccupied = []string{strings.Repeat("n", 500)}
	}
	opts := Options{Encoding: v1beta1.InstanceStatusColumnarV2, MaxDecoded: limit}
	a, err := Encode(plain, opts)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Encode(padded, opts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" || a.Encoding != v1beta1.InstanceStatusDenseV1 {
		t.Errorf("written as %s (-plain +padded):\n%s", a.Encoding, diff)
	}
}

func TestEncodeNormalizes(t *testing.T) {
	in := []v1beta1.InstanceStatus{{
		Index: 3, Phase: v1beta1.InstanceReady, ReadyPodCount: 2, ScheduledPodCount: 2, NodesOccupied: []string{"n1"},
		Conditions: []metav1.Condition{}, Announced: []string{}, ReadySince: &metav1.Time{},
	}}
	want := []v1beta1.InstanceStatus{{Index: 3, Phase: v1beta1.InstanceReady}}
	e, err := Encode(in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, e.Rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if in[0].ReadyPodCount != 2 || in[0].ReadySince == nil {
		t.Error("the caller's rows changed")
	}
}

func TestEncodeRefuses(t *testing.T) {
	row := func(edit func(*v1beta1.InstanceStatus)) []v1beta1.InstanceStatus {
		rows := restingRows(2)
		edit(&rows[1])
		return rows
	}
	for name, c := range map[string]struct {
		rows []v1beta1.InstanceStatus
		opts Options
		want string
	}{
		"negative index":   {row(func(r *v1beta1.InstanceStatus) { r.Index = -1 }), Options{}, "row 1: index -1 is negative"},
		"index twice":      {row(func(r *v1beta1.InstanceStatus) { r.Index = 0 }), Options{}, "row 1: index 0 has a row already"},
		"no phase":         {row(func(r *v1beta1.InstanceStatus) { r.Phase = "" }), Options{}, `Instance 1: phase "" is not a phase`},
		"negative count":   {row(func(r *v1beta1.InstanceStatus) { r.ServingPodCount = -1 }), Options{}, "Instance 1: a pod count is negative: 1 owned, -1 serving, 1 available"},
		"ordinal":          {row(func(r *v1beta1.InstanceStatus) { r.ActiveOrdinal = 2 }), Options{}, "Instance 1: activeOrdinal 2 is neither 0 nor 1"},
		"unknown encoding": {restingRows(1), Options{Encoding: "V9"}, `omenativeStatus.instanceStatusEncoding: "V9" is not an encoding; use DenseV1 or ColumnarV2`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Encode(c.rows, c.opts)
			if err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestApplyReplacesTheOtherForm(t *testing.T) {
	s := status(t, gangStatus)
	s.Replicas = 6
	e, err := Encode(restingRows(2), Options{})
	if err != nil {
		t.Fatal(err)
	}
	Apply(s, e)
	if s.InstanceStatusEncoding != "" || s.InstanceStatusColumns != nil || len(s.InstanceStatuses) != 2 || s.Replicas != 6 {
		t.Errorf("status after a list was applied: %+v", s)
	}
	e, err = Encode(restingRows(20), Options{Encoding: v1beta1.InstanceStatusColumnarV2, MaxDecoded: 20})
	if err != nil {
		t.Fatal(err)
	}
	Apply(s, e)
	if s.InstanceStatusEncoding != v1beta1.InstanceStatusColumnarV2 || s.InstanceStatusColumns == nil || s.InstanceStatuses != nil {
		t.Errorf("status after columns were applied: %+v", s)
	}
	Apply(s, Encoded{})
	if s.InstanceStatusEncoding != "" || s.InstanceStatusColumns != nil || s.InstanceStatuses != nil {
		t.Errorf("status after no rows were applied: %+v", s)
	}
}
