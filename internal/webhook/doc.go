// Package webhook answers admission requests: it decodes the object, asks
// package validate and passes the answer on. It holds no rule of its own.
//
// Every replica of the manager serves, leader or not.
package webhook
