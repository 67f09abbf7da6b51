package stub

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Behaviour is what one container does, chosen by its image tag and, above that, its environment.
type Behaviour struct {
	// PullFails keeps the image from being pulled.
	PullFails bool
	// Pull is how long pulling the image takes.
	Pull time.Duration
	// Start is how long the container runs before it listens and counts as ready.
	Start time.Duration
	// NeverReady leaves the container running and listening but never ready.
	NeverReady bool
	// Crashes makes the container exit with ExitCode, CrashAfter after it began to run.
	Crashes    bool
	CrashAfter time.Duration
	// Serves, unless zero, makes it crash so long after it began to listen.
	Serves time.Duration
	// CrashTimes, unless zero, is how often it crashes before it stays up.
	CrashTimes int
	ExitCode   int32
	// Exits makes the container exit with code 0, ExitAfter after it began to run.
	Exits     bool
	ExitAfter time.Duration
	// ErrorRate is the share of requests answered 500, from 0 to 1.
	ErrorRate float64
	// Latency is how long the server works on one request.
	Latency time.Duration
	// Drain is how long the container takes to exit after SIGTERM, past its last request.
	Drain time.Duration
	// PreStop is how long an exec or httpGet preStop hook runs; a sleep hook says so itself.
	PreStop time.Duration
	// CPU is what it uses at rest, in thousandths of a core, and Cost the time of a core that one
	// request takes.
	CPU  int64
	Cost time.Duration
	// Wire is the version of the KV exchange. Two different ones, both set, don't pair.
	Wire string
}

// Defaults are the behaviour of an image and environment that ask for nothing.
func Defaults() Behaviour {
	return Behaviour{
		Pull:    100 * time.Millisecond,
		Start:   400 * time.Millisecond,
		Latency: 10 * time.Millisecond,
		PreStop: time.Second,
		CPU:     5,

		ExitCode: 1,
	}
}

// word is one dash-separated part of a tag: a name and perhaps an argument.
var word = regexp.MustCompile(`^([a-z]+?)(\d[0-9a-z.]*)?$`)

// tagWords are the parts of a tag that mean something. The first part of a tag names the version
// and never does, so any version may be called anything; unknown words mean nothing either.
var tagWords = map[string]func(b *Behaviour, arg string) error{
	"unpullable": flag(func(b *Behaviour) { b.PullFails = true }),
	"neverready": flag(func(b *Behaviour) { b.NeverReady = true }),
	"pull":       duration(func(b *Behaviour, d time.Duration) { b.Pull = d }),
	"start":      duration(func(b *Behaviour, d time.Duration) { b.Start = d }),
	"crash":      optional(func(b *Behaviour, d time.Duration) { b.Crashes, b.CrashAfter = true, d }),
	"serves":     duration(func(b *Behaviour, d time.Duration) { b.Serves = d }),
	"times":      number(1, 1000, func(b *Behaviour, n int) { b.CrashTimes = n }),
	"exitcode":   number(1, 255, func(b *Behaviour, n int) { b.ExitCode = int32(n) }),
	"exit":       optional(func(b *Behaviour, d time.Duration) { b.Exits, b.ExitAfter = true, d }),
	"lat":        duration(func(b *Behaviour, d time.Duration) { b.Latency = d }),
	"drain":      duration(func(b *Behaviour, d time.Duration) { b.Drain = d }),
	"err": func(b *Behaviour, arg string) error {
		rate, err := parseRate(arg + "%")
		b.ErrorRate = rate
		return err
	},
	"cpu": func(b *Behaviour, arg string) error {
		if arg == "" {
			return nil // many a real image has a tag that ends in -cpu
		}
		return cores(func(b *Behaviour, milli int64) { b.CPU = milli })(b, arg)
	},
	"cost": duration(func(b *Behaviour, d time.Duration) { b.Cost = d }),
	"wire": func(b *Behaviour, arg string) error {
		if arg == "" {
			return fmt.Errorf("want a version, as in wire2")
		}
		b.Wire = arg
		return nil
	},
}

// loneWords work as a whole tag too, so that an image can be called engine:crash.
var loneWords = map[string]bool{"unpullable": true, "neverready": true, "crash": true, "exit": true}

