package sqlite

import (
	"errors"

	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	driver "modernc.org/sqlite"
)

// SQLite's result codes, as far as they mean something here.
const (
	sqliteBusy                 = 5
	sqliteConstraintForeignKey = 787
	sqliteConstraintPrimaryKey = 1555
	sqliteConstraintUnique     = 2067
)

// dialector is GORM's dialector for SQLite, which looks for the codes of another driver, with this driver's.
type dialector struct {
	*gormsqlite.Dialector
}

// Translate implements [gorm.ErrorTranslator].
func (d *dialector) Translate(err error) error {
	var failure *driver.Error
	if errors.As(err, &failure) {
		switch failure.Code() {
		case sqliteConstraintPrimaryKey, sqliteConstraintUnique:
			return gorm.ErrDuplicatedKey
		case sqliteConstraintForeignKey:
			return gorm.ErrForeignKeyViolated
		}
	}
	return err
}
