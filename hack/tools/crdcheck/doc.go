// Package crdcheck tests the generated CRDs with the API server's own code: that each is accepted,
// CEL cost included, and that objects are accepted or refused as the API says. It is part of the
// tools module so that the API server's dependencies stay out of the product.
package crdcheck
