package v1beta1

import (
	"errors"

	kjson "sigs.k8s.io/json"
)

// DecodeStrict reads JSON into an object of this API and refuses unknown and repeated fields. The
// CRDs keep the deepest leaves of component pod templates open, to stay small; this is what refuses
// a mistake in them.
func DecodeStrict(data []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return err
	}
	return errors.Join(strict...)
}
