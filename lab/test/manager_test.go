package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const managerEnv = "OME_LAB_TEST_MANAGER"

// TestMain lets this binary stand in for ome-manager: the lab starts it with the flags that ome-manager gets.
func TestMain(m *testing.M) {
	if os.Getenv(managerEnv) != "" && len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "--kubeconfig=") {
		if err := standIn(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// standIn refuses widgets that are labelled so, and is ready once it knows who it is.
func standIn(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	flags := map[string]string{}
	for _, a := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		flags[name] = value
	}
	if flags["fail"] != "" {
		return fmt.Errorf("stand-in told to fail: %s", flags["fail"])
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", flags["kubeconfig"])
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	me, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println("I am", me.Status.UserInfo.Username)
	// Only what the role in testdata allows.
	if err := client.RESTClient().Get().AbsPath("/apis/lab.example.com/v1/widgets").Do(ctx).Error(); err != nil {
		return fmt.Errorf("list widgets: %w", err)
	}
	if _, err := client.CoreV1().Secrets("").List(ctx, metav1.ListOptions{}); err == nil {
		return fmt.Errorf("the manager may list secrets")
	}
	hook := http.NewServeMux()
	hook.HandleFunc("/validate-widget", func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		var obj metav1.PartialObjectMetadata
		_ = json.Unmarshal(review.Request.Object.Raw, &obj)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: obj.Labels["refuse"] == ""}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	})
	certs := flags["webhook-cert-dir"]
	fail := make(chan error, 2)
	go func() {
		fail <- http.ListenAndServeTLS(flags["webhook-bind-host"]+":"+flags["webhook-port"], filepath.Join(certs, "tls.crt"), filepath.Join(certs, "tls.key"), hook)
	}()
	ready := http.NewServeMux()
	ready.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	go func() { fail <- http.ListenAndServe(flags["health-probe-bind-address"], ready) }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-fail:
		return err
	}
}
