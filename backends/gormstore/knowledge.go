package gormstore

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/fulltext"
)

var _ backends.KnowledgeStore = (*Store)(nil)

type entryRow struct {
	App        string
	UserID     string
	Kind       backends.Kind
	EntryKey   string
	Version    int
	Newest     bool
	Title      string
	Text       string
	Category   string
	Tags       []string `gorm:"serializer:json"`
	Source     string
	Confidence float64
	Successes  int
	Failures   int
	CreatedAt  int64 `gorm:"autoCreateTime:false"`
	UpdatedAt  int64 `gorm:"autoUpdateTime:false"`
}

func (entryRow) TableName() string { return "adkmemory_entries" }

func newEntryRow(app, user string, e backends.Entry) *entryRow {
	return &entryRow{
		App: app, UserID: user, Kind: e.Kind, EntryKey: e.Key, Version: e.Version, Newest: true, Title: e.Title, Text: e.Text,
		Category: e.Category, Tags: e.Tags, Source: e.Source, Confidence: e.Confidence, Successes: e.Successes, Failures: e.Failures,
		CreatedAt: e.CreatedAt.UnixMicro(), UpdatedAt: e.UpdatedAt.UnixMicro(),
	}
}

func (r entryRow) entry() backends.Entry {
	return backends.Entry{
		Kind: r.Kind, Key: r.EntryKey, Version: r.Version, Title: r.Title, Text: r.Text, Category: r.Category, Tags: r.Tags,
		Source: r.Source, Confidence: r.Confidence, Successes: r.Successes, Failures: r.Failures,
		CreatedAt: fromMicros(r.CreatedAt), UpdatedAt: fromMicros(r.UpdatedAt),
	}
}

const byEntry = "app = ? AND user_id = ? AND kind = ? AND entry_key = ?"

// newest reads the newest version of an entry under the lock of its area; nil without one.
func newest(tx *gorm.DB, app, user string, kind backends.Kind, key string) (*backends.Entry, error) {
	if _, err := (area{tx: tx, app: app, user: user, kind: kind, write: true}).Stats(tx.Statement.Context); err != nil {
		return nil, err
	}
	var rows []entryRow
	err := tx.Where(byEntry+" AND newest", app, user, kind, key).Limit(1).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	e := rows[0].entry()
	return &e, nil
}

// dropEntry takes an entry out of the index.
func dropEntry(tx *gorm.DB, app, user string, e backends.Entry) error {
	return forget(tx, app, user, "session_id = '' AND kind = ? AND ref = ?", []any{e.Kind, e.Key},
		[]fulltext.Document{fulltext.EntryDocument(e)})
}

// clock is the time by the database.
func (s *Store) clock(tx *gorm.DB) (time.Time, error) {
	var us int64
	err := tx.Raw("SELECT " + s.dialect.now).Scan(&us).Error
	return fromMicros(us), err
}

// settle removes the row of an area that turned out to have no documents.
func settle(tx *gorm.DB, app, user string, kind backends.Kind) error {
	return tx.Exec("DELETE FROM adkmemory_search_areas WHERE "+byArea+" AND docs = 0", app, user, kind).Error
}

// SaveEntry implements [backends.KnowledgeStore].
func (s *Store) SaveEntry(ctx context.Context, app, user string, e backends.Entry) (backends.Entry, error) {
	const op = "adkmemory: save entry"
	e, err := e.Clean()
	if err := s.begin(ctx, op, err, backends.ValidateEntryKey(app, user, e.Kind, e.Key)); err != nil {
		return backends.Entry{}, err
	}
	var saved backends.Entry
	err = s.write(ctx, op, func(tx *gorm.DB) error {
		old, err := newest(tx, app, user, e.Kind, e.Key)
		if err != nil {
			return err
		}
		now, err := s.clock(tx)
		if err != nil {
			return err
		}
		next, changed, err := e.Next(old, now)
		if saved = next; err != nil || !changed {
			return err
		}
		if old != nil {
			if err := dropEntry(tx, app, user, *old); err != nil {
				return err
			}
			res := tx.Exec("UPDATE adkmemory_entries SET newest = false WHERE "+byEntry+" AND newest", app, user, e.Kind, e.Key)
			if res.Error != nil {
				return res.Error
			}
			res = tx.Exec("DELETE FROM adkmemory_entries WHERE "+byEntry+" AND version <= ?", app, user, e.Kind, e.Key,
				next.Version-backends.MaxEntryVersions)
			if res.Error != nil {
				return res.Error
			}
		}
		if err := tx.Create(newEntryRow(app, user, next)).Error; err != nil {
			return err
		}
		return index(tx, app, user, []document{{
			ref: backends.Ref{Kind: next.Kind, ID: next.Key}, Document: fulltext.EntryDocument(next),
		}})
	})
	if err != nil {
		return backends.Entry{}, err
	}
	return saved, nil
}