// environment are the variables that mean something.
var environment = map[string]func(b *Behaviour, value string) error{
	"OME_LAB_PULL": func(b *Behaviour, v string) error {
		if v != "fail" && v != "ok" {
			return fmt.Errorf(`want "fail" or "ok"`)
		}
		b.PullFails = v == "fail"
		return nil
	},
	"OME_LAB_PULL_SECONDS":  seconds(func(b *Behaviour, d time.Duration) { b.Pull = d }),
	"OME_LAB_START_SECONDS": seconds(func(b *Behaviour, d time.Duration) { b.Start = d }),
	"OME_LAB_NEVER_READY": func(b *Behaviour, v string) error {
		on, err := strconv.ParseBool(v)
		b.NeverReady = on
		return err
	},
	"OME_LAB_CRASH":           switchable(func(b *Behaviour, on bool, d time.Duration) { b.Crashes, b.CrashAfter = on, d }),
	"OME_LAB_SERVES":          seconds(func(b *Behaviour, d time.Duration) { b.Serves = d }),
	"OME_LAB_CRASH_TIMES":     number(1, 1000, func(b *Behaviour, n int) { b.CrashTimes = n }),
	"OME_LAB_EXIT_CODE":       number(1, 255, func(b *Behaviour, n int) { b.ExitCode = int32(n) }),
	"OME_LAB_EXIT":            switchable(func(b *Behaviour, on bool, d time.Duration) { b.Exits, b.ExitAfter = on, d }),
	"OME_LAB_DRAIN_SECONDS":   seconds(func(b *Behaviour, d time.Duration) { b.Drain = d }),
	"OME_LAB_PRESTOP_SECONDS": seconds(func(b *Behaviour, d time.Duration) { b.PreStop = d }),
	"OME_LAB_LATENCY_MS": func(b *Behaviour, v string) error {
		ms, err := strconv.ParseFloat(v, 64)
		if err != nil || ms < 0 {
			return fmt.Errorf("want a number of milliseconds, 0 or more")
		}
		b.Latency = time.Duration(ms * float64(time.Millisecond))
		return nil
	},
	"OME_LAB_ERROR_RATE": func(b *Behaviour, v string) error {
		rate, err := parseRate(v)
		b.ErrorRate = rate
		return err
	},
	"OME_LAB_CPU": cores(func(b *Behaviour, milli int64) { b.CPU = milli }),
	"OME_LAB_COST_MS": func(b *Behaviour, v string) error {
		ms, err := strconv.ParseFloat(v, 64)
		if err != nil || ms < 0 {
			return fmt.Errorf("want a number of milliseconds, 0 or more")
		}
		b.Cost = time.Duration(ms * float64(time.Millisecond))
		return nil
	},
	"OME_LAB_WIRE": func(b *Behaviour, v string) error { b.Wire = v; return nil },
}

// BehaviourOf reads a container's behaviour. An OME_LAB_ variable it doesn't know, or a value it
// can't read, is an error: a misspelt experiment must not pass for a healthy server.
func BehaviourOf(c *corev1.Container) (Behaviour, error) {
	b := Defaults()
	if err := b.applyTag(Tag(c.Image)); err != nil {
		return b, fmt.Errorf("container %q: image %q: %w", c.Name, c.Image, err)
	}
	for _, e := range c.Env {
		if !strings.HasPrefix(e.Name, "OME_LAB_") || e.Name == routerPairingEnv {
			continue
		}
		apply, ok := environment[e.Name]
		if !ok {
			return b, fmt.Errorf("container %q: env %q is unknown to the lab; lab/README.md lists the variables it reads", c.Name, e.Name)
		}
		if err := apply(&b, e.Value); err != nil {
			return b, fmt.Errorf("container %q: env %s=%q: %w", c.Name, e.Name, e.Value, err)
		}
	}
	return b, nil
}

// AnnotationBehaviour on a pod asks something of its main container, in the words of a tag, from now on and above image and
// environment: it breaks one pod that runs, and not its successors.
const AnnotationBehaviour = "lab.ome.io/behaviour"

