package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func newStatus(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the lab's components; exits 1 when one is not healthy",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("-o %s: want json or nothing", output)
			}
			l, err := g.layout()
			if err != nil {
				return err
			}
			rep, err := l.Status(cmd.Context())
			if err != nil {
				return err
			}
			if output == "json" {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				err = enc.Encode(rep)
			} else {
				err = rep.Print(cmd.OutOrStdout())
			}
			if err == nil && !rep.Healthy() {
				return exitCode(1)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json, or nothing for a table")
	return cmd
}

func newKubeconfig(g *globals) *cobra.Command {
	var user string
	var groups []string
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print a kubeconfig with a client certificate issued for a user",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if user == "" && len(groups) > 0 {
				return fmt.Errorf("--group needs --user")
			}
			l, err := g.layout()
			if err != nil {
				return err
			}
			raw, err := l.UserKubeconfig(user, groups)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(raw)
			return err
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "user name (default: the set-up admin)")
	cmd.Flags().StringArrayVar(&groups, "group", nil, "a group of the user; may be repeated")
	return cmd
}

func newKubectl(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [--dir DIR] ARGS...",
		Short: "Run kubectl as the lab's admin; it is built when none is on PATH",
		// All flags but a leading --dir are kubectl's.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := g.leadingDir(args)
			if err != nil {
				return err
			}
			l, err := g.layout()
			if err != nil {
				return err
			}
			if _, err := l.LoadRunning(); err != nil {
				return err
			}
			path, err := finder().EnsureKubectl(cmd.Context())
			if err != nil {
				return err
			}
			env := append(os.Environ(), "KUBECONFIG="+l.Kubeconfig())
			if exe, err := os.Executable(); err == nil {
				// kubectl finds its plugins on PATH, and ours is built beside this program.
				env = append(env, "PATH="+filepath.Dir(exe)+string(os.PathListSeparator)+os.Getenv("PATH"))
			}
			return syscall.Exec(path, append([]string{path}, args...), env)
		},
	}
}

func (g *globals) leadingDir(args []string) ([]string, error) {
	for len(args) > 0 {
		value, inline := strings.CutPrefix(args[0], "--dir=")
		switch {
		case inline:
			g.dirFlag, args = value, args[1:]
		case args[0] == "--dir" && len(args) > 1:
			g.dirFlag, args = args[1], args[2:]
		case args[0] == "--dir":
			return nil, fmt.Errorf("--dir needs a directory")
		default:
			return args, nil
		}
	}
	return args, nil
}
