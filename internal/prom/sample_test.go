package prom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"ome.io/ome/api/v1beta1"
	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/config"
)

var chat = types.NamespacedName{Namespace: "prod", Name: "chat"}

// onLoopback are settings under which a test's server may be named.
func onLoopback() config.Settings {
	s := config.Default()
	s.CanaryAnalysis.AllowedServerAddresses = []string{"127.0.0.0/8"}
	return s
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// answers writes one body to every query.
func answers(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

func success(data string) string { return `{"status":"success","data":` + data + `}` }

func request(address string) analysis.Request {
	return analysis.Request{
		ID:      analysis.ID{Service: chat, Run: "chat-0123456789ab"},
		Source:  &v1beta1.AnalysisPrometheus{ServerAddress: address},
		Queries: []analysis.Query{{Metric: "errors", Text: `rate(errors_total{revision_hash="8be0917f"}[5m])`}},
	}
}

func takeOne(t *testing.T, settings config.Settings, r analysis.Request, token TokenReader) analysis.Sample {
	t.Helper()
	return Take(context.Background(), settings, token, r, time.Now)
}

// What a server answers, and what it is taken for.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		name    string
		handler http.HandlerFunc
		want    analysis.Answer
		// error holds parts of the error's text.
		errors []string
	}{
		{name: "scalar", handler: answers(success(`{"resultType":"scalar","result":[1,"0.25"]}`)),
			want: analysis.Answer{Type: analysis.Scalar, Series: []analysis.Series{{Value: 0.25}}}},
		{name: "vector", handler: answers(success(`{"resultType":"vector","result":[{"metric":{"pod":"b","a":"1"},"value":[1,"2"]},{"metric":{"__name__":"x"},"value":[1,"3e-2"]}]}`)),
			want: analysis.Answer{Type: analysis.Vector, Series: []analysis.Series{{Labels: `{a="1", pod="b"}`, Value: 2}, {Labels: "x", Value: 0.03}}}},
		{name: "NaN and infinities", handler: answers(success(`{"resultType":"vector","result":[{"metric":{},"value":[1,"NaN"]},{"metric":{"a":"1"},"value":[1,"+Inf"]},{"metric":{"a":"2"},"value":[1,"-Inf"]}]}`)),
			want: analysis.Answer{Type: analysis.Vector, Series: []analysis.Series{{Labels: "{}", Value: math.NaN()}, {Labels: `{a="1"}`, Value: math.Inf(1)}, {Labels: `{a="2"}`, Value: math.Inf(-1)}}}},
		{name: "empty vector", handler: answers(success(`{"resultType":"vector","result":[]}`)), want: analysis.Answer{Type: analysis.Vector}},
		{name: "matrix", handler: answers(success(`{"resultType":"matrix","result":[]}`)), want: analysis.Answer{Type: analysis.Matrix}},
		{name: "warnings", handler: answers(`{"status":"success","warnings":["one store is down"],"data":{"resultType":"vector","result":[]}}`),
			want: analysis.Answer{Type: analysis.Vector, Warnings: []string{"one store is down"}}},
		{name: "remarks of a newer server are no warnings", handler: answers(`{"status":"success","infos":["PromQL info: x"],"data":{"resultType":"vector","result":[]}}`),
			want: analysis.Answer{Type: analysis.Vector}},

		{name: "string", handler: answers(success(`{"resultType":"string","result":[1,"x"]}`)), errors: []string{"string"}},
		{name: "a histogram is not the number 0", handler: answers(success(`{"resultType":"vector","result":[{"metric":{},"histogram":[1,{"count":"1","sum":"2","buckets":[]}]}]}`)), errors: []string{"a series is a histogram"}},
		{name: "null for a vector", handler: answers(success(`{"resultType":"vector","result":null}`)), errors: []string{""}},
		{name: "a null series", handler: answers(success(`{"resultType":"vector","result":[null]}`)), errors: []string{"a series without a value"}},
		{name: "HTML", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html><body>Sign in</body></html>")
		}, errors: []string{"not one of a Prometheus API"}},
		{name: "empty body", handler: answers(""), errors: []string{"not one of a Prometheus API"}},
		{name: "no content", handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, errors: []string{""}},
		{name: "JSON of something else", handler: answers(`{"items":[]}`), errors: []string{""}},
		{name: "half an answer", handler: answers(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,`), errors: []string{"not one of a Prometheus API"}},
		{name: "a value that is no number", handler: answers(success(`{"resultType":"vector","result":[{"metric":{},"value":[1,"many"]}]}`)), errors: []string{""}},
		{name: "an error of the API", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"status":"error","errorType":"execution","error":"query processing would load too many samples"}`)
		}, errors: []string{"execution: query processing would load too many samples"}},
		{name: "503", handler: func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "the token is s3cr3t", http.StatusServiceUnavailable)
		}, errors: []string{"server error: 503"}},
		{name: "401", handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, errors: []string{"client error: 401"}},
		{name: "a body without end", handler: func(w http.ResponseWriter, _ *http.Request) {
			line := strings.Repeat("x", 64<<10)
			for i := 0; i < 1000; i++ {
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
			}
		}, errors: []string{"larger than 1048576 bytes"}},
		{name: "headers without end", handler: func(w http.ResponseWriter, _ *http.Request) {
			for i := range 100 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 4<<10))
			}
		}, errors: []string{"header"}},
		{name: "the connection breaks", handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, errors: []string{"EOF"}},
		{name: "a message of many lines", handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"status":"error","errorType":"bad_data","error":"`+strings.Repeat("x", 10000)+`"}`)
		}, errors: []string{"bad_data: xxx", "..."}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := request(serve(t, tc.handler))
			s := takeOne(t, onLoopback(), r, nil)
			if s.Problem != nil || len(s.Answers) != 1 || s.ID != r.ID || s.At.IsZero() || s.Done.Before(s.At) {
				t.Fatalf("sample %+v", s)
			}
			got := s.Answers[0]
			if tc.errors != nil {
				if got.Error == "" || len(got.Error) > maxText || len(got.Series) > 0 || strings.Contains(got.Error, "127.0.0.1") || strings.Contains(got.Error, "s3cr3t") {
					t.Errorf("answer %+v", got)
				}
				for _, part := range tc.errors {
					if !strings.Contains(got.Error, part) {
						t.Errorf("error %q lacks %q", got.Error, part)
					}
				}
				return
			}
			tc.want.Metric, tc.want.Query = "errors", r.Queries[0].Text
			nan := cmp.Comparer(func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })
			if diff := cmp.Diff(tc.want, got, nan); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// One instant query for each metric, all at the time of the sample.
func TestWhatIsSent(t *testing.T) {
	type sent struct{ path, query, time, auth, tenant, agent string }
	seen := make(chan sent, 10)
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen <- sent{r.URL.Path, r.FormValue("query"), r.FormValue("time"), r.Header.Get("Authorization"), r.Header.Get("X-Scope-OrgID"), r.UserAgent()}
		answers(success(`{"resultType":"scalar","result":[1,"1"]}`))(w, r)
	})
	r := request(address + "/prometheus/")
	r.Source.AuthRef = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "prom"}, Key: "token"}
	r.Source.Headers = map[string]string{"x-scope-orgid": "team-a"}
	r.Queries = append(r.Queries, analysis.Query{Metric: "latency", Text: "up > 0"})
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := Take(context.Background(), onLoopback(), func(_ context.Context, namespace, name, key string) (string, error) {
		if namespace != "prod" || name != "prom" || key != "token" {
			return "", fmt.Errorf("asked for %s/%s %s", namespace, name, key)
		}
		return "s3cr3t\n", nil
	}, r, func() time.Time { return at })
	got := map[string]sent{}
	for range 2 {
		q := <-seen
		got[q.query] = q
	}
	want := map[string]sent{}
	for _, q := range r.Queries {
		want[q.Text] = sent{"/prometheus/api/v1/query", q.Text, "1772366400", "Bearer s3cr3t", "team-a", "ome-manager"}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sent{})); diff != "" || !s.At.Equal(at) {
		t.Errorf("(-want +got):\n%s\n%+v", diff, s)
	}
}

// The timeout is one for all queries of a sample.
func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	settings := onLoopback()
	settings.CanaryAnalysis.QueryTimeout = 50 * time.Millisecond
	r := request(address)
	for i := range 9 {
		r.Queries = append(r.Queries, analysis.Query{Metric: fmt.Sprint(i), Text: "up"})
	}
	started := time.Now()
	s := takeOne(t, settings, r, nil)
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	for _, a := range s.Answers {
		if a.Error != "no answer within 50ms, the operator's canaryAnalysis.queryTimeout" {
			t.Errorf("%+v", a)
		}
	}
}

// Neither the redirect is followed nor the token sent along.
func TestRedirect(t *testing.T) {
	var reached atomic.Int32
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		answers(success(`{"resultType":"scalar","result":[1,"0"]}`))(w, r)
	})
	for _, code := range []int{301, 302, 303, 307, 308} {
		address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, strings.Replace(other, "://", "://user:pa55word@", 1)+"/api/v1/query", code)
		})
		s := takeOne(t, onLoopback(), request(address), nil)
		if got := s.Answers[0].Error; got != errRedirect.Error() {
			t.Errorf("%d: %q", code, got)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("followed %d times", n)
	}
}

// A hostile server that echoes what it got can't bring the token into a status.
func TestSecretsStayHidden(t *testing.T) {
	const token, header = "s3cr3t-token-of-prod", "hunter2-key"
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		text := r.Header.Get("Authorization") + " " + r.Header.Get("X-Api-Key") + " http://user:pa55word@db:1/x"
		if r.FormValue("query") == "warn" {
			_, _ = fmt.Fprintf(w, `{"status":"success","warnings":[%q],"data":{"resultType":"vector","result":[]}}`, text)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"status":"error","errorType":%q,"error":%q}`, text, text)
	})
	r := request(address)
	r.Source.AuthRef = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "prom"}, Key: "token"}
	r.Source.Headers = map[string]string{"X-Api-Key": header}
	r.Queries = append(r.Queries, analysis.Query{Metric: "w", Text: "warn"})
	s := takeOne(t, onLoopback(), r, func(context.Context, string, string, string) (string, error) { return token, nil })
	all := fmt.Sprintf("%+v", s)
	for _, secret := range []string{token, header, "pa55word", "user:"} {
		if strings.Contains(all, secret) {
			t.Errorf("%q is in %s", secret, all)
		}
	}
	if !strings.Contains(all, "[hidden]") || len(s.Answers[1].Warnings) != 1 {
		t.Errorf("the server's texts are missing: %s", all)
	}
}

