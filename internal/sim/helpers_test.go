package sim

import "strings"

func containsWord(move, word string) bool { return strings.Contains(move, " "+word+" ") }

// drainUnderWay is true when the move only repeats one made before the pause.
func drainUnderWay(before []string, move string) bool {
	for _, m := range before {
		if m == move {
			return true
		}
	}
	return false
}
