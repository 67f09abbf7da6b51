package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/view"
)

// Version is the plugin's version; the build sets it.
var Version = "dev"

const managerDeployment = "ome-controller-manager"

func (a *App) version() *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of the plugin and of the manager",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			operator, err := a.operatorVersion(cmd, namespace)
			if err != nil {
				operator = "unknown (" + guarded.ClassOf(err) + ")"
			}
			if a.Streams.OutIsTerminal {
				t := view.Table{Header: []string{"COMPONENT", "VERSION"}, Rows: [][]string{{"client", Version}, {"operator", operator}}}
				err = t.Write(a.Streams.Out, a.Streams.Width)
			} else {
				_, err = fmt.Fprintf(a.Streams.Out, "Client Version: %s\nOperator Version: %s\n", Version, operator)
			}
			if err != nil {
				return guarded.Usage("write version failed", guarded.Clean(err.Error()))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&namespace, "ome-namespace", DefaultOMENamespace, "Namespace of the OME manager")
	return cmd
}

// operatorVersion is the tag or digest of the manager's image.
func (a *App) operatorVersion(cmd *cobra.Command, namespace string) (string, error) {
	conn, err := a.connect()
	if err != nil {
		return "", err
	}
	client, err := guarded.NewClient(conn.Config, schema.GroupVersion{Group: "apps", Version: "v1"}, guarded.DefaultRequestTimeout)
	if err != nil {
		return "", err
	}
	raw, err := client.Get(cmd.Context(), guarded.Ref{Kind: "Deployment", Resource: "deployments", Namespace: namespace, Name: managerDeployment})
	if err != nil {
		return "", err
	}
	var d struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Name  string `json:"name"`
						Image string `json:"image"`
					} `json:"containers"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := guarded.Decode(raw, &d); err != nil {
		return "", err
	}
	image := ""
	for _, c := range d.Spec.Template.Spec.Containers {
		if image == "" || c.Name == "manager" {
			image = c.Image
		}
	}
	return guarded.Clean(imageVersion(image)), nil
}

func imageVersion(image string) string {
	if _, digest, ok := strings.Cut(image, "@"); ok {
		return digest
	}
	name := image[strings.LastIndex(image, "/")+1:]
	if _, tag, ok := strings.Cut(name, ":"); ok {
		return tag
	}
	return "unknown (untagged image)"
}
