package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/core/plan"
	"ome.io/ome/internal/guarded"
	"ome.io/ome/internal/preview"
	"ome.io/ome/internal/render"
	"ome.io/ome/internal/validate"
)

// previewFiles is what files hold for a preview: the service, and what it is rendered from.
type previewFiles struct {
	service *validate.Decoded[v1beta1.InferenceService]
	// where names the file of the service.
	where           string
	clusterRuntimes map[string]*v1beta1.ClusterServingRuntime
	runtimes        map[string]*v1beta1.ServingRuntime
	clusterModels   map[string]*v1beta1.ClusterBaseModel
	models          map[string]*v1beta1.BaseModel
	policies        map[string]*v1beta1.RolloutPolicy
	others          int
}

func newPreviewFiles() *previewFiles {
	return &previewFiles{clusterRuntimes: map[string]*v1beta1.ClusterServingRuntime{}, runtimes: map[string]*v1beta1.ServingRuntime{},
		clusterModels: map[string]*v1beta1.ClusterBaseModel{}, models: map[string]*v1beta1.BaseModel{},
		policies: map[string]*v1beta1.RolloutPolicy{}}
}

// previewFiles reads the files of one flag, which together hold one service.
func (a *App) previewFiles(paths []string) (*previewFiles, error) {
	out := newPreviewFiles()
	for _, path := range paths {
		raw, err := a.readFile(path)
		if err != nil {
			return nil, guarded.Usage("read file failed", guarded.Clean(err.Error()))
		}
		if err := out.add(path, raw); err != nil {
			return nil, guarded.Usage("file can't be previewed", guarded.Clean(path+": "+err.Error()))
		}
	}
	if out.service == nil {
		return nil, guarded.Usage("file has no InferenceService that can be read",
			guarded.Clean(fmt.Sprintf("%s: no document has apiVersion %s and kind %s", paths[0], v1beta1.GroupVersion, v1beta1.InferenceServiceKind)))
	}
	return out, nil
}

func (f *previewFiles) add(path string, raw []byte) error {
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for at := 1; ; at++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := yaml.YAMLToJSONStrict(doc)
		if err == nil && string(data) != "null" {
			err = f.document(path, data)
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", at, err)
		}
	}
}

func (f *previewFiles) document(path string, data []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(data, &kind); err != nil {
		return err
	}
	if kind.APIVersion != v1beta1.GroupVersion.String() {
		f.others++
		return nil
	}
	switch kind.Kind {
	case v1beta1.InferenceServiceKind:
		if f.service != nil {
			return errors.New("a second InferenceService; put each in a file of its own")
		}
		d, err := validate.Decode[v1beta1.InferenceService](data)
		switch {
		case err != nil:
			return err
		case d.Broken != nil:
			return d.Broken
		case d.Object.Name == "":
			return errors.New("metadata.name is missing")
		}
		preview.Default(d.Object)
		f.service, f.where = &d, path
	case v1beta1.ClusterServingRuntimeKind:
		return keep(data, f.clusterRuntimes, func(o *v1beta1.ClusterServingRuntime) string {
			preview.DefaultRuntime(&o.Spec)
			return o.Name
		})
	case v1beta1.ServingRuntimeKind:
		return keep(data, f.runtimes, func(o *v1beta1.ServingRuntime) string {
			preview.DefaultRuntime(&o.Spec)
			return o.Name
		})
	case v1beta1.ClusterBaseModelKind:
		return keep(data, f.clusterModels, func(o *v1beta1.ClusterBaseModel) string { return o.Name })
	case v1beta1.BaseModelKind:
		return keep(data, f.models, func(o *v1beta1.BaseModel) string { return o.Name })
	case v1beta1.RolloutPolicyKind:
		return keep(data, f.policies, func(o *v1beta1.RolloutPolicy) string { return o.Name })
	default:
		f.others++
	}
	return nil
}

// judged is a policy as the manager would take it.
func judged(p *v1beta1.RolloutPolicy, set config.Settings) plan.Policy {
	verdict := validate.RolloutPolicy(&v1beta1.RolloutPolicy{Spec: p.Spec}, nil,
		validate.Options{PoliciesServed: true, MaxPlanBytes: set.Rollout.MaxPinnedPlanBytes})
	return plan.NewPolicy(p, verdict.Denial())
}

// keep files an object under its name.
func keep[T any](data []byte, in map[string]*T, name func(*T) string) error {
	d, err := validate.Decode[T](data)
	if err == nil {
		err = d.Broken
	}
	if err != nil {
		return err
	}
	in[name(d.Object)] = d.Object
	return nil
}

// sources are the objects of the files that a service names; missing ones are those of the
// files after it.
func (f *previewFiles) sources(s *v1beta1.InferenceService, then ...*previewFiles) (out render.Sources) {
	for _, files := range append([]*previewFiles{f}, then...) {
		if ref := s.Spec.Runtime; ref != nil && out.ClusterRuntime == nil && out.Runtime == nil {
			out.ClusterRuntime, out.Runtime = files.clusterRuntimes[ref.Name], files.runtimes[ref.Name]
		}
		if ref := s.Spec.Model; ref != nil && out.ClusterModel == nil && out.Model == nil {
			out.ClusterModel, out.Model = files.clusterModels[ref.Name], files.models[ref.Name]
		}
	}
	return out
}
