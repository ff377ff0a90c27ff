package gormtest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
)

// Sessions a user has in a database that [Fill] filled.
const sessionsPerUser = 10

// Filled names the nth session of a database that [Fill] filled.
func Filled(n int) backends.SessionKey {
	return backends.SessionKey{
		App: "app", User: fmt.Sprintf("user%06d", n/sessionsPerUser), Session: fmt.Sprintf("session%07d", n),
	}
}

// Fill writes sessions with so many notes each, behind the store's back. Per session the last note is a reflection over
// the first half, the others are observations; each covers two messages, of which the archive has those of the last
// observation. Every session has had a lease, and a little of everything in the tables of search and knowledge.
func Fill(t testing.TB, db *gorm.DB, sessions, notes int) {
	t.Helper()
	series := func(n int) string { return fmt.Sprintf("generate_series(0, %d)", n-1) }
	padded := func(x string, digits int) string { return fmt.Sprintf("lpad((%s)::text, %d, '0')", x, digits) }
	if db.Name() == "sqlite" {
		series = func(n int) string {
			return fmt.Sprintf("(WITH RECURSIVE r(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r WHERE i < %d) SELECT i FROM r)", n-1)
		}
		padded = func(x string, digits int) string { return fmt.Sprintf("printf('%%0%dd', %s)", digits, x) }
	}
	block := `'\x000101'::bytea`
	if db.Name() == "sqlite" {
		block = "x'000101'"
	}
	user := "'app', 'user' || " + padded(fmt.Sprintf("s.i / %d", sessionsPerUser), 6)
	session := "'session' || " + padded("s.i", 7)
	key := user + ", " + session
	of, each := series(sessions)+" AS s(i)", series(notes)+" AS n(i)"
	if db.Name() == "sqlite" {
		of, each = series(sessions)+" AS s", series(notes)+" AS n"
	}
	text := "'Ada asked for order ' || s.i || ' to be changed and was told on 2026-03-04 that ' || n.i || ' of its parts are in stock.'"
	for _, statement := range []string{
		`INSERT INTO adkmemory_sessions SELECT ` + key + `, 'epoch', ` + fmt.Sprint(notes) + `, 0, 1700000000000000 + s.i, ` +
			fmt.Sprint(notes) + `, ` + fmt.Sprint(2*notes) + ` FROM ` + of,
		`INSERT INTO adkmemory_streams SELECT ` + key + `, '', '', 1, 'm` + fmt.Sprint(2*notes-3) + `', 0, '', ` +
			fmt.Sprint(2*notes-3) + ` FROM ` + of,
		`INSERT INTO adkmemory_notes SELECT ` + key + `, n.i + 1, 'note' || n.i, 1,
			CASE n.i WHEN ` + fmt.Sprint(notes-1) + ` THEN 1 ELSE 0 END, n.i >= ` + fmt.Sprint(notes/2) + `,
			CASE WHEN n.i < ` + fmt.Sprint(notes/2) + ` THEN 'note` + fmt.Sprint(notes-1) + `' ELSE '' END, 'null', ` + text + `,
			30, 'model', 0, 2 * n.i, 'm' || (2 * n.i), 0, 2 * n.i + 1, 'm' || (2 * n.i + 1), 0
			FROM ` + of + ` CROSS JOIN ` + each,
		`INSERT INTO adkmemory_messages SELECT ` + key + `, n.i + 1, 'm' || (` + fmt.Sprint(2*notes-4) + ` + n.i), 1,
			'note` + fmt.Sprint(notes-2) + `', ` + fmt.Sprint(2*notes-4) + ` + n.i, '', 'user', 'user', 0, ` + text + `, NULL, 30
			FROM ` + of + ` CROSS JOIN ` + strings.Replace(each, series(notes), series(2), 1),
		`INSERT INTO adkmemory_leases SELECT ` + key + `, 'owner', 0 FROM ` + of + ``,
		// One message of each session is indexed, has a vector and a triple; of each user two areas and an entry are there.
		`INSERT INTO adkmemory_search_docs SELECT ` + user + `, 'message', s.i, ` + session + `, 'm0', 1 FROM ` + of,
		`INSERT INTO adkmemory_search_blocks SELECT ` + user + `, 'message', 'term' || s.i, 4294967295, ` + block + ` FROM ` + of,
		`INSERT INTO adkmemory_search_areas SELECT ` + user + `, 'kind' || (s.i % 5), 10, 10, 10, '' FROM ` + of + ` WHERE s.i % 2 = 0`,
		`INSERT INTO adkmemory_entries SELECT ` + user + `, 'knowledge', 'key' || s.i, 1, true, 'title', ` + strings.ReplaceAll(text, "n.i", "1") +
			`, '', 'null', '', 0.5, 0, 0, 0, s.i FROM ` + of,
		`INSERT INTO adkmemory_vectors SELECT ` + key + `, 'message', 'm0', 'model', 1, ` + block + ` FROM ` + of,
		`INSERT INTO adkmemory_triples SELECT ` + key + `, 'message', 'm0', 'digest', 'Ada', 'asked', 'order', 'ada', 'order', 0 FROM ` + of,
	} {
		if err := db.Exec(statement).Error; err != nil {
			t.Fatal(err)
		}
	}
	// Postgres does this by itself before long; in SQLite's files nobody does.
	if db.Name() == "postgres" {
		if err := db.Exec("ANALYZE").Error; err != nil {
			t.Fatal(err)
		}
	}
}

// whole matches a step of a plan that reads a table of the store from end to end.
var whole = map[string]*regexp.Regexp{
	"postgres": regexp.MustCompile(`Seq Scan on (adkmemory_\w+)`),
	"sqlite":   regexp.MustCompile(`SCAN (adkmemory_\w+|[nsc]\b)`),
}

// Scans runs fn and returns the statements of the handle whose plans read a table from end to end.
func Scans(t testing.TB, db *gorm.DB, fn func()) []string {
	t.Helper()
	type statement struct {
		sql  string
		vars []any
	}
	var statements []statement
	on := true
	err := After(db, func(tx *gorm.DB) {
		if sql := tx.Statement.SQL.String(); on && !strings.HasPrefix(sql, "INSERT") {
			statements = append(statements, statement{sql, append([]any(nil), tx.Statement.Vars...)})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	fn()
	on = false
	if len(statements) == 0 {
		t.Fatal("no statement ran")
	}
	explain := "EXPLAIN "
	if db.Name() == "sqlite" {
		explain = "EXPLAIN QUERY PLAN "
	}
	var found []string
	for _, s := range statements {
		rows, err := db.Statement.ConnPool.QueryContext(t.Context(), explain+s.sql, s.vars...)
		if err != nil {
			t.Fatalf("%s: %v", s.sql, err)
		}
		var plan strings.Builder
		for rows.Next() {
			columns, _ := rows.Columns()
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&plan, *values[len(values)-1].(*any))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		_ = rows.Close()
		if whole[db.Name()].MatchString(plan.String()) {
			found = append(found, s.sql+"\n"+plan.String())
		}
	}
	return found
}
