package soak

import (
	"bufio"
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/pgtest"
)

var long = flag.Bool("soak", false, "run the soak test for minutes instead of seconds")

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(envKill) != "":
		os.Exit(doomed())
	case os.Getenv(envDSN) != "":
		os.Exit(child())
	}
	os.Exit(pgtest.Main(m))
}

// process is a child that is started again whenever it was killed.
type process struct {
	cmd    *exec.Cmd
	stderr *strings.Builder
}

func start(t *testing.T, dsn string, seed uint64, sessions int) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0]), stderr: new(strings.Builder)}
	p.cmd.Env = append(os.Environ(), envDSN+"="+dsn, envSeed+"="+strconv.FormatUint(seed, 10), envSessions+"="+strconv.Itoa(sessions))
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("a child did not start: %q, %v\n%s", line, err, p.stderr)
	}
	return p
}

func TestSoak(t *testing.T) {
	processes, sessions, duration := 3, 12, 5*time.Second
	if *long {
		processes, sessions, duration = 4, 200, 3*time.Minute
	}
	dsn := pgtest.DSN(t)
	random := rand.New(rand.NewPCG(1, 2))
	var seed uint64
	next := func() *process { seed++; return start(t, dsn, seed, sessions) }

	running := make([]*process, processes)
	for i := range running {
		running[i] = next()
	}
	kills := 0
	for end := time.Now().Add(duration); time.Now().Before(end); {
		time.Sleep(time.Duration(300+random.IntN(900)) * time.Millisecond) // how long a process lives is what is tested
		i := random.IntN(processes)
		_ = running[i].cmd.Process.Kill()
		if err := running[i].cmd.Wait(); err == nil || running[i].stderr.Len() > 0 {
			t.Fatalf("a process had ended before it was killed: %v\n%s", err, running[i].stderr)
		}
		kills++
		running[i] = next()
	}
	var wait sync.WaitGroup
	for _, p := range running {
		wait.Go(func() {
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
			if err := p.cmd.Wait(); err != nil {
				t.Errorf("a process did not end well: %v\n%s", err, p.stderr)
			}
		})
	}
	wait.Wait()
	check(t, dsn, sessions, kills)
}

// check lets one more process observe all that is left, and compares what was observed with what was said.
func check(t *testing.T, dsn string, sessions, kills int) {
	ctx := t.Context()
	r, err := newReplica(ctx, dsn, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}()
	messages, notes := 0, 0
	for i := range sessions {
		said, ranges := checkSession(t, r, sessionKey(i))
		messages += said
		notes += ranges
	}
	t.Logf("REF-2 STO-4 %d kills, %d messages in %d sessions, each observed exactly once by %d notes", kills, messages, sessions, notes)
}

// checkSession lets the session be observed to its end and compares message by message.
func checkSession(t *testing.T, r *replica, key backends.SessionKey) (messages, notes int) {
	t.Helper()
	ctx := t.Context()
	if err := r.say(ctx, key, "That is all, thank you."); err != nil {
		t.Fatal(err)
	}
	if err := r.mem.Flush(ctx, key); err != nil {
		t.Fatal(err)
	}
	got, err := r.sessions.Get(ctx, &session.GetRequest{AppName: key.App, UserID: key.User, SessionID: key.Session})
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for e := range got.Session.Events().All() {
		if e.Content != nil {
			said = append(said, e.ID)
		}
	}
	observed, notes := archive(t, r.store, key)
	for i := range max(len(said), len(observed)) {
		if i >= len(said) || i >= len(observed) || said[i] != observed[i] {
			t.Errorf("%s: %d messages were said, %d observed; they differ from message %d on", key, len(said), len(observed), i)
			break
		}
	}
	return len(said), notes
}

// archive returns the ids of the observed messages in order, and checks that the notes' ranges join without a gap.
func archive(t *testing.T, store backends.Store, key backends.SessionKey) (ids []string, notes int) {
	t.Helper()
	for after := int64(0); ; {
		page, err := store.ListMessages(t.Context(), key, backends.MessageQuery{AfterSeq: after, Limit: backends.MaxListItems})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page {
			ids = append(ids, m.ID)
			after = m.Seq
		}
		if len(page) < backends.MaxListItems {
			break
		}
	}
	nextIndex := int64(0)
	for after := int64(0); ; {
		page, err := store.ListNotes(t.Context(), key, backends.NoteQuery{AfterSeq: after, Limit: backends.MaxListItems})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range page {
			after = n.Seq
			if n.Generation > 0 {
				continue
			}
			notes++
			if n.Range.Start != nextIndex {
				t.Errorf("%s: a note begins at message %d, want %d", key, n.Range.Start, nextIndex)
			}
			nextIndex = n.Range.End + 1
		}
		if len(page) < backends.MaxListItems {
			break
		}
	}
	if nextIndex != int64(len(ids)) {
		t.Errorf("%s: the notes cover %d messages, the archive has %d", key, nextIndex, len(ids))
	}
	return ids, notes
}
