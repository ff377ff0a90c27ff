// Package open opens the store that a DSN names, so that a deployment chooses its backend by configuration. It links all
// backends; a program that wants one only imports that.
package open

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/postgres"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

// keyword is the beginning of a list of key=value as Postgres knows it.
var keyword = regexp.MustCompile(`^\s*(host|hostaddr|port|user|password|dbname|sslmode|service|search_path|connect_timeout)\s*=`)

// Open opens "postgres://…", "postgresql://…" or "host=… dbname=…" as Postgres, and "sqlite:PATH" or a plain path as a SQLite file. Any other
// scheme is [backends.ErrInvalid]; the error does not repeat the DSN, which may hold a password.
func Open(ctx context.Context, dsn string) (backends.Store, error) {
	scheme, rest, hasScheme := strings.Cut(dsn, ":")
	switch {
	case hasScheme && (scheme == "postgres" || scheme == "postgresql"):
		return postgres.Open(ctx, dsn)
	case keyword.MatchString(dsn):
		return postgres.Open(ctx, dsn)
	case hasScheme && scheme == "sqlite":
		return sqlite.Open(ctx, strings.TrimPrefix(rest, "//"))
	case strings.Contains(dsn, "://"):
		return nil, fmt.Errorf("adkmemory: open: %w: the DSN is neither postgres:// nor sqlite: nor a path", backends.ErrInvalid)
	case dsn == "":
		return nil, fmt.Errorf("adkmemory: open: %w: the DSN is empty", backends.ErrInvalid)
	}
	return sqlite.Open(ctx, dsn)
}
