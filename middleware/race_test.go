//go:build race

package middleware_test

// raceEnabled leaves out the ten thousand sessions, which take a minute and more under the race detector.
const raceEnabled = true
