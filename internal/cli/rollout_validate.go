package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/validate"
	"ome.io/ome/internal/view"
)

// maxFileBytes is above what the API server stores in one object.
const maxFileBytes = 4 << 20

func (a *App) rolloutValidate() *cobra.Command {
	var output formats
	var file string
	cmd := &cobra.Command{
		Use:   "validate INFERENCESERVICE | -f FILE",
		Short: "Assert that the rollout, traffic and scaling settings of a service hold",
		Long: `Assert that the rollout, traffic and scaling settings of a service hold.

With a name it judges the stored service, and whether the controller could pin its
plan. With -f it judges a file offline, by the rules and in the words of admission,
and works out the plan; - is standard input. Nothing is changed either way.

It exits 0 when all holds, 2 when something is invalid or can't be verified, and 1
when it couldn't look.`,
		Example: "  kubectl ome rollout validate chat -n prod\n  kubectl ome rollout validate -f chat.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if file == "" {
				return oneService(nil, args)
			}
			if len(args) > 0 {
				return guarded.Usage("an inference service and a file can't be validated together", "pass a name or -f FILE")
			}
			return nil
		},
		ValidArgsFunction: a.completeServices,
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := output.parse()
			if err != nil {
				return err
			}
			if file != "" {
				return a.validateFile(file, format)
			}
			return a.validateService(cmd.Context(), args[0], format)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "File with the service to judge offline; - for standard input")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
	output.add(cmd, true)
	return cmd
}

func (a *App) validateService(ctx context.Context, name string, format guarded.Output) error {
	r, err := a.openReads(name)
	if err != nil {
		return err
	}
	service, err := r.service(ctx, name)
	if err != nil {
		return err
	}
	return a.showValidate(view.BuildRolloutValidate(service, a.Clock.Now()), format)
}

func (a *App) validateFile(path string, format guarded.Output) error {
	raw, err := a.readFile(path)
	if err != nil {
		return guarded.Usage("read file failed", guarded.Clean(err.Error()))
	}
	file, err := readService(raw)
	if err != nil {
		return guarded.Usage("file has no InferenceService that can be read", guarded.Clean(path+": "+err.Error()))
	}
	if file.others > 0 {
		fmt.Fprintf(a.Streams.Err, "Note: %d objects of other kinds are not looked at.\n", file.others)
	}
	return a.showValidate(view.BuildFileValidate(file.service.Object, file.service.Typos, a.Clock.Now(), file.policies...), format)
}

func (a *App) readFile(path string) ([]byte, error) {
	in := a.Streams.In
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err == nil && len(raw) > maxFileBytes {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFileBytes)
	}
	return raw, err
}

// serviceFile is what a file says of a rollout.
type serviceFile struct {
	service *validate.Decoded[v1beta1.InferenceService]
	// policies are RolloutPolicies that stand beside the service.
	policies []*v1beta1.RolloutPolicy
	// others is the number of objects of other kinds.
	others int
}

// readService finds the one service among the documents of a file, and the policies beside it.
func readService(raw []byte) (*serviceFile, error) {
	out := &serviceFile{}
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for at := 1; ; at++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		data, err := yaml.YAMLToJSONStrict(doc)
		if err == nil && string(data) != "null" {
			err = out.add(data)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", at, err)
		}
	}
	if out.service == nil {
		return nil, fmt.Errorf("no document has apiVersion %s and kind %s", v1beta1.GroupVersion, v1beta1.InferenceServiceKind)
	}
	return out, nil
}

func (f *serviceFile) add(data []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(data, &kind); err != nil {
		return err
	}
	switch {
	case kind.APIVersion == v1beta1.GroupVersion.String() && kind.Kind == v1beta1.RolloutPolicyKind:
		p, err := readObject[v1beta1.RolloutPolicy](data)
		if err == nil && len(p.Typos) > 0 {
			err = errors.New(validate.UnknownFields(p.Typos))
		}
		if err != nil {
			return err
		}
		f.policies = append(f.policies, p.Object)
		return nil
	case kind.APIVersion != v1beta1.GroupVersion.String() || kind.Kind != v1beta1.InferenceServiceKind:
		f.others++
		return nil
	case f.service != nil:
		return errors.New("it holds more than one; put each in a file of its own")
	}
	s, err := readObject[v1beta1.InferenceService](data)
	if err != nil {
		return err
	}
	f.service = s
	return nil
}

// readObject decodes one object, which has to have a name.
func readObject[T any](data []byte) (*validate.Decoded[T], error) {
	d, err := validate.Decode[T](data)
	if err == nil {
		err = d.Broken
	}
	if err != nil {
		return nil, err
	}
	var named metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(data, &named); err != nil {
		return nil, err
	}
	if named.Name == "" {
		return nil, errors.New("metadata.name is missing")
	}
	return &d, nil
}

// showValidate prints the report and, to people, what it found; then the verdict.
func (a *App) showValidate(report *view.RolloutValidateReport, format guarded.Output) error {
	if err := show(a, "rollout validate", report, format, view.RolloutValidateTable, view.RolloutValidateWide); err != nil {
		return err
	}
	c := &report.Content
	for _, w := range c.Advice {
		fmt.Fprintf(a.Streams.Err, "Warning: %s\n", w.Text)
	}
	if len(c.NotChecked) > 0 {
		fmt.Fprintf(a.Streams.Err, "Note: not checked offline: %s.\n", strings.Join(c.NotChecked, "; "))
	}
	var details []string
	switch c.Overall {
	case view.ResultInvalid:
		for _, p := range c.Problems {
			details = append(details, p.Text)
		}
		return &guarded.Error{Message: "rollout validation found invalid configuration", Details: details, Code: exitUnmet}
	case view.ResultUnverifiable:
		for _, check := range c.Checks {
			if check.Result == view.ResultUnverifiable {
				words := append([]string{strings.TrimSpace(check.Check+" "+check.Component) + ":", check.Evidence + "/" + check.Freshness}, check.Codes...)
				details = append(details, strings.Join(words, " "))
			}
		}
		details = append(details, "to see it: kubectl ome rollout explain "+guarded.ShellQuote(report.Metadata.Name)+" -n "+guarded.ShellQuote(report.Metadata.Namespace))
		return &guarded.Error{Message: "rollout validation could not verify all prerequisites", Details: details, Code: exitUnmet}
	}
	return nil
}
