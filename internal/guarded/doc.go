// Package guarded runs the commands that change a cluster. Every one of them
// follows the same sequence:
//
//	flags -> read -> check -> preview -> confirm -> read again -> patch -> classify -> print
//
// Run owns that sequence. A command is an Action, a value that says what it
// reads, what it refuses, what it changes and which words it uses; it holds no
// steps of its own, so no command can forget one.
//
// Nothing here knows about cobra, os.Stdin or the wall clock: streams, terminal
// detection, clock, time budget and transport are injected.
package guarded
