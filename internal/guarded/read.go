package guarded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Query narrows a read. The zero value reads an object, or the first page of a
// collection in the server's size.
type Query struct {
	Subresource                  string
	LabelSelector, FieldSelector string
	Limit                        int
	// MaxBytes bounds the answer; zero is 1 MiB for an object, 32 MiB for a collection.
	MaxBytes int64
}

// Read reads an object or a collection for a report.
func (c *Client) Read(ctx context.Context, ref Ref, q Query) ([]byte, error) {
	req := c.rest.Get()
	for key, value := range map[string]string{"labelSelector": q.LabelSelector, "fieldSelector": q.FieldSelector} {
		if value != "" {
			req = req.Param(key, value)
		}
	}
	if q.Limit > 0 {
		req = req.Param("limit", fmt.Sprint(q.Limit))
	}
	if q.Subresource != "" {
		req = req.SubResource(q.Subresource)
	}
	limit := q.MaxBytes
	switch {
	case limit > 0:
	case ref.Name == "":
		limit = maxListBytes
	default:
		limit = maxObjectBytes
	}
	return c.do(ctx, req, ref, limit)
}

// Watch opens a watch of one object. The stream is the API server's: one JSON
// document per event. It ends with the context, and no request timeout cuts it.
func (c *Client) Watch(ctx context.Context, ref Ref, resourceVersion string) (io.ReadCloser, error) {
	body, err := c.rest.Get().MaxRetries(0).Resource(ref.Resource).Namespace(ref.Namespace).
		Param("watch", "true").Param("fieldSelector", "metadata.name="+ref.Name).Param("resourceVersion", resourceVersion).Stream(ctx)
	if ctxErr := ctx.Err(); err != nil && ctxErr != nil {
		return nil, ctxErr
	}
	return body, err
}

// ServerTime is the time that the newest answer carried; zero when none did. It is
// the clock to hold recorded times against: the local one may be wrong.
func (c *Client) ServerTime() time.Time { return c.serverTime }

// TooLarge reports whether an answer went past its bound.
func TooLarge(err error) bool { return errors.Is(err, errTooLarge) }
