package adksession

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"google.golang.org/adk/v2/platform"
	"google.golang.org/adk/v2/session"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/gormstore"
)

// Defaults of a [Config].
const (
	DefaultCacheBytes = 64 << 20
	DefaultKeepTurns  = 3
)

// Config holds what [New] can be told. Its zero value is fine.
type Config struct {
	// Reader is a handle for reads on the same database, which must see a commit at once. Default: the handle for writes.
	Reader *gorm.DB

	// CacheBytes bounds the cache of decoded events, by an estimate of their size in memory. A session that alone is
	// larger is not cached. Default 64 MiB; a negative number turns the cache off.
	CacheBytes int

	// KeepTurns is how many of the newest invocations a compaction leaves untouched, whatever it is asked to replace.
	// Default 3, at least 1.
	KeepTurns int
}

// Service implements ADK's session.Service. It is safe for concurrent use by any number of goroutines and processes.
//
// The events of the sessions it returns are shared between them and must not be modified.
type Service struct {
	db        *gorm.DB
	reader    *gorm.DB
	readTx    *sql.TxOptions
	writeTx   *sql.TxOptions
	cache     *cache
	keepTurns int
}

var _ session.Service = (*Service)(nil)

// New returns a service over a database that the caller has opened, usually the memory store's own, after bringing its
// tables up to date. The dialect is db.Dialector.Name(): "sqlite" or "postgres", anything else is
// [backends.ErrInvalid]. The caller closes db. There is nothing else to close.
func New(ctx context.Context, db *gorm.DB, cfg Config) (*Service, error) {
	if cfg.KeepTurns < 0 {
		return nil, fmt.Errorf("adkmemory: %w: KeepTurns is %d, must not be negative", backends.ErrInvalid, cfg.KeepTurns)
	}
	if cfg.KeepTurns == 0 {
		cfg.KeepTurns = DefaultKeepTurns
	}
	if cfg.CacheBytes == 0 {
		cfg.CacheBytes = DefaultCacheBytes
	}
	if cfg.Reader == nil {
		cfg.Reader = db
	}
	steps, err := migrations(db)
	if err != nil {
		return nil, fmt.Errorf("adkmemory: %w", err)
	}
	if err := gormstore.Migrate(ctx, db, "adksession", steps); err != nil {
		return nil, err
	}
	s := &Service{
		db: quiet(db), reader: quiet(cfg.Reader), cache: newCache(cfg.CacheBytes), keepTurns: cfg.KeepTurns,
		readTx: &sql.TxOptions{ReadOnly: true}, writeTx: &sql.TxOptions{},
	}
	if db.Name() == "postgres" { // whatever the database's default is; SQLite has one level only
		s.readTx.Isolation, s.writeTx.Isolation = sql.LevelRepeatableRead, sql.LevelReadCommitted
	}
	return s, nil
}

// quiet returns a handle that logs nothing, since statements hold content, and opens no transactions by itself.
func quiet(db *gorm.DB) *gorm.DB {
	return db.Session(&gorm.Session{NewDB: true, SkipDefaultTransaction: true, Logger: logger.Discard})
}

// Create implements session.Service. Without a session id it makes one up; a taken one is [ErrExists].
func (s *Service) Create(ctx context.Context, req *session.CreateRequest) (*session.CreateResponse, error) {
	key := backends.SessionKey{App: req.AppName, User: req.UserID, Session: req.SessionID}
	if key.Session == "" {
		key.Session = platform.NewUUID(ctx)
	}
	deltas, err := splitState(key, req.State)
	if err := errors.Join(key.Validate(), err); err != nil {
		return nil, wrap("create session", err)
	}
	now := platform.Now(ctx).Truncate(time.Microsecond)
	epoch := rand.Text()
	var row sessionRow
	err = s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		created := tx.Exec(`INSERT INTO adkmemory_adk_sessions
			(app, user_id, session_id, epoch, generation, last_seq, created_at, updated_at) VALUES (?, ?, ?, ?, 0, 0, ?, ?)
			ON CONFLICT DO NOTHING`, args(key, epoch, now.UnixMicro(), now.UnixMicro())...)
		if created.Error != nil {
			return created.Error
		}
		if created.RowsAffected == 0 {
			return ErrExists
		}
		if err := writeState(tx, deltas); err != nil {
			return err
		}
		row, err = readRow(tx, key)
		return err
	}, s.writeTx)
	if err != nil {
		return nil, wrap("create session", err)
	}
	s.cache.put(key, view{stamp: row.stamp})
	return &session.CreateResponse{Session: newSession(key, row, nil)}, nil
}

// Get implements session.Service. A session that does not exist is [ErrNotFound]. With NumRecentEvents and After, it
// returns the most recent ones of those that are not older.
func (s *Service) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	key := backends.SessionKey{App: req.AppName, User: req.UserID, Session: req.SessionID}
	if err := key.Validate(); err != nil {
		return nil, wrap("get session", err)
	}
	row, items, err := s.load(ctx, key, filter{recent: req.NumRecentEvents, after: req.After})
	if err != nil {
		return nil, wrap("get session", err)
	}
	return &session.GetResponse{Session: newSession(key, row, items)}, nil
}

// List implements session.Service: the sessions of an app, or of one of its users, without events, the one updated last
// first.
func (s *Service) List(ctx context.Context, req *session.ListRequest) (*session.ListResponse, error) {
	if req.AppName == "" {
		return nil, wrap("list sessions", fmt.Errorf("%w: app is empty", backends.ErrInvalid))
	}
	var rows []listRow
	var states scopedState
	err := s.reader.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		query := tx.Table("adkmemory_adk_sessions").Where("app = ?", req.AppName)
		if req.UserID != "" {
			query = query.Where("user_id = ?", req.UserID)
		}
		err := query.Order("updated_at DESC, user_id, session_id").Find(&rows).Error
		if err != nil {
			return err
		}
		states, err = readStates(tx, req.AppName, req.UserID)
		return err
	}, s.readTx)
	if err != nil {
		return nil, wrap("list sessions", err)
	}
	sessions := make([]session.Session, len(rows))
	for i, r := range rows {
		key := backends.SessionKey{App: req.AppName, User: r.UserID, Session: r.SessionID}
		row := sessionRow{
			stamp:   stamp{epoch: r.Epoch, generation: r.Generation, lastSeq: r.LastSeq},
			updated: time.UnixMicro(r.UpdatedAt), state: states.of(key),
		}
		sessions[i] = newSession(key, row, nil)
	}
	return &session.ListResponse{Sessions: sessions}, nil
}

// Delete implements session.Service: the session with its events and its own state, not the state of its user and app.
// Deleting what is not there returns nil. Session objects read before become stale.
func (s *Service) Delete(ctx context.Context, req *session.DeleteRequest) error {
	key := backends.SessionKey{App: req.AppName, User: req.UserID, Session: req.SessionID}
	if err := key.Validate(); err != nil {
		return wrap("delete session", err)
	}
	err := s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		for _, table := range []string{"adkmemory_adk_sessions", "adkmemory_adk_events", "adkmemory_adk_state"} {
			if err := tx.Exec("DELETE FROM "+table+" WHERE "+byOwner, args(key)...).Error; err != nil {
				return err
			}
		}
		return nil
	}, s.writeTx)
	s.cache.drop(key)
	return wrap("delete session", err)
}

func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("adkmemory: %s: %w", op, err)
}
