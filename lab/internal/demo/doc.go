// Package demo shows the main job on a lab of its own: a prefill/decode service comes up, its engine and decoder roll to a
// new image together under open-loop load, a person pauses the roll and resumes it, and no request is lost. It believes
// nothing that it has not seen: what it watched in pods, status and answers becomes named checks, and one that fails makes
// the run fail.
package demo
