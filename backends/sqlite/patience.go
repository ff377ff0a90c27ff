package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	modernc "modernc.org/sqlite"
)

// busyTimeout is how long a write waits for another process's.
const busyTimeout = 5 * time.Second

// patient is a connector whose connections wait for the write lock no longer than their context allows. SQLite's own
// busy timeout knows of no context, so a transaction begins without it, again and again.
type patient struct {
	driver.Connector
}

// Connect implements [driver.Connector].
func (p patient) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn, ok := opened.(connection)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's connection is a %T", opened), opened.Close())
	}
	return &patientConn{conn}, nil
}

// connection is what database/sql makes use of in the driver's connection.
type connection interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type patientConn struct {
	connection
}

// BeginTx implements [driver.ConnBeginTx].
func (c *patientConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.setTimeout(ctx, 0); err != nil {
		return nil, err
	}
	tx, err := c.begin(ctx, opts)
	// Whatever became of the context: statements outside of transactions wait the usual way.
	if reset := c.setTimeout(context.WithoutCancel(ctx), busyTimeout); reset != nil && err == nil {
		return nil, errors.Join(reset, tx.Rollback())
	}
	return tx, err
}

func (c *patientConn) begin(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	deadline := time.Now().Add(busyTimeout)
	for {
		tx, err := c.connection.BeginTx(ctx, opts)
		if !isBusy(err) || time.Now().After(deadline) {
			return tx, err
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *patientConn) setTimeout(ctx context.Context, d time.Duration) error {
	_, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds()), nil)
	return err
}

func isBusy(err error) bool {
	var failure *modernc.Error
	return errors.As(err, &failure) && failure.Code()&0xff == sqliteBusy
}
