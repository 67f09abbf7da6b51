package revision

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestImageOnly(t *testing.T) {
	const next = "registry.local/server:v2"
	newImage := func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = next }
	both := map[string]string{"ome-container": next, "sidecar": "registry.local/sidecar:5"}
	one := map[string]string{"ome-container": next}
	cases := []struct {
		name     string
		edits    []func(*corev1.PodTemplateSpec) // of the second template
		excluded []string
		want     map[string]string // nil: not by images alone
	}{
		{name: "nothing differs"},
		{name: "one image", edits: []func(*corev1.PodTemplateSpec){newImage}, want: one},
		{name: "two images", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[1].Image = "registry.local/sidecar:5"
		}}, want: both},
		{name: "an image goes away", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) { p.Spec.Containers[1].Image = "" }}},
		{name: "init container image", edits: []func(*corev1.PodTemplateSpec){func(p *corev1.PodTemplateSpec) { p.Spec.InitContainers[0].Image = "x" }}},
		{name: "init container image beside one", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) { p.Spec.InitContainers[0].Image = "x" }}},
		{name: "init container added", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "more", Image: "x"})
		}}},
		{name: "container added", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "more", Image: "x"})
		}}},
		{name: "container removed", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) { p.Spec.Containers = p.Spec.Containers[:1] }}},
		{name: "container renamed", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) { p.Spec.Containers[1].Name = "other" }}},
		{name: "containers reordered", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) { slices.Reverse(p.Spec.Containers) }}},
		{name: "label changed", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) { p.Labels["team"] = "ads" }}},
		{name: "label added", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) { p.Labels["flag"] = "" }}},
		{name: "label alone", edits: []func(*corev1.PodTemplateSpec){func(p *corev1.PodTemplateSpec) { p.Labels["team"] = "ads" }}},
		{name: "annotation changed", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) { p.Annotations["prometheus.io/port"] = "9090" }}},
		{name: "annotation removed", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) { delete(p.Annotations, "prometheus.io/port") }}},
		{name: "argument", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Args[1] = "x" }}},
		{name: "pull policy", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways }}},
		{name: "resources", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("9")
		}}},
		{name: "pull secrets", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) {
			p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "other"}}
		}}},
		{name: "volume", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) { p.Spec.Volumes = p.Spec.Volumes[:1] }}},
		{name: "zero behind a pointer", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) {
			p.Spec.AutomountServiceAccountToken = new(false)
		}}},

		{name: "queue label", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) { p.Labels["kueue.x-k8s.io/queue-name"] = "q" }}, want: one},
		{name: "excluded annotation", excluded: []string{"note"}, edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) {
			p.Annotations["note"] = "of the service"
		}}, want: one},
		{name: "annotation that is not the excluded one", excluded: []string{"note"}, edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) {
			p.Annotations["other"] = "of the component"
		}}},
		{name: "empty lists, quantities spelled otherwise", edits: []func(*corev1.PodTemplateSpec){newImage, func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Command, p.Spec.ImagePullSecrets = []string{}, []corev1.LocalObjectReference{}
			p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("8000m")
		}}, want: one},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			from, to := template(), template()
			for _, edit := range c.edits {
				edit(&to)
			}
			before, _ := json.Marshal([]any{from, to})
			images, ok := ImageOnly(&from, &to, c.excluded...)
			if ok != (c.want != nil) {
				t.Fatalf("by images alone: %v with %v, want %v", ok, images, c.want)
			}
			if diff := cmp.Diff(c.want, images); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
			after, _ := json.Marshal([]any{from, to})
			if diff := cmp.Diff(string(before), string(after)); diff != "" {
				t.Errorf("the templates changed:\n%s", diff)
			}
		})
	}
	if _, ok := ImageOnly(nil, new(template())); ok {
		t.Error("a template that can't be read must not be updated in place")
	}
	if _, ok := ImageOnly(new(template()), nil); ok {
		t.Error("no template is no image")
	}
}

// A template as it comes back from its revision compares with the rendered one.
func TestImageOnlyOfAStoredTemplate(t *testing.T) {
	in := single()
	in.Runners[0].Template.Annotations["note"] = "of the service"
	in.ExcludedAnnotations = []string{"note"}
	r := mustResolve(t, nil, in)
	stored, err := Data(r.Create)
	if err != nil {
		t.Fatal(err)
	}
	rendered := in.Runners[0].Template
	if images, ok := ImageOnly(&stored.Runners[0].Template, &rendered, "note"); ok {
		t.Errorf("the same template differs by %v", images)
	}
	rendered.Spec.Containers[0].Image = "x"
	images, ok := ImageOnly(&stored.Runners[0].Template, &rendered, "note")
	if !ok {
		t.Fatal("an image alone differs")
	}
	if diff := cmp.Diff(map[string]string{"ome-container": "x"}, images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

// What is said to differ by images alone has the other's hash once they are set.
func TestPropertyImagesAloneReachTheOtherHash(t *testing.T) {
	yes, no := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		from, to := drawInput(t), drawInput(t)
		if rapid.Bool().Draw(t, "related") {
			to.Runners[0].Template = *from.Runners[0].Template.DeepCopy()
			to.Runners[0].Template.Spec.Containers[0].Image = rapid.String().Draw(t, "new image")
		}
		a, b := from.Runners[0].Template.DeepCopy(), to.Runners[0].Template.DeepCopy()
		images, ok := ImageOnly(a, b)
		if !ok {
			no++
			return
		}
		yes++
		for i := range a.Spec.Containers {
			if image, ok := images[a.Spec.Containers[i].Name]; ok {
				a.Spec.Containers[i].Image = image
			}
		}
		of := func(p *corev1.PodTemplateSpec) string {
			hash, _, err := Hash(Input{Runners: []Runner{{Name: "default", Template: *p}}})
			if err != nil {
				t.Fatal(err)
			}
			return hash
		}
		if of(a) != of(b) {
			t.Fatalf("images %v don't lead from one template to the other", images)
		}
	})
	if yes == 0 || no == 0 {
		t.Errorf("%d pairs differ by images alone and %d do not: the test reaches only one side", yes, no)
	}
}

func BenchmarkImageOnly(b *testing.B) {
	from, to := template(), template()
	to.Spec.Containers[0].Image = "x"
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := ImageOnly(&from, &to); !ok {
			b.Fatal("an image alone differs")
		}
	}
}
