// Package keda holds the one kind of KEDA that the manager writes, with the fields it
// writes or reads and no others. Objects are only ever patched, so what is not here stays.
package keda
