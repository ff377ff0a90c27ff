package adksession

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/adk/v2/session"
	"gorm.io/gorm"

	"github.com/adkmemory/adkmemory/backends"
)

// stateRow is one value of an app's (no user, no session), a user's (no session) or a session's state.
type stateRow struct {
	app, user, session string
	name               string
	value              []byte
}

// splitState turns a delta with ADK's prefixes into rows, sorted, so that all transactions lock them in one order.
// Temporary state is left out.
func splitState(key backends.SessionKey, delta map[string]any) ([]stateRow, error) {
	rows := make([]stateRow, 0, len(delta))
	for name, value := range delta {
		row := stateRow{app: key.App}
		if rest, ok := strings.CutPrefix(name, session.KeyPrefixApp); ok {
			row.name = rest
		} else if rest, ok := strings.CutPrefix(name, session.KeyPrefixUser); ok {
			row.user, row.name = key.User, rest
		} else if strings.HasPrefix(name, session.KeyPrefixTemp) {
			continue
		} else {
			row.user, row.session, row.name = key.User, key.Session, name
		}
		var err error
		if row.value, err = json.Marshal(value); err != nil {
			return nil, fmt.Errorf("%w: state %q: %w", backends.ErrInvalid, name, err)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b stateRow) int {
		return cmp.Or(strings.Compare(a.user, b.user), strings.Compare(a.session, b.session), strings.Compare(a.name, b.name))
	})
	return rows, nil
}

func writeState(tx *gorm.DB, rows []stateRow) error {
	for _, r := range rows {
		err := tx.Exec(`INSERT INTO adkmemory_adk_state (app, user_id, session_id, name, value) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (app, user_id, session_id, name) DO UPDATE SET value = excluded.value`,
			r.app, r.user, r.session, r.name, r.value).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// scopePrefix is the prefix that ADK gives the names of a scope.
func scopePrefix(user, sessionID string) string {
	switch {
	case user == "":
		return session.KeyPrefixApp
	case sessionID == "":
		return session.KeyPrefixUser
	}
	return ""
}

func decodeValue(data []byte) (value any, err error) {
	err = json.Unmarshal(data, &value)
	return value, err
}

// scopedState is the state of many sessions of one app.
type scopedState map[stateScope]map[string]any

type stateScope struct{ user, session string }

// of merges what a session sees.
func (s scopedState) of(key backends.SessionKey) map[string]any {
	merged := make(map[string]any)
	for _, scope := range []stateScope{{}, {user: key.User}, {user: key.User, session: key.Session}} {
		prefix := scopePrefix(scope.user, scope.session)
		for name, value := range s[scope] {
			merged[prefix+name] = value
		}
	}
	return merged
}

// readStates reads all state of an app, or what one of its users sees of it.
func readStates(tx *gorm.DB, app, user string) (scopedState, error) {
	query := tx.Table("adkmemory_adk_state").Select("user_id, session_id, name, value").Where("app = ?", app)
	if user != "" {
		query = query.Where("user_id IN ('', ?)", user)
	}
	rows, err := query.Rows()
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	states := make(scopedState)
	for rows.Next() {
		var scope stateScope
		var name string
		var data []byte
		if err := rows.Scan(&scope.user, &scope.session, &name, &data); err != nil {
			return nil, err
		}
		value, err := decodeValue(data)
		if err != nil {
			return nil, err
		}
		if states[scope] == nil {
			states[scope] = make(map[string]any)
		}
		states[scope][name] = value
	}
	return states, rows.Err()
}
