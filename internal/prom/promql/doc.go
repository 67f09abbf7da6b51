// Package promql reads PromQL, to refuse what can't be run and to say how far
// into the past a query looks. It sends nothing.
package promql
