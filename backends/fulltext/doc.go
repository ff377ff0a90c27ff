// Package fulltext is the one text search of adkmemory: an analyzer that turns text into terms, a packed form of
// postings that every backend stores as it likes, and the BM25 ranking that all of them share. A backend only keeps
// blocks of bytes; what ranks first is decided here, so it is the same everywhere.
//
// An area is what ranks together: the documents of one kind of one tenant (app and user). It has its own documents,
// statistics and blocks, so that no other tenant's rows change a rank or a cost. A backend implements [Blocks] for an
// area and calls [Add], [Remove] and [Search].
package fulltext
