//go:build race

package main

// raceEnabled leaves out the longest replays, which the race detector makes twenty times longer.
const raceEnabled = true
