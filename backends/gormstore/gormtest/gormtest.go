// Package gormtest helps to test stores over package gormstore: it reaches behind the store's back.
package gormtest

import (
	"testing"
	"time"

	"gorm.io/gorm"
)

// After calls fn after every statement that the handle runs, before the next one of its transaction or its commit.
// It is how a test stops a process at a named point.
func After(db *gorm.DB, fn func(tx *gorm.DB)) error {
	c := db.Callback()
	for _, register := range []func(string, func(*gorm.DB)) error{
		c.Create().After("*").Register, c.Query().After("*").Register, c.Update().After("*").Register,
		c.Delete().After("*").Register, c.Row().After("*").Register, c.Raw().After("*").Register,
	} {
		if err := register("gormtest:after", fn); err != nil {
			return err
		}
	}
	return nil
}

// Before calls fn before every statement that the handle runs. An error added to tx, or a context of it that has
// ended, makes the statement fail.
func Before(db *gorm.DB, fn func(tx *gorm.DB)) error {
	c := db.Callback()
	for _, register := range []func(string, func(*gorm.DB)) error{
		c.Create().Before("*").Register, c.Query().Before("*").Register, c.Update().Before("*").Register,
		c.Delete().Before("*").Register, c.Row().Before("*").Register, c.Raw().Before("*").Register,
	} {
		if err := register("gormtest:before", fn); err != nil {
			return err
		}
	}
	return nil
}

// Age makes everything that the store dated look older by d: writes, tombstones, leases.
func Age(t testing.TB, db *gorm.DB, d time.Duration) {
	t.Helper()
	for _, statement := range []string{
		"UPDATE adkmemory_sessions SET updated_at = updated_at - ?",
		"UPDATE adkmemory_sessions SET deleted_at = deleted_at - ? WHERE deleted_at > 0",
		"UPDATE adkmemory_leases SET expires_at = expires_at - ?",
	} {
		if err := db.Exec(statement, d.Microseconds()).Error; err != nil {
			t.Fatal(err)
		}
	}
}

// Rows counts the rows of every table that are about a user, or an app when user is empty, but for tombstones. The
// tables are found by their columns, so that none is forgotten.
func Rows(t testing.TB, db *gorm.DB, app, user string) map[string]int {
	t.Helper()
	list := `SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = 'user_id' WHERE m.type = 'table'`
	if db.Name() == "postgres" {
		list = `SELECT table_name FROM information_schema.columns WHERE column_name = 'user_id' AND table_schema = current_schema()`
	}
	var tables []string
	if err := db.Raw(list).Scan(&tables).Error; err != nil || len(tables) < 5 {
		t.Fatalf("tables: %v, %v", tables, err)
	}
	counts := map[string]int{}
	for _, table := range tables {
		where := " WHERE app = ? AND (user_id = ? OR ? = '')"
		if table == "adkmemory_sessions" {
			where += " AND deleted_at = 0"
		}
		var n int
		if err := db.Raw("SELECT count(*) FROM "+table+where, app, user, user).Scan(&n).Error; err != nil {
			t.Fatal(err)
		}
		counts[table] = n
	}
	return counts
}
