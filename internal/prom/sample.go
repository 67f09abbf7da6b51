package prom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"ome.io/ome/internal/core/analysis"
	"ome.io/ome/internal/core/config"
)

const (
	// maxAnswer bounds the body of an answer, unpacked.
	maxAnswer = 1 << 20
	// maxText bounds a text that comes from a server.
	maxText = 256
)

var (
	errRedirect = errors.New("the server redirects, and redirects aren't followed; give the address it redirects to")
	errTooLarge = fmt.Errorf("the answer is larger than %d bytes; put max, min or sum around the query", maxAnswer)
)

// userInfo is a user and password in the text of a URL.
var userInfo = regexp.MustCompile(`://[^\s/@]*@`)

// Take takes one sample: all queries at one time, and one timeout for them together.
func Take(ctx context.Context, settings config.Settings, token TokenReader, r analysis.Request, now func() time.Time) analysis.Sample {
	s := analysis.Sample{ID: r.ID, At: now()}
	ctx, cancel := context.WithTimeout(ctx, settings.CanaryAnalysis.QueryTimeout)
	defer cancel()
	t, problem := resolve(r.Source, &settings)
	if problem == nil {
		problem = t.authenticate(ctx, token, r.ID.Service.Namespace)
	}
	if problem != nil {
		s.Problem, s.Done = &analysis.Problem{Name: problem.Name, Message: bound(problem.Message, nil)}, now()
		return s
	}
	transport := t.guard.transport()
	defer transport.CloseIdleConnections()
	client, err := api.NewClient(api.Config{Address: t.address.String(), Client: &http.Client{
		Transport:     &carrier{target: t, next: transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
	}})
	if err != nil {
		s.Problem, s.Done = &analysis.Problem{Name: analysis.ProblemPrometheus, Message: bound(err.Error(), t.secrets())}, now()
		return s
	}
	server := promv1.NewAPI(client)
	s.Answers = make([]analysis.Answer, len(r.Queries))
	var all sync.WaitGroup
	for i, q := range r.Queries {
		all.Go(func() { s.Answers[i] = ask(ctx, server, q, s.At, t.secrets(), settings.CanaryAnalysis.QueryTimeout) })
	}
	all.Wait()
	s.Done = now()
	return s
}

// ask sends one query. A panic of the decoder over a hostile answer is that query's error.
func ask(ctx context.Context, server promv1.API, q analysis.Query, at time.Time, secrets []string, timeout time.Duration) (a analysis.Answer) {
	failed := func(why string) analysis.Answer {
		return analysis.Answer{Metric: q.Metric, Query: q.Text, Error: bound(why, secrets)}
	}
	defer func() {
		if p := recover(); p != nil {
			a = failed("the answer could not be read")
		}
	}()
	value, warnings, err := server.Query(ctx, q.Text, at)
	switch {
	case ctx.Err() == context.DeadlineExceeded:
		return failed(fmt.Sprintf("no answer within %s, the operator's canaryAnalysis.queryTimeout", timeout))
	case err != nil:
		return failed(reason(err))
	}
	a = analysis.Answer{Metric: q.Metric, Query: q.Text}
	for _, w := range warnings {
		a.Warnings = append(a.Warnings, bound(w, secrets))
	}
	switch v := value.(type) {
	case *model.Scalar:
		a.Type = analysis.Scalar
		a.Series = []analysis.Series{{Value: float64(v.Value)}}
	case model.Vector:
		a.Type = analysis.Vector
		for _, s := range v {
			if s == nil {
				return failed("the answer could not be read: a series without a value")
			}
			if s.Histogram != nil {
				return failed("a series is a histogram, which is no number; use histogram_quantile or histogram_count")
			}
			a.Series = append(a.Series, analysis.Series{Labels: s.Metric.String(), Value: float64(s.Value)})
		}
	case model.Matrix:
		a.Type = analysis.Matrix
	case *model.String:
		a.Type = analysis.String
	default:
		return failed("the answer has no result")
	}
	return a
}

// carrier adds what belongs to the target to each request, and bounds the answer.
type carrier struct {
	target *target
	next   http.RoundTripper
}

func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != c.target.address.Scheme || r.URL.Host != c.target.address.Host {
		return nil, errRedirect // nothing asks for it; the token goes nowhere else in any case
	}
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", "ome-manager")
	for name, values := range c.target.headers {
		r.Header[name] = slices.Clone(values)
	}
	if c.target.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.target.token)
	}
	resp, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = &limited{body: resp.Body, left: maxAnswer}
	return resp, nil
}

// limited is a body that fails when it gets too long, where io.LimitReader would end it quietly.
type limited struct {
	body io.ReadCloser
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.body.Read(p)
	if l.left -= n; l.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

func (l *limited) Close() error { return l.body.Close() }

// reason words an error without the URL that Go puts in front of it.
func reason(err error) string {
	var where *url.Error
	for errors.As(err, &where) {
		err = where.Err
	}
	var answered *promv1.Error
	if errors.As(err, &answered) {
		switch answered.Type {
		case promv1.ErrBadResponse:
			return "the answer is not one of a Prometheus API: " + answered.Msg
		case promv1.ErrServer, promv1.ErrClient:
			return answered.Msg
		}
		return string(answered.Type) + ": " + answered.Msg
	}
	return err.Error()
}

// bound strips a text of secrets and makes it short.
func bound(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= 3 { // less is no secret, and would only tear the text
			text = strings.ReplaceAll(text, s, "[hidden]")
		}
	}
	text = userInfo.ReplaceAllString(text, "://[hidden]@")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText-len("...")], "") + "..."
	}
	return text
}
