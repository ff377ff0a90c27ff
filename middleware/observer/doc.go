// Package observer turns a run of messages into a note: what was decided, what the user wants, the facts, and how far
// the task has come. [New] asks a model and guards what it answers; [NewExtractive] needs no model at all.
package observer
