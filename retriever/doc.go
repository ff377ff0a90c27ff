// Package retriever finds what an agent knows beyond the conversation, when it matters: it asks a set of layers in
// parallel for what fits the user's words and renders what they return as sections of the system prompt.
//
// Call [New] with layers from package layers, or with your own [Layer], then [Retriever.Retrieve] and
// [Retriever.AssemblePrompt]. Retrieval never fails as a whole: a layer that errs, panics or passes its deadline is
// logged and left out.
package retriever
