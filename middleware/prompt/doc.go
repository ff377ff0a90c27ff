// Package prompt writes what the memory adds to a model's prompt, and makes sure that text of others cannot pass for
// it. Everything that a user, a tool or a model wrote goes through [Quote], [Inline] or [Fence]; headings and note
// headers are only ever written here.
//
// Call [Memory] to build the conversation memory section and [Append] to put it behind an agent's own instruction.
package prompt
