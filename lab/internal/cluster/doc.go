// Package cluster runs one lab: a supervisor process that owns the control plane's programs, the simulated nodes and
// the manager, and the commands that start it, look at it and stop it. A lab lives in one directory; several run side
// by side. The supervisor's children die with it, and whoever holds the directory's lock file is the running lab.
package cluster
