// Package rawobs keeps the most recent raw tool outputs of a session, byte for byte, against semantic drift.
//
// # Purpose
//
// Notes are written by a model and condensed again by a model. Each pass rounds something off: an id loses a digit, a
// price becomes "about 150", a refusal becomes "some trouble". An agent that acts on such a note acts on a paraphrase of
// a paraphrase. The last few tool outputs are what the agent is acting on right now, so they are kept as the tool gave
// them, and a prompt must never rely on summaries alone for recent tool outputs.
//
// # Size
//
// A [Buffer] holds [DefaultSize] outputs unless told otherwise. A size below [MinAdvisedSize] is allowed and warned about:
// an agent's step commonly compares what it looked up with what it looked up before and with the outcome of its last
// action. With fewer than three, one of those is already a summary when it is needed.
//
// # How it is used
//
// [Buffer.ContextString] joins the outputs, oldest first, with [Separator]. It has no times and no randomness: the same
// outputs give the same string, so a prompt prefix that holds it stays cacheable. The middleware shows the model each of
// the outputs once: in place, where the request still has the call and its response, and otherwise from here.
//
// Start with [NewRegistry] and [Registry.Session], which scope the outputs to a session; nothing here is global. A
// Buffer alone serves code that has one session only. The package imports the standard library only.
package rawobs
