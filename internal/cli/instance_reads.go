package cli

import "github.com/spf13/cobra"

// addInstanceReads adds the commands that only look.
func (a *App) addInstanceReads(parent *cobra.Command) {}
