// Package validate holds every admission rule as a function on API objects.
//
// The webhook and the command line call the same functions. They read nothing
// but their arguments. A rule is judged when an object is made, and on an update
// only when something that the rule reads has changed, so that an object stored
// before a rule existed still accepts every unrelated edit.
//
// A rule with a reason code ends its message in the code in parentheses; codes
// are part of the API. What the manager can't run yet is refused in one file,
// unsupported.go, whose rows go as the work is done.
package validate
