package gormstore

// libraryTables are the tables about a user as a whole: the index, and what is kept across sessions. Deleting a user
// empties all of them.
func libraryTables() []string {
	return []string{
		"adkmemory_search_areas", "adkmemory_search_blocks", "adkmemory_search_docs", "adkmemory_entries",
		"adkmemory_vectors", "adkmemory_triples",
	}
}

// library is the schema of search, knowledge, vectors and triples.
//
// A row of adkmemory_search_areas is one user's documents of one kind, its blocks hold their postings as package
// fulltext packs them, and adkmemory_search_docs says which document a number is: ref is the id of a message or note,
// whose seq stands beside it, or the key of an entry, whose session_id is empty. What has a row there exists: vectors and
// triples name documents the same way. The second index leads with the session because a Postgres that has no statistics
// yet would take one that leads with app and user for as good as the primary key.
var library = []string{
	`CREATE TABLE adkmemory_search_areas (
		app {id} NOT NULL, user_id {id} NOT NULL, kind {id} NOT NULL,
		next BIGINT NOT NULL, docs BIGINT NOT NULL, length BIGINT NOT NULL, tail TEXT NOT NULL,
		PRIMARY KEY (app, user_id, kind)){rows}`,
	`CREATE TABLE adkmemory_search_blocks (
		app {id} NOT NULL, user_id {id} NOT NULL, kind {id} NOT NULL, term {id} NOT NULL, block BIGINT NOT NULL,
		data {blob} NOT NULL,
		PRIMARY KEY (app, user_id, kind, term, block)){rows}`,
	`CREATE TABLE adkmemory_search_docs (
		app {id} NOT NULL, user_id {id} NOT NULL, kind {id} NOT NULL, doc BIGINT NOT NULL,
		session_id {id} NOT NULL, ref {id} NOT NULL, seq BIGINT NOT NULL,
		PRIMARY KEY (app, user_id, kind, doc)){rows}`,
	`CREATE INDEX adkmemory_search_docs_ref ON adkmemory_search_docs (session_id, app, user_id, kind, ref)`,
	`CREATE TABLE adkmemory_entries (
		app {id} NOT NULL, user_id {id} NOT NULL, kind {id} NOT NULL, entry_key {id} NOT NULL, version BIGINT NOT NULL,
		newest BOOLEAN NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL, category TEXT NOT NULL, tags TEXT NOT NULL,
		source TEXT NOT NULL, confidence DOUBLE PRECISION NOT NULL, successes BIGINT NOT NULL, failures BIGINT NOT NULL,
		created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
		PRIMARY KEY (app, user_id, kind, entry_key, version))`,
	`CREATE INDEX adkmemory_entries_newest ON adkmemory_entries (app, user_id, updated_at) WHERE newest`,
	`CREATE TABLE adkmemory_vectors (
		app {id} NOT NULL, user_id {id} NOT NULL, session_id {id} NOT NULL, kind {id} NOT NULL, ref {id} NOT NULL,
		model {id} NOT NULL, dims BIGINT NOT NULL, data {blob} NOT NULL,
		PRIMARY KEY (app, user_id, session_id, kind, ref, model))`,
	`CREATE TABLE adkmemory_triples (
		app {id} NOT NULL, user_id {id} NOT NULL, session_id {id} NOT NULL, kind {id} NOT NULL, ref {id} NOT NULL,
		digest {id} NOT NULL, subject TEXT NOT NULL, predicate TEXT NOT NULL, object TEXT NOT NULL,
		subject_key {id} NOT NULL, object_key {id} NOT NULL, drawn_at BIGINT NOT NULL,
		PRIMARY KEY (app, user_id, session_id, kind, ref, digest))`,
	`CREATE INDEX adkmemory_triples_subject ON adkmemory_triples (app, user_id, subject_key)`,
	`CREATE INDEX adkmemory_triples_object ON adkmemory_triples (app, user_id, object_key)`,
}
