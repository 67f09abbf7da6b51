// Package bench measures the project's budgets on one lab, in one run: a big component of ours rolls to a new image
// beside two Deployments of the same pods, in alternating order, and every request is counted from the API server's
// audit log. Ratios and counts mean something on any machine; times alone don't.
package bench
