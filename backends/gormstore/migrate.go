package gormstore

import (
	"context"
	"fmt"

	"github.com/go-gormigrate/gormigrate/v2"
	"gorm.io/gorm"
)

// migrationsTable remembers which migrations ran, for every component in the database.
const migrationsTable = "adkmemory_migrations"

// Migration is one step of a component's schema. A released migration never changes; what comes later is a new one.
type Migration struct {
	ID string // unique within the component, such as "0001_sessions"
	Up func(tx *gorm.DB) error
}

// SQL returns a migration that runs statements one after the other.
func SQL(id string, statements ...string) Migration {
	return Migration{ID: id, Up: func(tx *gorm.DB) error {
		for _, statement := range statements {
			if err := tx.Exec(statement).Error; err != nil {
				return err
			}
		}
		return nil
	}}
}

// Migrate runs the migrations of the named component that the database has not seen yet, in order and in one
// transaction that excludes every other migration: of any number of processes that start together one migrates and the
// others wait for it. When nothing is to be done it costs one query. Migrations in the database that the program does
// not know are left alone, so that an older release keeps running beside a newer one.
func Migrate(ctx context.Context, db *gorm.DB, component string, migrations []Migration) error {
	d, err := dialectOf(db)
	if err != nil {
		return err
	}
	db = quiet(db).WithContext(ctx)
	list := make([]*gormigrate.Migration, len(migrations))
	ids := make([]string, len(migrations))
	for i, m := range migrations {
		ids[i] = component + "/" + m.ID
		list[i] = &gormigrate.Migration{ID: ids[i], Migrate: m.Up}
	}
	// An error here most likely means that there is no table yet; whatever else it means shows below.
	var done int64
	if err := db.Table(migrationsTable).Where("id IN ?", ids).Count(&done).Error; err == nil && int(done) == len(ids) {
		return nil
	}
	up := func(tx *gorm.DB) error {
		return gormigrate.New(tx, &gormigrate.Options{TableName: migrationsTable}, list).Migrate()
	}
	if err := exclusively(db, d, up); err != nil {
		return fmt.Errorf("adkmemory: migrate %s: %w", component, err)
	}
	return nil
}

// exclusively runs fn in a transaction that no other process migrates beside.
func exclusively(db *gorm.DB, d dialect, fn func(tx *gorm.DB) error) error {
	if d.lockSchema != "" {
		return db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Exec(d.lockSchema).Error; err != nil {
				return err
			}
			return fn(tx)
		})
	}
	// SQLite: by hand, because it depends on the caller's DSN how the driver begins a transaction, and a deferred one
	// fails when it turns from reading to writing beside another.
	return db.Connection(func(conn *gorm.DB) error {
		conn = conn.Session(&gorm.Session{NewDB: true})
		if err := conn.Exec("BEGIN IMMEDIATE").Error; err != nil {
			return err
		}
		err := fn(conn)
		if err == nil {
			if err = conn.Exec("COMMIT").Error; err == nil {
				return nil
			}
		}
		// Without the context: a cancelled one must not leave the connection inside the transaction.
		conn.WithContext(context.WithoutCancel(db.Statement.Context)).Exec("ROLLBACK")
		return err
	})
}
