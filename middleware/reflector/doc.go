// Package reflector condenses notes: observations into a reflection, and reflections into one of the next generation.
// [New] asks a model and guards what it answers; [NewExtractive] needs no model at all.
package reflector
