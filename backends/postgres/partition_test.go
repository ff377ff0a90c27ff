package postgres_test

import (
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends/gormstore/gormtest"
	"github.com/adkmemory/adkmemory/backends/pgtest"
)

// partition splits the tables of sessions by a hash of app, user and session, as docs/scaling.md tells operators to.
func partition(t *testing.T, db *gorm.DB, parts int) {
	tables := []string{"adkmemory_sessions", "adkmemory_streams", "adkmemory_notes", "adkmemory_messages", "adkmemory_leases"}
	for _, table := range tables {
		statements := []string{
			"ALTER TABLE " + table + " RENAME TO " + table + "_old",
			"CREATE TABLE " + table + " (LIKE " + table + "_old INCLUDING ALL) PARTITION BY HASH (app, user_id, session_id)",
		}
		for i := range parts {
			statements = append(statements, fmt.Sprintf(
				"CREATE TABLE %s_%d PARTITION OF %s FOR VALUES WITH (MODULUS %d, REMAINDER %d)", table, i, table, parts, i))
		}
		statements = append(statements, "INSERT INTO "+table+" SELECT * FROM "+table+"_old", "DROP TABLE "+table+"_old")
		for _, statement := range statements {
			if err := db.Exec(statement).Error; err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := db.Exec("ANALYZE").Error; err != nil {
		t.Fatal(err)
	}
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	store := open(t, pgtest.DSN(t))
	gormtest.Fill(t, store.DB(), 10_000, 10)
	partition(t, store.DB(), 4)
	t.Run("OPS-2 a turn works on partitioned tables, and reads none of them from end to end", func(t *testing.T) {
		for _, s := range gormtest.Scans(t, store.DB(), func() { gormtest.Turn(t, store, gormtest.Filled(500)) }) {
			t.Error(s)
		}
	})
	t.Run("OPS-2 so does everything else", func(*testing.T) {
		gormtest.Upkeep(t, store, gormtest.Filled(600))
		if _, err := store.Sweep(t.Context(), 1); err != nil {
			t.Error(err)
		}
	})
}
