package prometheus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"ome.io/ome/lab/internal/stub"
)

// settle is how long changes are collected, so that a roll doesn't have the server read its file for every field.
const settle = 100 * time.Millisecond

// Watch returns once the targets of the pods that are there are in the server's directory, and keeps them so until ctx is done.
func Watch(ctx context.Context, client kubernetes.Interface, dir string, log *slog.Logger) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0)
	pods := factory.Core().V1().Pods()
	if err := pods.Informer().SetTransform(lean); err != nil {
		return fmt.Errorf("watch the pods for Prometheus: %w", err)
	}
	changed := make(chan struct{}, 1)
	tell := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	handler, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, o any) { tell(o) }, DeleteFunc: tell})
	if err != nil {
		return fmt.Errorf("watch the pods for Prometheus: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return errors.Join(errors.New("watch the pods for Prometheus: interrupted"), ctx.Err())
	}
	var last []byte
	write := func() error {
		list, err := pods.Lister().List(labels.Everything())
		if err != nil {
			return fmt.Errorf("list the pods for Prometheus: %w", err)
		}
		last, err = save(targetsFile(dir), targets(list), last)
		return err
	}
	if err := write(); err != nil {
		return err
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(settle):
			}
			if err := write(); err != nil {
				log.Error("tell Prometheus of the pods", "err", err)
			}
		}
	}()
	return nil
}

// lean keeps what targets reads of a pod.
func lean(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	small := &corev1.Pod{}
	small.Namespace, small.Name, small.UID, small.ResourceVersion = p.Namespace, p.Name, p.UID, p.ResourceVersion
	small.Labels = map[string]string{}
	for _, key := range []string{stub.LabelService, stub.LabelComponent, stub.LabelRevision, stub.LabelRunner} {
		if v, ok := p.Labels[key]; ok {
			small.Labels[key] = v
		}
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		small.Spec.Containers = append(small.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports})
	}
	small.Status.Phase, small.Status.PodIP = p.Status.Phase, p.Status.PodIP
	return small, nil
}

// save replaces the file as a whole, unless nothing changed: the server reads whatever is there when it is told.
func save(path string, list []target, last []byte) ([]byte, error) {
	raw, err := json.MarshalIndent(list, "", " ")
	if err != nil || bytes.Equal(raw, last) {
		return last, err
	}
	if err := os.WriteFile(path+".tmp", raw, 0o644); err != nil {
		return last, fmt.Errorf("write Prometheus' targets: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return last, fmt.Errorf("write Prometheus' targets: %w", err)
	}
	return raw, nil
}
