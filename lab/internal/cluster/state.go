package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"ome.io/ome/lab/internal/process"
)

// Phase of a lab.
type Phase string

// The phases a lab goes through.
const (
	Starting Phase = "starting"
	Ready    Phase = "ready"
	Stopping Phase = "stopping"
)

// Component is one program of the lab as last recorded.
type Component struct {
	Name string `json:"name"`
	process.Identity
	Ports map[string]int `json:"ports,omitempty"`
	// Health is the URL that tells whether it works.
	Health   string `json:"health,omitempty"`
	Restarts int    `json:"restarts"`
	// Stopped means that somebody asked for it to be down.
	Stopped bool `json:"stopped,omitempty"`
}

// State is what state.json holds; only the supervisor writes it.
type State struct {
	Supervisor process.Identity `json:"supervisor"`
	Phase      Phase            `json:"phase"`
	Server     string           `json:"server,omitempty"`
	Nodes      int              `json:"nodes"`
	Version    string           `json:"version"`
	// Control is where the supervisor takes orders, from whoever can read the token.
	Control    string      `json:"control,omitempty"`
	Token      string      `json:"token,omitempty"`
	Components []Component `json:"components"`
}

// Component returns the record of one program.
func (s *State) Component(name string) (Component, bool) {
	for _, c := range s.Components {
		if c.Name == name {
			return c, true
		}
	}
	return Component{}, false
}

// ErrNoLab means that nothing is recorded in the directory.
var ErrNoLab = errors.New("no lab is up")

// Load reads the state; it is ErrNoLab when there is none.
func (l Layout) Load() (*State, error) {
	raw, err := os.ReadFile(l.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s: run `ome-lab up --dir %s`", ErrNoLab, l.Dir, l.Dir)
	} else if err != nil {
		return nil, fmt.Errorf("read the lab's state: %w", err)
	}
	s := &State{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("read the lab's state %s: %w; run `ome-lab down --dir %s`", l.state(), err, l.Dir)
	}
	return s, nil
}

// LoadRunning reads the state of a lab whose supervisor is alive.
func (l Layout) LoadRunning() (*State, error) {
	s, err := l.Load()
	if err != nil {
		return nil, err
	}
	if !s.Supervisor.Alive() {
		return nil, fmt.Errorf("%w in %s: its supervisor (process %d) is gone; run `ome-lab up --dir %s` for a new one", ErrNoLab, l.Dir, s.Supervisor.PID, l.Dir)
	}
	return s, nil
}

func (l Layout) save(s *State) error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write the lab's state: %w", err)
	}
	// Readers see the old file or the new one. The token is in it, so it is the owner's only.
	tmp := l.state() + ".tmp"
	if err := os.WriteFile(tmp, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the lab's state: %w", err)
	}
	if err := os.Rename(tmp, l.state()); err != nil {
		return fmt.Errorf("write the lab's state: %w", err)
	}
	return nil
}
