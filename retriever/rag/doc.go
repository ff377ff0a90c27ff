// Package rag finds documents by similarity: an [Embedder] turns texts into vectors, an [EmbeddingBuffer] does so in the
// background, the store keeps them, and [Hybrid] joins what they find with full-text search.
//
// [Local] needs neither network nor model. It knows words and their parts, no meaning: use a provider's embeddings, with
// [Gemini] or [OpenAI], where meaning counts.
package rag
