// Package fulltext is the one text search of adkmemory: an analyzer that turns text into terms, a packed form of
// postings that every backend stores as it likes, and the BM25 ranking that all of them share. A backend only keeps
// blocks of bytes per tenant and term; what ranks first is decided here, so it is the same everywhere.
//
// Start with [Analyze] for what is stored and [AnalyzeQuery] for what is asked. Backends use [Plan] to write and
// [Rank] to read.
package fulltext
