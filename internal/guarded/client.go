package guarded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"ome.io/ome/api/v1beta1"
)

// maxObjectBytes is the largest object an action inspects; maxListBytes bounds
// the list of a service's replicas.
const (
	maxObjectBytes = 1 << 20
	maxListBytes   = 32 << 20
)

// Client reads and patches the objects of one API version as raw bytes. It does no
// discovery: every path is fixed, so the first request is the one that counts.
type Client struct {
	rest    rest.Interface
	timeout time.Duration
	// warnings are what the API server and its webhooks warned about, in order.
	warnings []string
	// serverTime is the Date of the newest answer; zero before there is one.
	serverTime time.Time
}

// dated keeps the time that answers carry, the only one that says what is in the
// future of what the controller wrote.
type dated struct {
	next   http.RoundTripper
	client *Client
}

func (d dated) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := d.next.RoundTrip(req)
	if err == nil {
		if t, parseErr := http.ParseTime(resp.Header.Get("Date")); parseErr == nil {
			d.client.serverTime = t
		}
	}
	return resp, err
}

// HandleWarningHeader keeps a warning until there is a good moment to print it.
func (c *Client) HandleWarningHeader(code int, _ string, text string) {
	if code == 299 && text != "" {
		c.warnings = append(c.warnings, Clean(text))
	}
}

var _ rest.WarningHandler = (*Client)(nil)

// NewClient builds a client for one API version. A request may take as long as
// the configuration allows, and never longer than limit unless that is zero.
func NewClient(config *rest.Config, gv schema.GroupVersion, limit time.Duration) (*Client, error) {
	c := rest.CopyConfig(config)
	timeout := limit
	if c.Timeout > 0 && (limit == 0 || c.Timeout < limit) {
		timeout = c.Timeout
	}
	// The context carries the limit: http.Client.Timeout would word the error differently.
	c.Timeout = 0
	c.APIPath = "/apis"
	if gv.Group == "" {
		c.APIPath = "/api"
	}
	c.GroupVersion = &gv
	c.ContentType = runtime.ContentTypeJSON
	c.AcceptContentTypes = runtime.ContentTypeJSON
	c.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if c.UserAgent == "" {
		c.UserAgent = "kubectl-ome"
	}
	client := &Client{timeout: timeout}
	c.WarningHandler = client
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return dated{next, client} })
	r, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, err
	}
	client.rest = r
	return client, nil
}

// Ref names an object or a collection for error messages.
type Ref struct {
	Kind, Resource, Namespace, Name string
}

func (r Ref) String() string {
	s := r.Kind
	if r.Name != "" {
		s += " " + Quote(r.Name)
	} else {
		s = r.Resource
	}
	if r.Namespace != "" {
		s += " in namespace " + Quote(r.Namespace)
	}
	return s
}

// errTooLarge marks an answer past its byte bound.
var errTooLarge = errors.New("answer exceeds the inspection bound")

// Get reads one object.
func (c *Client) Get(ctx context.Context, ref Ref) ([]byte, error) {
	return c.do(ctx, c.rest.Get(), ref, maxObjectBytes)
}

// GetScale reads the scale subresource of an object.
func (c *Client) GetScale(ctx context.Context, ref Ref) ([]byte, error) {
	return c.do(ctx, c.rest.Get().SubResource(subresourceScale), ref, maxObjectBytes)
}

// List reads the objects of a collection that carry a label.
func (c *Client) List(ctx context.Context, ref Ref, selector string, limit int) ([]byte, error) {
	req := c.rest.Get().Param("labelSelector", selector).Param("limit", fmt.Sprint(limit))
	return c.do(ctx, req, ref, maxListBytes)
}

// ListMetadata reads a collection without specs and statuses.
func (c *Client) ListMetadata(ctx context.Context, ref Ref, limit int) ([]byte, error) {
	req := c.rest.Get().Param("limit", fmt.Sprint(limit)).
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	return c.do(ctx, req, ref, maxListBytes)
}

// Patch sends one JSON Patch.
func (c *Client) Patch(ctx context.Context, ref Ref, subresource string, body []byte, dryRun bool) ([]byte, error) {
	req := c.rest.Patch(types.JSONPatchType).Body(body).Param("fieldManager", "kubectl-ome")
	if dryRun {
		req = req.Param("dryRun", "All")
	}
	if subresource != "" {
		req = req.SubResource(subresource)
	}
	return c.do(ctx, req, ref, maxObjectBytes)
}

func (c *Client) do(ctx context.Context, req *rest.Request, ref Ref, limit int64) ([]byte, error) {
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	// client-go would repeat a request, the patch included, when the answer says
	// Retry-After. What a person confirmed is sent once, and a read that fails
	// shouldn't eat the time for the prompt.
	req = req.MaxRetries(0).Resource(ref.Resource)
	if ref.Namespace != "" {
		req = req.Namespace(ref.Namespace)
	}
	if ref.Name != "" {
		req = req.Name(ref.Name)
	}
	body, err := req.Stream(ctx)
	if err == nil {
		defer func() { _ = body.Close() }()
		var buf bytes.Buffer
		_, err = io.Copy(&buf, io.LimitReader(body, limit+1))
		if err == nil && int64(buf.Len()) > limit {
			return nil, errTooLarge
		}
		if err == nil {
			return buf.Bytes(), nil
		}
	}
	// Whatever the transport says about it, an ended context is the cause.
	if ctxErr := ctx.Err(); ctxErr != nil {
		return nil, ctxErr
	}
	return nil, err
}

// readError turns a failed read into the error a person sees. The first line is
// one string for every cause; the details tell them apart.
func readError(err error, ref Ref, ev *Evidence) *Error {
	if e := contextError(err); e != nil {
		e.Details = []string{"while reading " + ref.String() + "; nothing was changed"}
		return e
	}
	details := []string{classOf(err) + ": " + ref.String()}
	if text := serverText(err); text != "" {
		details = append(details, text)
	}
	switch {
	case apierrors.IsNotFound(err):
		details = append(details, "to see what is there: kubectl get "+ref.Resource+"."+v1beta1.Group+ev.locate(ref))
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		verb := "get"
		if ref.Name == "" {
			verb = "list"
		}
		details = append(details, "to check your rights: kubectl auth can-i "+verb+" "+ref.Resource+"."+v1beta1.Group+ev.locate(ref))
	}
	return Refuse(MsgReadFailed, append(details, "nothing was changed")...)
}

// contextError is the error of an ended context; nil for anything else.
func contextError(err error) *Error {
	switch {
	case errors.Is(err, context.Canceled):
		return Refuse(context.Canceled.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return Refuse(context.DeadlineExceeded.Error())
	}
	return nil
}

// classOf names the class of an API error.
func classOf(err error) string {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, errTooLarge):
		return "TooLarge"
	case isWebhookDenial(err):
		return "Webhook"
	case errors.As(err, &status):
		if r := status.Status().Reason; r != "" {
			return string(r)
		}
		return fmt.Sprintf("HTTP %d", status.Status().Code)
	}
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		return "Network"
	}
	return "Unreadable"
}

// Decode reads an API object. Keys match exactly, as they do in the API server.
func Decode(raw []byte, into any) error { return decode(raw, into) }

// ClassOf and ServerText describe a failed request for a person.
func ClassOf(err error) string { return classOf(err) }

// ServerText is what the API server or the network said, safe for a terminal.
func ServerText(err error) string { return serverText(err) }

// serverText is what the API server or the network said, safe for a terminal.
func serverText(err error) string {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		return Clean(urlErr.Err.Error())
	}
	return Clean(err.Error())
}