// PodBehaviour is the behaviour of a container in a pod.
func PodBehaviour(pod *corev1.Pod, c *corev1.Container) (Behaviour, error) {
	b, err := BehaviourOf(c)
	text := pod.Annotations[AnnotationBehaviour]
	if err != nil || text == "" || len(pod.Spec.Containers) == 0 || mainContainer(pod) != c.Name {
		return b, err
	}
	for _, part := range strings.Split(text, "-") {
		m := word.FindStringSubmatch(part)
		if m == nil || tagWords[m[1]] == nil {
			return b, fmt.Errorf("annotation %s=%q: %q is unknown to the lab; lab/README.md lists the words it reads", AnnotationBehaviour, text, part)
		}
		if err := tagWords[m[1]](&b, m[2]); err != nil {
			return b, fmt.Errorf("annotation %s=%q: word %q: %w", AnnotationBehaviour, text, part, err)
		}
	}
	return b, nil
}

func (b *Behaviour) applyTag(tag string) error {
	parts := strings.Split(tag, "-")
	for i, part := range parts {
		m := word.FindStringSubmatch(part)
		if m == nil {
			continue
		}
		apply, ok := tagWords[m[1]]
		if !ok || (i == 0 && !(loneWords[m[1]] && m[2] == "")) {
			continue
		}
		if err := apply(b, m[2]); err != nil {
			return fmt.Errorf("tag word %q: %w", part, err)
		}
	}
	return nil
}

// Tag returns the tag of an image reference, or "" when it has none.
func Tag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	colon := strings.LastIndexByte(image, ':')
	if colon < strings.LastIndexByte(image, '/') || colon < 0 {
		return ""
	}
	return image[colon+1:]
}

func flag(set func(*Behaviour)) func(*Behaviour, string) error {
	return func(b *Behaviour, arg string) error {
		if arg != "" {
			return fmt.Errorf("takes no argument")
		}
		set(b)
		return nil
	}
}

func duration(set func(*Behaviour, time.Duration)) func(*Behaviour, string) error {
	return func(b *Behaviour, arg string) error {
		d, err := time.ParseDuration(arg)
		if err != nil || d < 0 {
			return fmt.Errorf("want a duration, as in 3s or 500ms")
		}
		set(b, d)
		return nil
	}
}

func number(least, most int, set func(*Behaviour, int)) func(*Behaviour, string) error {
	return func(b *Behaviour, arg string) error {
		n, err := strconv.Atoi(arg)
		if err != nil || n < least || n > most {
			return fmt.Errorf("want a number from %d to %d", least, most)
		}
		set(b, n)
		return nil
	}
}

func cores(set func(*Behaviour, int64)) func(*Behaviour, string) error {
	return func(b *Behaviour, arg string) error {
		q, err := resource.ParseQuantity(arg)
		if err != nil || q.Sign() < 0 {
			return fmt.Errorf("want a quantity of cores, as in 250m or 2")
		}
		set(b, q.MilliValue())
		return nil
	}
}

func optional(set func(*Behaviour, time.Duration)) func(*Behaviour, string) error {
	return func(b *Behaviour, arg string) error {
		if arg == "" {
			set(b, 0)
			return nil
		}
		return duration(set)(b, arg)
	}
}

func seconds(set func(*Behaviour, time.Duration)) func(*Behaviour, string) error {
	return func(b *Behaviour, v string) error {
		s, err := strconv.ParseFloat(v, 64)
		if err != nil || s < 0 || s > 1e6 {
			return fmt.Errorf("want a number of seconds, 0 or more")
		}
		set(b, time.Duration(s*float64(time.Second)))
		return nil
	}
}

// switchable reads "true", "false" or a number of seconds after which the thing happens.
func switchable(set func(b *Behaviour, on bool, d time.Duration)) func(*Behaviour, string) error {
	return func(b *Behaviour, v string) error {
		switch v {
		case "true":
			set(b, true, 0)
			return nil
		case "false":
			set(b, false, 0)
			return nil
		}
		if seconds(func(b *Behaviour, d time.Duration) { set(b, true, d) })(b, v) != nil {
			return fmt.Errorf(`want "true", "false" or a number of seconds`)
		}
		return nil
	}
}

// parseRate reads a share as 0.2 or 20%.
func parseRate(v string) (float64, error) {
	number, percent := strings.CutSuffix(v, "%")
	rate, err := strconv.ParseFloat(number, 64)
	if percent {
		rate /= 100
	}
	if err != nil || !(rate >= 0 && rate <= 1) {
		return 0, fmt.Errorf("want a share from 0 to 1, or a percentage from 0%% to 100%%")
	}
	return rate, nil
}
