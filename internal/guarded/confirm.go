package guarded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

const prompt = "Confirm this exact action? [y/N]"

// maxAnswer is the longest answer that is looked at.
const maxAnswer = 16

// confirm asks a person on a terminal. A read from a terminal can't be
// interrupted, so it runs beside the context; whoever ends first wins.
func confirm(ctx context.Context, s Streams) error {
	if !s.InIsTerminal {
		return Refuse(MsgNotConfirmed, "stdin is not a terminal; nothing was sent")
	}
	if _, err := fmt.Fprint(s.Err, prompt+" "); err != nil {
		return Refuse(MsgNotConfirmed, "the prompt could not be written; nothing was sent")
	}
	answer := make(chan string, 1)
	go func() { answer <- readAnswer(s.In) }()
	select {
	case <-ctx.Done():
		fmt.Fprintln(s.Err)
		e := contextError(ctx.Err())
		e.Details = []string{"while waiting for the confirmation; nothing was sent"}
		return e
	case a := <-answer:
		line, ended := strings.CutSuffix(a, "\n")
		if !ended {
			// End of input leaves the cursor behind the prompt.
			fmt.Fprintln(s.Err)
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			if ended && len([]rune(line)) <= maxAnswer {
				return nil
			}
		}
		return Refuse(MsgNotConfirmed, "nothing was sent")
	}
}

// readAnswer reads one line, and no more than it takes to know it is too long.
func readAnswer(r io.Reader) string {
	line, _ := bufio.NewReader(io.LimitReader(r, 4096)).ReadString('\n')
	return line
}
