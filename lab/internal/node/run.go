package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ome.io/ome/lab/internal/addr"
	"ome.io/ome/lab/internal/stub"
	"ome.io/ome/lab/internal/stub/endpoints"
)

// Run registers the nodes and runs the pods bound to them until ctx ends, which is no error. When
// it returns nothing of it is left: no socket, no goroutine.
func Run(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	if cfg.Nodes < 1 {
		return fmt.Errorf("a lab needs at least one node, not %d", cfg.Nodes)
	}
	rc := rest.CopyConfig(cfg.RESTConfig)
	rc.QPS, rc.Burst = -1, 0
	rc.UserAgent = "ome-lab-kubelet"
	rc.ContentType, rc.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(rc)
	if err != nil {
		return fmt.Errorf("simulated nodes: %w", err)
	}
	return run(ctx, cfg, client)
}

func run(parent context.Context, cfg Config, client kubernetes.Interface) error {
	ctx, cancel := context.WithCancel(parent)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	number := -1
	if cfg.AddrBlock != nil {
		number = *cfg.AddrBlock
	}
	block, err := addr.Claim(number)
	if err != nil {
		return fmt.Errorf("simulated nodes: %w", err)
	}
	defer block.Close()

	var host stub.Host
	k := newKubelet(ctx, client, block, &host, cfg)
	defer k.writer.close()
	defer cancel() // before the writer is waited for

	kubeletListener, err := net.Listen("tcp4", net.JoinHostPort(hostIP, "0"))
	if err != nil {
		return fmt.Errorf("kubelet endpoint: %w", err)
	}
	tlsConf, err := tlsConfig(cfg)
	if err != nil {
		return err
	}
	kubeletServer := &http.Server{Handler: k.logs.handler(), TLSConfig: tlsConf}
	defer kubeletServer.Close()
	wg.Go(func() { kubeletServer.ServeTLS(kubeletListener, "", "") })

	ns := newNodes(client, k.writer, cfg, int32(kubeletListener.Addr().(*net.TCPAddr).Port))
	if cfg.Dir != "" {
		socket, err := listenControl(cfg.Dir)
		if err != nil {
			return err
		}
		defer os.Remove(ControlSocket(cfg.Dir))
		controlServer := &http.Server{Handler: (&control{nodes: ns, kubelet: k}).handler()}
		defer controlServer.Close()
		wg.Go(func() { controlServer.Serve(socket) })
	}

	// Pods of all nodes, once. Routers see pod labels beside endpoints through the same store.
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(endpoints.StripManagedFields),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		}))
	informer := factory.Core().V1().Pods().Informer()
	host.Lag = cfg.RouterLag
	host.Endpoints = endpoints.New(func(key types.NamespacedName) map[string]string {
		if o, ok, _ := informer.GetStore().GetByKey(key.String()); ok {
			return o.(*corev1.Pod).Labels
		}
		return nil
	})
	if err := host.Endpoints.Start(ctx, client, ""); err != nil {
		return ignoreEnd(parent, err)
	}
	if err := ns.register(ctx); err != nil {
		return ignoreEnd(parent, err)
	}
	wg.Go(func() { ns.heartbeat(ctx) })

	loopDone := make(chan struct{})
	go func() {
		defer close(loopDone)
		k.loop()
	}()
	defer func() { cancel(); <-loopDone }()

	if cfg.Metrics != nil {
		wg.Go(func() { k.measure(ctx) })
		cfg.Metrics.SetSource(usage{nodes: ns, kubelet: k})
		defer cfg.Metrics.SetSource(nil)
	}

	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.post(func() { k.see(o.(*corev1.Pod)) }) },
		UpdateFunc: func(_, o any) { k.post(func() { k.see(o.(*corev1.Pod)) }) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			k.post(func() { k.remove(o.(*corev1.Pod)) })
		},
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	factory.Start(ctx.Done())
	defer func() { cancel(); factory.Shutdown() }()
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return ignoreEnd(parent, errors.New("watch pods: stopped before the first list"))
	}
	cfg.Log.Info("nodes are up", "nodes", cfg.Nodes, "addressBlock", block.Number(), "kubelet", kubeletListener.Addr().String())
	if cfg.Registered != nil {
		cfg.Registered()
	}
	<-ctx.Done()
	return nil
}

// ignoreEnd hides errors that are only the end of the run.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
