// Package view turns cluster objects into report values and draws them. It is
// pure: objects and a time in, values and text out. Every report has one value
// type, and table, wide table, JSON and YAML are drawings of that value.
//
// Nothing here guesses: a field that no evidence supports stays empty, and an
// issue code says what was missing.
package view