// What keeps a sample from being taken is one entry, of the kind that it is.
func TestProblems(t *testing.T) {
	secret := func(token string, err error) TokenReader {
		return func(context.Context, string, string, string) (string, error) { return token, err }
	}
	auth := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "prom"}, Key: "token"}
	for _, tc := range []struct {
		name     string
		source   *v1beta1.AnalysisPrometheus
		settings func(*config.Settings)
		token    TokenReader
		want     analysis.Problem
	}{
		{name: "the Secret can't be read", source: &v1beta1.AnalysisPrometheus{ServerAddress: "http://prom", AuthRef: auth}, token: secret("", errors.New(`secrets "prom" not found`)),
			want: analysis.Problem{Name: "auth", Message: `resolve bearer token: secrets "prom" not found`}},
		{name: "the token is empty", source: &v1beta1.AnalysisPrometheus{ServerAddress: "http://prom", AuthRef: auth}, token: secret(" \n", nil),
			want: analysis.Problem{Name: "auth", Message: `resolve bearer token: key "token" of Secret prod/prom is empty`}},
		{name: "the token would break the header", source: &v1beta1.AnalysisPrometheus{ServerAddress: "http://prom", AuthRef: auth}, token: secret("a\r\nX: y", nil),
			want: analysis.Problem{Name: "auth", Message: `resolve bearer token: key "token" of Secret prod/prom is no token: it has blanks or other characters in it that a header can't carry`}},
		{name: "the provider isn't bound", source: &v1beta1.AnalysisPrometheus{ProviderRef: &v1beta1.AnalysisProviderRef{Name: "main"}},
			want: analysis.Problem{Name: "prometheus", Message: `metric provider "main" is not bound in this cluster's metricProviders configuration`}},
		{name: "nothing names a server", settings: func(s *config.Settings) { s.CanaryAnalysis.BundledPrometheusAddress = "" },
			want: analysis.Problem{Name: "prometheus", Message: "no metrics server: the canary names none, and the operator's settings have neither canaryAnalysis.defaultProvider nor bundledPrometheusAddress"}},
		{name: "no URL", source: &v1beta1.AnalysisPrometheus{ServerAddress: "prom:9090"},
			want: analysis.Problem{Name: "prometheus", Message: `the server's address has scheme "prom"; use http or https`}},
		{name: "a password in the URL isn't repeated", source: &v1beta1.AnalysisPrometheus{ServerAddress: "http://a:pa55word@prom"},
			want: analysis.Problem{Name: "prometheus", Message: `the server's address has a user or password in it, which everybody can read; use a token by authRef`}},
		{name: "a header that is the client's", source: &v1beta1.AnalysisPrometheus{ServerAddress: "http://prom", Headers: map[string]string{"host": "x"}},
			want: analysis.Problem{Name: "prometheus", Message: "headers: host is set by the client; remove it"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			settings := onLoopback()
			if tc.settings != nil {
				tc.settings(&settings)
			}
			r := request("")
			r.Source = tc.source
			s := takeOne(t, settings, r, tc.token)
			if diff := cmp.Diff(&tc.want, s.Problem); diff != "" || len(s.Answers) != 0 {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Which server is asked, with what.
func TestSource(t *testing.T) {
	settings := config.Default()
	settings.MetricProviders = map[string]config.MetricProvider{
		"main": {ServerAddress: "https://main:9090/p", AuthSecretRef: &config.SecretKey{Name: "main", Key: "t"}, Headers: map[string]string{"X-A": "1", "X-B": "1"}},
	}
	type got struct {
		Address string
		Auth    string
		Headers http.Header
		Free    bool
	}
	own := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "own"}, Key: "k"}
	bundled := "http://ome-prometheus.ome.svc:9090"
	for _, tc := range []struct {
		name      string
		source    *v1beta1.AnalysisPrometheus
		byDefault string
		want      got
	}{
		{name: "nothing", want: got{Address: bundled, Headers: http.Header{}, Free: true}},
		{name: "headers and a token alone", source: &v1beta1.AnalysisPrometheus{AuthRef: own, Headers: map[string]string{"X-A": "2"}},
			want: got{Address: bundled, Auth: "own/k", Headers: http.Header{"X-A": {"2"}}, Free: true}},
		{name: "the default provider", byDefault: "main",
			want: got{Address: "https://main:9090/p", Auth: "main/t", Headers: http.Header{"X-A": {"1"}, "X-B": {"1"}}, Free: true}},
		{name: "a default provider that isn't bound", byDefault: "gone", source: &v1beta1.AnalysisPrometheus{AuthRef: own},
			want: got{Address: bundled, Auth: "own/k", Headers: http.Header{}, Free: true}},
		{name: "a provider", source: &v1beta1.AnalysisPrometheus{ProviderRef: &v1beta1.AnalysisProviderRef{Name: "main"}},
			want: got{Address: "https://main:9090/p", Auth: "main/t", Headers: http.Header{"X-A": {"1"}, "X-B": {"1"}}, Free: true}},
		{name: "the canary's token and headers win", source: &v1beta1.AnalysisPrometheus{ProviderRef: &v1beta1.AnalysisProviderRef{Name: "main"}, AuthRef: own, Headers: map[string]string{"x-a": "2"}},
			want: got{Address: "https://main:9090/p", Auth: "own/k", Headers: http.Header{"X-A": {"2"}, "X-B": {"1"}}, Free: true}},
		{name: "an address", byDefault: "main", source: &v1beta1.AnalysisPrometheus{ServerAddress: "http://mine"}, want: got{Address: "http://mine", Headers: http.Header{}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			settings.CanaryAnalysis.DefaultProvider = tc.byDefault
			target, problem := resolve(tc.source, &settings)
			if problem != nil {
				t.Fatal(problem)
			}
			is := got{Address: target.address.String(), Headers: target.headers, Free: target.guard.free}
			if target.auth != nil {
				is.Auth = target.auth.Name + "/" + target.auth.Key
			}
			if diff := cmp.Diff(tc.want, is); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
