// Package settings reads the operator's ConfigMap into config.Settings.
//
// Each key of the ConfigMap holds a JSON object. A key or field that is missing
// has its built-in default. A field set to null is off. A field with a bad value
// keeps the last good value, so that one typo disables nothing but itself; what
// is wrong is returned as a Problem that names the key, the field, the value and
// what was expected. Keys and fields that this release doesn't know are ignored.
package settings
