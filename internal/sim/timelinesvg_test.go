package sim

import (
	"fmt"
	"html"
	"strings"

	"ome.io/ome/api/v1beta1"
)

// Sizes of a drawing, in pixels.
const (
	cellHigh = 9
	laneLeft = 92
	laneGap  = 34
	headHigh = 62
	restWide = 46
)

const (
	colourOld, colourNew, colourComing = "#5b6b8c", "#1a9e8f", "#b9c2d0"
	colourText, colourFaint            = "#24292f", "#6e7781"
)

// svg draws each component as a lane: a column for each moment, a cell for each pod. Time
// that only passes is a gap with its length.
func (l *line) svg() string {
	// x of each moment, and of the gap before it.
	xs, gaps := make([]int, len(l.moments)), map[int]string{}
	wide, x := 560, laneLeft
	cell := min(34, max(15, (wide-laneLeft-24-2*restWide)/len(l.moments)))
	for i, m := range l.moments {
		for _, note := range m.notes {
			if d, ok := strings.CutSuffix(note, " later"); ok {
				gaps[i] = d
				x += restWide
				break
			}
		}
		xs[i] = x
		x += cell
	}
	wide = max(x+24, wide)
	var body strings.Builder
	y := headHigh
	for _, kind := range l.kinds {
		most := 0
		for _, m := range l.moments {
			most = max(most, m.count[kind].serving()+m.count[kind].coming)
		}
		floor := y + most*cellHigh
		l.lane(&body, kind, xs, floor, cell)
		y = floor + laneGap
	}
	high := y - 4
	for i := range l.moments {
		if d := gaps[i]; d != "" {
			mid := xs[i] - restWide/2
			fmt.Fprintf(&body, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-dasharray="2 3"/>`+"\n", mid, headHigh-8, mid, high-22, colourFaint)
			fmt.Fprintf(&body, `<text x="%d" y="%d" text-anchor="middle" fill="%s">%s</text>`+"\n", mid, high-10, colourFaint, html.EscapeString(d))
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="11">`+"\n", wide, high, wide, high)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" rx="8" fill="#ffffff" stroke="#d0d7de"/>`+"\n", wide, high)
	fmt.Fprintf(&out, `<text x="16" y="24" font-size="14" font-weight="600" fill="%s">%s</text>`+"\n", colourText, html.EscapeString(l.title))
	left := 16
	for _, key := range []struct{ colour, word string }{{colourOld, "serves the old revision"}, {colourNew, "serves the new one"}, {colourComing, "comes up"}} {
		fmt.Fprintf(&out, `<rect x="%d" y="35" width="11" height="8" rx="1.5" fill="%s"/><text x="%d" y="43" fill="%s">%s</text>`+"\n", left, key.colour, left+16, colourFaint, key.word)
		left += 28 + 6*len(key.word)
	}
	out.WriteString(body.String())
	out.WriteString("</svg>\n")
	return out.String()
}

// lane draws one component upwards from the floor.
func (l *line) lane(b *strings.Builder, kind v1beta1.ComponentType, xs []int, floor, cell int) {
	want := l.desired[kind]
	fmt.Fprintf(b, `<text x="16" y="%d" font-weight="600" fill="%s">%s</text>`+"\n", floor-8, colourText, kind)
	fmt.Fprintf(b, `<text x="16" y="%d" fill="%s">%d wanted</text>`+"\n", floor+5, colourFaint, want)
	for i, m := range l.moments {
		n := m.count[kind]
		for k := range n.serving() + n.coming {
			colour := colourOld
			switch {
			case k >= n.serving():
				colour = colourComing
			case k >= n.old:
				colour = colourNew
			}
			fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="1.5" fill="%s"/>`+"\n", xs[i], floor-(k+1)*cellHigh, cell-2, cellHigh-1, colour)
		}
	}
	fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-dasharray="4 3"/>`+"\n", laneLeft-4, floor-want*cellHigh, xs[len(xs)-1]+cell+2, floor-want*cellHigh, colourFaint)
}
