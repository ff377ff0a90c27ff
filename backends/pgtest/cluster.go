//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cluster is a throwaway Postgres server on a Unix socket. It writes nothing to disk for safety's sake and ends with
// the process that started it, however that ends. It is not safe for concurrent use.
type Cluster struct {
	dir     string // short, because a socket's path is bounded, and of the server's user
	bin     string
	account *syscall.SysProcAttr
	server  *exec.Cmd
	control io.WriteCloser // the server lives as long as this is open
}

// NewCluster makes a cluster and starts it.
func NewCluster(ctx context.Context) (*Cluster, error) {
	bin, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	c := &Cluster{bin: bin}
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		// Postgres refuses to run as root.
		if uid, gid, err = unprivileged(); err != nil {
			return nil, err
		}
		c.account = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	} else {
		c.account = &syscall.SysProcAttr{}
	}
	// A session of its own: an interrupt from the keyboard goes to the test alone, which then ends the server.
	c.account.Setsid = true
	// Not a test's own directory: another user cannot enter its parents.
	if c.dir, err = os.MkdirTemp("", "pgtest"); err != nil {
		return nil, err
	}
	if err := os.Chown(c.dir, uid, gid); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	initdb := c.command(ctx, filepath.Join(bin, "initdb"), "-D", filepath.Join(c.dir, "data"), "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(c.dir))
	}
	if err := c.Start(ctx); err != nil {
		return nil, errors.Join(err, c.Remove())
	}
	return c, nil
}

// DSN returns the connection string of the cluster's first database.
func (c *Cluster) DSN() string {
	return "host=" + c.dir + " user=postgres dbname=postgres sslmode=disable"
}

// supervise runs the server until its standard input ends, which it also does when the test is killed.
const supervise = `"$@" >log 2>&1 & server=$!
read -r word
kill -QUIT $server
wait $server
[ "$word" = stop ] || rm -rf "$PWD"`

// Start starts the server, which must not be running, and waits until it answers.
func (c *Cluster) Start(ctx context.Context) error {
	c.server = c.command(context.WithoutCancel(ctx), "/bin/sh", "-c", supervise, "sh",
		filepath.Join(c.bin, "postgres"), "-D", "data", "-k", c.dir,
		"-c", "listen_addresses=", "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off",
		"-c", "shared_buffers=64MB", "-c", "max_connections=300")
	var err error
	if c.control, err = c.server.StdinPipe(); err != nil {
		return err
	}
	if err := c.server.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, c.DSN())
		if err == nil {
			return conn.Close(ctx)
		}
		if ctx.Err() != nil {
			log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
			return fmt.Errorf("postgres does not answer: %w: %s", err, log)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Stop ends the server at once, as a crash would. The data stays for the next start.
func (c *Cluster) Stop() error { return c.end("stop\n") }

// Remove ends the server, if it runs, and removes the cluster.
func (c *Cluster) Remove() error {
	return errors.Join(c.end(""), os.RemoveAll(c.dir))
}

func (c *Cluster) end(word string) error {
	if c.server == nil || c.server.Process == nil {
		return nil
	}
	_, err := io.WriteString(c.control, word)
	err = errors.Join(err, c.control.Close(), c.server.Wait())
	c.server = nil
	return err
}

// command is a command in the cluster's directory, as its user, with nothing of the test's environment.
func (c *Cluster) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.SysProcAttr = c.dir, c.account
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	return cmd
}

// unprivileged returns a user that is not root.
func unprivileged() (uid, gid int, err error) {
	for _, name := range []string{"postgres", "nobody"} {
		account, lookup := user.Lookup(name)
		if lookup != nil {
			err = errors.Join(err, lookup)
			continue
		}
		if uid, err = strconv.Atoi(account.Uid); err != nil {
			return 0, 0, err
		}
		gid, err = strconv.Atoi(account.Gid)
		return uid, gid, err
	}
	return 0, 0, fmt.Errorf("no user to run postgres as: %w", err)
}
