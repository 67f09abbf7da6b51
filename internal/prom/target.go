package prom

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/config"
	"ome.io/ome/internal/prom/source"
)

// TokenReader reads one value of a Secret.
type TokenReader func(ctx context.Context, namespace, name, key string) (string, error)

// target is where a sample is taken and with what.
type target struct {
	address *url.URL
	guard   *guard
	headers http.Header
	token   string
	// auth is the Secret that the token is read from, when there is one.
	auth *config.SecretKey
}

// secrets are what must appear in no text.
func (t *target) secrets() []string {
	var out []string
	if t.token != "" {
		out = append(out, t.token)
	}
	for _, values := range t.headers {
		out = append(out, values...)
	}
	return out
}

// resolve finds the server: the binding or the address that the canary names, else the operator's
// default.
func resolve(canary *v1beta1.AnalysisPrometheus, settings *config.Settings) (*target, *analysis.Problem) {
	no := func(format string, args ...any) (*target, *analysis.Problem) {
		return nil, &analysis.Problem{Name: analysis.ProblemPrometheus, Message: fmt.Sprintf(format, args...)}
	}
	if canary == nil {
		canary = &v1beta1.AnalysisPrometheus{}
	}
	tune := &settings.CanaryAnalysis
	var bound config.MetricProvider
	mine := false
	switch byDefault, ok := settings.MetricProviders[tune.DefaultProvider]; {
	case canary.ProviderRef != nil:
		if bound, ok = settings.MetricProviders[canary.ProviderRef.Name]; !ok {
			return no("metric provider %q is not bound in this cluster's metricProviders configuration", canary.ProviderRef.Name)
		}
	case canary.ServerAddress != "":
		bound.ServerAddress, mine = canary.ServerAddress, true
	case ok:
		bound = byDefault
	case tune.BundledPrometheusAddress != "":
		bound.ServerAddress = tune.BundledPrometheusAddress
	default:
		return no("no metrics server: the canary names none, and the operator's settings have neither canaryAnalysis.defaultProvider nor bundledPrometheusAddress")
	}
	u, err := source.Address(bound.ServerAddress)
	if err != nil {
		return no("the server's address %v", err)
	}
	t := &target{address: u, auth: bound.AuthSecretRef, headers: http.Header{}}
	t.guard = newGuard(u, tune.AllowedServerAddresses)
	t.guard.free = !mine
	for name, value := range bound.Headers {
		t.headers.Set(name, value)
	}
	for name, value := range canary.Headers {
		if err := source.Header(name, value); err != nil {
			return no("headers: %v", err)
		}
		t.headers.Set(name, value)
	}
	if ref := canary.AuthRef; ref != nil {
		t.auth = &config.SecretKey{Name: ref.Name, Key: ref.Key}
	}
	return t, nil
}

// authenticate reads the token, from the service's own namespace.
func (t *target) authenticate(ctx context.Context, read TokenReader, namespace string) *analysis.Problem {
	if t.auth == nil {
		return nil
	}
	no := func(why string) *analysis.Problem {
		return &analysis.Problem{Name: analysis.ProblemAuth, Message: "resolve bearer token: " + why}
	}
	where := fmt.Sprintf("key %q of Secret %s/%s", t.auth.Key, namespace, t.auth.Name)
	if read == nil {
		return no("Secrets can't be read here")
	}
	token, err := read(ctx, namespace, t.auth.Name, t.auth.Key)
	if err != nil {
		return no(err.Error())
	}
	token = strings.TrimSpace(token)
	if token == "" {
		return no(where + " is empty")
	}
	if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return no(where + " is no token: it has blanks or other characters in it that a header can't carry")
	}
	t.token = token
	return nil
}
