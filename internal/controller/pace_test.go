package controller

import (
	"testing"
	"time"
)

func TestAPassWaitsForItsPace(t *testing.T) {
	start := time.Date(2031, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name string
		took time.Duration
		want time.Duration
	}{
		{"a quick decision", time.Millisecond, paceLeast},
		{"a big service rests three times as long as it thought", 100 * time.Millisecond, 400 * time.Millisecond},
		{"a starved machine does not stop a roll", 10 * time.Second, paceMost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var k keyState
			k.decided(start, tc.took)
			if got := k.early(start); got != tc.want {
				t.Errorf("the next pass is due after %v, want %v", got, tc.want)
			}
		})
	}
}
