// Package recall is a tool with which an agent finds again what its memory compressed: it searches notes, archived notes
// and past messages by words, and opens the raw messages behind a note, page by page.
//
// Give [New]'s result to the agent as one of its tools. Whose memory is searched comes from the call's context, never
// from the model.
package recall