// GetEntry implements [backends.KnowledgeStore].
func (s *Store) GetEntry(ctx context.Context, app, user string, kind backends.Kind, key string) (backends.Entry, error) {
	const op = "adkmemory: get entry"
	if err := s.begin(ctx, op, backends.ValidateEntryKey(app, user, kind, key)); err != nil {
		return backends.Entry{}, err
	}
	var row entryRow
	err := s.reader.WithContext(ctx).Where(byEntry+" AND newest", app, user, kind, key).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		err = backends.ErrNotFound
	}
	if err != nil {
		return backends.Entry{}, s.fail(ctx, op, err)
	}
	return row.entry(), nil
}

// ListVersions implements [backends.KnowledgeStore].
func (s *Store) ListVersions(ctx context.Context, app, user string, kind backends.Kind, key string) ([]backends.Entry, error) {
	const op = "adkmemory: list versions"
	if err := s.begin(ctx, op, backends.ValidateEntryKey(app, user, kind, key)); err != nil {
		return nil, err
	}
	return s.entries(ctx, op, s.reader.WithContext(ctx).Where(byEntry, app, user, kind, key).Order("version DESC"))
}

// ListEntries implements [backends.KnowledgeStore].
func (s *Store) ListEntries(ctx context.Context, q backends.EntryQuery) ([]backends.Entry, error) {
	const op = "adkmemory: list entries"
	q, err := q.Normalize()
	if err := s.begin(ctx, op, err); err != nil {
		return nil, err
	}
	db := s.reader.WithContext(ctx).Where("app = ? AND user_id = ? AND newest", q.App, q.User)
	if q.Kind != "" {
		db = db.Where("kind = ?", q.Kind)
	}
	if q.Category != "" {
		db = db.Where("category = ?", q.Category)
	}
	for _, tag := range q.Tags {
		quoted, err := json.Marshal(strings.ToLower(tag))
		if err != nil {
			return nil, s.fail(ctx, op, err)
		}
		db = db.Where(s.dialect.find+"(tags, ?) > 0", string(quoted))
	}
	return s.entries(ctx, op, db.Order("updated_at DESC, kind, entry_key").Offset(q.Offset).Limit(q.Limit))
}

func (s *Store) entries(ctx context.Context, op string, db *gorm.DB) ([]backends.Entry, error) {
	var rows []entryRow
	if err := db.Find(&rows).Error; err != nil {
		return nil, s.fail(ctx, op, err)
	}
	list := make([]backends.Entry, 0, len(rows))
	for _, row := range rows {
		list = append(list, row.entry())
	}
	return list, nil
}

// DeleteEntry implements [backends.KnowledgeStore].
func (s *Store) DeleteEntry(ctx context.Context, app, user string, kind backends.Kind, key string) error {
	const op = "adkmemory: delete entry"
	if err := s.begin(ctx, op, backends.ValidateEntryKey(app, user, kind, key)); err != nil {
		return err
	}
	return s.write(ctx, op, func(tx *gorm.DB) error {
		old, err := newest(tx, app, user, kind, key)
		if err != nil {
			return err
		}
		if old != nil {
			if err := dropEntry(tx, app, user, *old); err != nil {
				return err
			}
			if err := tx.Exec("DELETE FROM adkmemory_entries WHERE "+byEntry, app, user, kind, key).Error; err != nil {
				return err
			}
		}
		return settle(tx, app, user, kind)
	})
}

// RecordOutcome implements [backends.KnowledgeStore].
func (s *Store) RecordOutcome(
	ctx context.Context, app, user string, kind backends.Kind, key string, success bool,
) (backends.Entry, error) {
	const op = "adkmemory: record outcome"
	if err := s.begin(ctx, op, backends.ValidateEntryKey(app, user, kind, key)); err != nil {
		return backends.Entry{}, err
	}
	var e backends.Entry
	err := s.write(ctx, op, func(tx *gorm.DB) error {
		old, err := newest(tx, app, user, kind, key)
		if err != nil {
			return err
		}
		if old == nil {
			return backends.ErrNotFound // takes the area's row back with it
		}
		now, err := s.clock(tx)
		if err != nil {
			return err
		}
		e = old.WithOutcome(success, now)
		row := newEntryRow(app, user, e)
		return tx.Exec(`UPDATE adkmemory_entries SET confidence = ?, successes = ?, failures = ?, updated_at = ?
			WHERE `+byEntry+` AND newest`, row.Confidence, row.Successes, row.Failures, row.UpdatedAt, app, user, kind, key).Error
	})
	if err != nil {
		return backends.Entry{}, err
	}
	return e, nil
}
