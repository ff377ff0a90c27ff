package adksession

import (
	"fmt"
	"strings"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/gormstore"
)

// byOwner selects the rows of one session, given [args].
const byOwner = "app = ? AND user_id = ? AND session_id = ?"

func args(key backends.SessionKey, more ...any) []any {
	return append([]any{key.App, key.User, key.Session}, more...)
}

// migrations are the service's schema.
//
// A session's epoch is random and new whenever the session is created. Its last_seq is the sequence of the newest
// event: it grows by one with each append and with nothing else, so it also tells whether a session object is stale.
// Its generation grows with each compaction. Events of one epoch and generation never change and have no gaps after
// any event that a reader of that generation has seen.
//
// State rows of an app have an empty user and session, those of a user an empty session; no caller can name an empty id.
func migrations(db *gorm.DB) ([]gormstore.Migration, error) {
	var types *strings.Replacer
	switch name := db.Name(); name {
	case "sqlite":
		types = strings.NewReplacer("{id}", "TEXT", "{blob}", "BLOB", "{rows}", " WITHOUT ROWID")
	case "postgres":
		types = strings.NewReplacer("{id}", `TEXT COLLATE "C"`, "{blob}", "BYTEA", "{rows}", "")
	default:
		return nil, fmt.Errorf("%w: adksession supports sqlite and postgres, not %q", backends.ErrInvalid, name)
	}
	var statements []string
	for _, s := range initial {
		statements = append(statements, types.Replace(s))
	}
	return []gormstore.Migration{gormstore.SQL("0001_sessions_events_state", statements...)}, nil
}

var initial = []string{
	`CREATE TABLE adkmemory_adk_sessions (
		app {id} NOT NULL, user_id {id} NOT NULL, session_id {id} NOT NULL,
		epoch TEXT NOT NULL, generation BIGINT NOT NULL, last_seq BIGINT NOT NULL,
		created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL,
		PRIMARY KEY (app, user_id, session_id)){rows}`,
	`CREATE TABLE adkmemory_adk_events (
		app {id} NOT NULL, user_id {id} NOT NULL, session_id {id} NOT NULL, seq BIGINT NOT NULL,
		id {id} NOT NULL, sent_at BIGINT NOT NULL, event {blob} NOT NULL,
		PRIMARY KEY (app, user_id, session_id, seq))`,
	`CREATE UNIQUE INDEX adkmemory_adk_events_id ON adkmemory_adk_events (app, user_id, session_id, id)`,
	`CREATE TABLE adkmemory_adk_state (
		app {id} NOT NULL, user_id {id} NOT NULL, session_id {id} NOT NULL, name {id} NOT NULL,
		value {blob} NOT NULL,
		PRIMARY KEY (app, user_id, session_id, name)){rows}`,
}
