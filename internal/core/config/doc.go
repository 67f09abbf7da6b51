// Package config holds the operator's settings as plain values.
//
// The pure core reads Settings and nothing else about the installation. Where
// the values come from, and what happens to a bad one, is the business of
// package settings; this package only names the knobs and their defaults.
//
// A zero duration or count means "off" or "no bound", as each field says.
// Settings is a value: share it freely, never change one that you were given.
package config
