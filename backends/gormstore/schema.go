package gormstore

import "strings"

// sessionTables are the tables that hold rows of a session beside its own row in adkmemory_sessions. Deleting a session
// empties all of them.
func sessionTables() []string {
	return []string{"adkmemory_streams", "adkmemory_notes", "adkmemory_messages", "adkmemory_leases"}
}

// schema lists the store's migrations. There are no foreign keys: a session's row outlives its children as a tombstone,
// every write holds its lock, and a distributed database need not check them across shards.
func schema(d dialect) []Migration {
	types := strings.NewReplacer("{id}", d.id, "{blob}", d.blob, "{rows}", d.rowTable)
	of := func(statements []string) []string {
		out := make([]string, len(statements))
		for i, s := range statements {
			out[i] = types.Replace(s)
		}
		return out
	}
	return []Migration{
		SQL("0001_sessions_notes_messages_leases", of(initial)...),
		SQL("0002_search_knowledge_vectors_triples", of(library)...),
	}
}

// initial is the first schema.
//
// A row of adkmemory_sessions with deleted_at > 0 is a tombstone. With an empty session_id it stands for all sessions of
// a user that have no row of their own, with an empty user_id too for those of an app; no caller can name an empty id.
// note_seq and message_seq count what the session has stored. Streams are numbered within their session, because branch
// and scope together are too long for one more index; a row holds the stream's cursor, with an empty message_id while
// nothing was observed. A message's note_id is empty until a note covers it.
//
// A note of generation 0 is an observation, of a higher one a reflection.
var initial = []string{
	`CREATE TABLE adkmemory_sessions (
		app {id} NOT NULL, user_id {id} NOT NULL, session_id {id} NOT NULL,
		epoch TEXT NOT NULL, version BIGINT NOT NULL,
		deleted_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
		note_seq BIGINT NOT NULL, message_seq BIGINT NOT NULL,
		PRIMARY KEY (app, user_id, session_id)){rows}`,
	`CREATE INDEX adkmemory_sessions_recent
		ON adkmemory_sessions (app, deleted_at, updated_at DESC, user_id, session_id)`,
	`CREATE INDEX adkmemory_sessions_age ON adkmemory_sessions (deleted_at, updated_at)`,
	`CREATE TABLE adkmemory_streams (
		app {id} NOT NULL, user_id {id} NOT NULL, session_id {id} NOT NULL,
		branch {id} NOT NULL, scope {id} NOT NULL, stream BIGINT NOT NULL,
		message_id TEXT NOT NULL, message_time BIGINT NOT NULL, fingerprint TEXT NOT NULL, position BIGINT NOT NULL,
		PRIMARY KEY (app, user_id, session_id, branch, scope)){rows}`,
	`CREATE TABLE adkmemory_notes (
		app {id} NOT NULL, user_id {id} NOT NULL, session_id {id} NOT NULL, seq BIGINT NOT NULL,
		id {id} NOT NULL, stream BIGINT NOT NULL,
		generation BIGINT NOT NULL, active BOOLEAN NOT NULL, parent_id TEXT NOT NULL, sources TEXT,
		text TEXT NOT NULL, tokens BIGINT NOT NULL, writer TEXT NOT NULL, noted_at BIGINT NOT NULL,
		start_position BIGINT NOT NULL, start_id TEXT NOT NULL, start_time BIGINT NOT NULL,
		end_position BIGINT NOT NULL, end_id TEXT NOT NULL, end_time BIGINT NOT NULL,
		PRIMARY KEY (app, user_id, session_id, seq))`,
	`CREATE UNIQUE INDEX adkmemory_notes_id ON adkmemory_notes (app, user_id, session_id, id)`,
	`CREATE INDEX adkmemory_notes_active ON adkmemory_notes (app, user_id, session_id, seq) WHERE active`,
	`CREATE TABLE adkmemory_messages (
		app {id} NOT NULL, user_id {id} NOT NULL, session_id {id} NOT NULL, seq BIGINT NOT NULL,
		id {id} NOT NULL, stream BIGINT NOT NULL, note_id TEXT NOT NULL,
		position BIGINT NOT NULL, invocation_id TEXT NOT NULL, author TEXT NOT NULL, role TEXT NOT NULL,
		sent_at BIGINT NOT NULL, text TEXT NOT NULL, content {blob}, tokens BIGINT NOT NULL,
		PRIMARY KEY (app, user_id, session_id, seq))`,
	`CREATE UNIQUE INDEX adkmemory_messages_id ON adkmemory_messages (app, user_id, session_id, stream, id)`,
	`CREATE INDEX adkmemory_messages_note ON adkmemory_messages (app, user_id, session_id, note_id, seq)`,
	`CREATE TABLE adkmemory_leases (
		app {id} NOT NULL, user_id {id} NOT NULL, session_id {id} NOT NULL,
		owner TEXT NOT NULL, expires_at BIGINT NOT NULL,
		PRIMARY KEY (app, user_id, session_id)){rows}`,
}
