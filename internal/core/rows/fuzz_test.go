package rows

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ome.io/ome/api/v1beta1"
)

// FuzzDecode feeds any stored status. Whatever decodes must be canonical: its
// rows encode to the same columns again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(gangStatus))
	f.Add([]byte(columnar(`{"members":"0-2,4","rowOrder":[4,2,1,0],"phases":[{"value":"Ready","indexes":"0-2"},{"value":"Updating","indexes":"4"}],"incarnations":[{"value":-1,"indexes":"1"},{"value":9,"indexes":"4"}],"admitted":"0,2","activeOrdinalOne":"4","entries":[{"index":2,"announced":["a@b"],"readySince":"2031-02-03T04:05:06Z"}]}`)))
	f.Add([]byte(columnar(`{"members":"0-2147483647","phases":[{"value":"Ready","indexes":"0-2147483647"}]}`)))
	f.Add([]byte(`{"instanceStatuses":[{"index":7,"phase":"Ready"},{"index":2,"phase":"Failed","lastFailure":{"podName":"p"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s v1beta1.InferenceReplicaStatus
		if json.Unmarshal(data, &s) != nil {
			return
		}
		before := s.DeepCopy()
		rows, err := Decode(&s, 4096)
		if !cmp.Equal(before, &s) {
			t.Fatal("decoding changed the stored status")
		}
		if err != nil {
			e, ok := err.(*DecodeError)
			if !ok || e.Field == "" || e.Detail == "" || rows != nil {
				t.Fatalf("error %#v with %d rows", err, len(rows))
			}
			known := false
			for _, r := range Reasons() {
				known = known || r == e.Reason
			}
			if !known {
				t.Fatalf("reason %q is not a documented one", e.Reason)
			}
			return
		}
		if s.InstanceStatusColumns == nil {
			return
		}
		if diff := cmp.Diff(s.InstanceStatusColumns, columnsOf(rows)); diff != "" {
			t.Fatalf("decoded columns are not canonical (-stored +again):\n%s", diff)
		}
	})
}

// FuzzRoundTrip feeds any rows. Whatever encodes must decode to the same rows.
func FuzzRoundTrip(f *testing.F) {
	rows, _ := json.Marshal(restingRows(12))
	f.Add(rows, true)
	f.Add([]byte(`[{"index":9,"phase":"Failed"},{"index":3,"phase":"Ready","incarnation":-2,"activeOrdinal":1,"admitted":true},{"index":4,"phase":"Ready","readyPodCount":3}]`), true)
	f.Add([]byte(`[{"index":0,"phase":"Updating","operation":{"id":"a","type":"Update","step":"Surge","startedAt":"2031-02-03T04:05:06Z","lastProgressAt":"2031-02-03T04:05:06Z"}}]`), false)
	f.Fuzz(func(t *testing.T, data []byte, columns bool) {
		var rows []v1beta1.InstanceStatus
		if json.Unmarshal(data, &rows) != nil {
			return
		}
		opts := Options{MaxDecoded: 4096}
		if columns {
			opts.Encoding = v1beta1.InstanceStatusColumnarV2
		}
		e, err := Encode(rows, opts)
		if err != nil {
			return
		}
		var s v1beta1.InferenceReplicaStatus
		Apply(&s, e)
		back, err := Decode(&s, 4096)
		if err != nil {
			t.Fatalf("what was encoded does not decode: %v", err)
		}
		var want []v1beta1.InstanceStatus
		if len(rows) > 0 {
			want = normalized(rows)
		}
		if diff := cmp.Diff(want, back); diff != "" {
			t.Fatalf("rows (-want +back):\n%s", diff)
		}
		again, err := Encode(back, opts)
		if err != nil || !cmp.Equal(e, again) {
			t.Fatalf("encoding again gives another form (%v)", err)
		}
	})
}
