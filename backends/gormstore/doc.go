// Package gormstore implements [backends.Store] over GORM, on SQLite and Postgres. Most programs want package sqlite or
// postgres, which open the database too; call [New] when there is a *gorm.DB already.
//
// All tables are named adkmemory_…, and every primary key leads with app, user and session, so that the schema shards by
// session. Times are int64 microseconds, order is a sequence of each session's own, and every write transaction starts
// with the session's row, which serializes the writers of one session and no others. The schema is described beside its
// migrations in schema.go.
//
// GORM's callbacks see every statement, in order, on the handles that [Store.DB] and [Store.Reader] return. That is the
// seam for tracing, and for tests that inject faults between two statements of a transaction.
package gormstore
