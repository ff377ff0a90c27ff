package gormstore

import (
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
)

// dialect is what SQLite and Postgres say differently.
type dialect struct {
	blob       string // type of a column of bytes
	id         string // type of a column that is compared and sorted byte by byte
	rowTable   string // suffix of a table of short rows that is read by its primary key only
	now        string // the database's clock in microseconds, as an expression
	find       string // function that returns the position of its second argument in its first
	lockRows   string // suffix of a select that waits for the locks of its rows …
	skipLocked string // … or leaves out those that are locked; "" where writers queue anyway
	lockApp    string // statements that hold back deletions of a user or app …
	lockDelete string // … and that such a deletion takes, until the transaction ends
	lockSchema string // statement that holds back other migrations until the transaction ends
	read       *sql.TxOptions
	write      *sql.TxOptions
}

func dialectOf(db *gorm.DB) (dialect, error) {
	switch name := db.Name(); name {
	case "sqlite":
		return dialect{
			blob:     "BLOB",
			id:       "TEXT",
			rowTable: " WITHOUT ROWID",
			// Not unixepoch('subsec'): that needs SQLite 3.42.
			now:   "(CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000)",
			find:  "instr",
			read:  &sql.TxOptions{ReadOnly: true},
			write: &sql.TxOptions{},
		}, nil
	case "postgres":
		return dialect{
			blob:       "BYTEA",
			id:         `TEXT COLLATE "C"`,
			now:        "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint",
			find:       "strpos",
			lockRows:   " FOR UPDATE",
			skipLocked: " FOR UPDATE SKIP LOCKED",
			lockApp:    "SELECT pg_advisory_xact_lock_shared(hashtextextended('adkmemory_sessions/' || current_schema() || '/' || ?, 0))",
			lockDelete: "SELECT pg_advisory_xact_lock(hashtextextended('adkmemory_sessions/' || current_schema() || '/' || ?, 0))",
			lockSchema: "SELECT pg_advisory_xact_lock(hashtextextended('adkmemory_migrations/' || current_schema(), 0))",
			read:       &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
			write:      &sql.TxOptions{Isolation: sql.LevelReadCommitted},
		}, nil
	default:
		return dialect{}, fmt.Errorf("%w: gormstore supports sqlite and postgres, not %q", backends.ErrInvalid, name)
	}
}
