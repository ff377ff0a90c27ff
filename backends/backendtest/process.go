package backendtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/adkmemory/adkmemory/backends"
)

// The environment of a child process says what it is to do.
const (
	envRole = "ADKMEMORY_TEST_CHILD"
	envData = "ADKMEMORY_TEST_DATA"
	envStop = "ADKMEMORY_TEST_STOP"
)

// Child opens the data that its parent test works on, in a process of its own. It calls after, unless that is nil,
// when a statement of the store has run: of its migrations if migrating is set, otherwise of what comes later.
type Child func(ctx context.Context, data string, migrating bool, after func()) (backends.Store, error)

// ChildMain is the first call of a TestMain whose tests use [RunProcesses]. It returns unless this process is a child.
func ChildMain(open Child) {
	role := os.Getenv(envRole)
	if role == "" {
		return
	}
	if err := childPart(role, open); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(failed)
	}
	os.Exit(0)
}

// The exit codes of a child that was not killed: its own, and that of Go's runtime.
const (
	failed   = 3
	panicked = 2
)

// processKey is the session that parent and children write.
func processKey() backends.SessionKey { return keyOf("processes") }

// childPart does a child's part.
func childPart(role string, open Child) error {
	stop, err := strconv.Atoi(os.Getenv(envStop))
	if err != nil {
		return err
	}
	armed, ran := role == "open", 0
	after := func() {
		if ran++; armed && ran > stop && stop >= 0 {
			kill()
		}
	}
	// All children of a test go on when all have come this far.
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	store, err := open(ctx(), os.Getenv(envData), role == "open", after)
	if err != nil {
		return err
	}
	snap, err := store.Load(ctx(), processKey(), backends.Stamp{})
	if err != nil {
		return err
	}
	armed, ran = true, 0
	main := backends.Stream{}
	switch role {
	case "open":
	case "commit":
		_, err = store.Commit(ctx(), processKey(), commitFrom(snap, "child", 3))
	case "condense":
		_, err = store.Condense(ctx(), processKey(), condenseAll(snap, "child"))
	case "delete":
		err = store.DeleteSession(ctx(), processKey())
	case "append":
		_, err = store.(backends.Appender).AppendMessages(ctx(), processKey(), main, commitFrom(snap, "", 3).Messages)
	case "observe":
		err = observeAll(store, strconv.Itoa(os.Getpid()))
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	if err != nil {
		return err
	}
	if stop == stopAfter {
		kill()
	}
	return store.Close()
}

// stopAfter stops a child when the call has returned, never when nothing stops it.
const (
	stopAfter = -1
	never     = -2
)

func kill() {
	self, _ := os.FindProcess(os.Getpid())
	_ = self.Kill()
	select {}
}

// commitFrom is the commit over the n messages after the snapshot's cursor.
func commitFrom(snap *backends.Snapshot, id string, n int) backends.Commit {
	s := &script{cursors: snap.Cursors}
	c := s.commit(backends.Stream{}, n, snap.Epoch)
	c.Observation.ID = fmt.Sprintf("%s-%d", id, c.To.Index)
	return c
}

// condenseAll is the reflection over all observations of the snapshot.
func condenseAll(snap *backends.Snapshot, id string) backends.Condense {
	s := &script{}
	c := s.condensation(1, snap.Epoch, ids(snap.Observations, observationID)...)
	c.Reflection.ID = fmt.Sprintf("%s-reflection-%d", id, snap.Version)
	return c
}

// observeAll commits message by message, beside others who do the same, until observeUntil is reached.
func observeAll(store backends.Store, id string) error {
	for {
		snap, err := store.Load(ctx(), processKey(), backends.Stamp{})
		if err != nil {
			return err
		}
		if snap.Cursors[backends.Stream{}].Index >= observeUntil {
			return nil
		}
		_, err = store.Commit(ctx(), processKey(), commitFrom(snap, id, 1))
		if err != nil && !errors.Is(err, backends.ErrConflict) {
			return err
		}
		if len(snap.Observations) >= 5 {
			_, err = store.Condense(ctx(), processKey(), condenseAll(snap, id))
			if err != nil && !errors.Is(err, backends.ErrConflict) {
				return err
			}
		}
	}
}

const observeUntil = 60

// RunProcesses tests a backend that several processes may share, with processes. A call of place returns a new place
// for data, and open the store over it. The package's TestMain calls [ChildMain].
func RunProcesses(t *testing.T, place func(testing.TB) string, open func(t testing.TB, data string) backends.Store) {
	t.Run("STO-4 processes that open new data at once migrate it once, and observe each message once", func(t *testing.T) {
		t.Parallel()
		data := place(t)
		for _, err := range spawn(t, data, "observe", never, never, never, never) {
			must(t, err)
		}
		s := play(t, open(t, data), processKey())
		exactlyOnce(t, s, observeUntil+1)
	})
	t.Run("OPS-2 a process killed in a migration leaves nothing of it", func(t *testing.T) {
		t.Parallel()
		data := place(t)
		statements := killed(t, data, "open", func(int) {})
		if statements < 5 {
			t.Errorf("a migration was stopped at %d points only", statements)
		}
		play(t, open(t, data), processKey()).observe(backends.Stream{}, 1)
	})
	for _, tc := range []struct{ id, role string }{
		{"STO-4", "commit"}, {"REF-2", "condense"}, {"STO-3", "delete"}, {"MEM-1", "append"},
	} {
		t.Run(tc.id+" a process killed in "+tc.role+" did all of it or nothing", func(t *testing.T) {
			t.Parallel()
			data := place(t)
			s := play(t, open(t, data), processKey())
			for range 3 {
				s.observe(backends.Stream{}, 2)
			}
			before := s.state()
			statements := killed(t, data, tc.role, func(point int) {
				same(t, fmt.Sprintf("state after a kill at statement %d", point), s.state(), before)
			})
			if statements < 2 {
				t.Errorf("%s was stopped at %d points only", tc.role, statements)
			}
			after := s.state()
			if after.Snapshot.Stamp == before.Snapshot.Stamp {
				t.Errorf("%s did nothing when it was let through", tc.role)
			}
			// Whatever happened, the next one goes on from what is there.
			goOn := func() {
				t.Helper()
				_, err := s.store.Commit(ctx(), s.key, commitFrom(s.load(), "next", 3))
				must(t, err)
			}
			goOn()
			stamp := s.load().Stamp
			if err := spawn(t, data, tc.role, stopAfter)[0]; err == nil {
				t.Error("the child was not killed")
			}
			if s.load().Stamp == stamp {
				t.Errorf("%s did nothing though it had returned before the kill", tc.role)
			}
			goOn()
			exactlyOnce(t, s, int(s.load().Cursors[backends.Stream{}].Index)+1)
		})
	}
}

// killed runs children that are killed after their first, second, … statement, until one is let through. It returns the
// number of those killed, after each of which it calls check.
func killed(t *testing.T, data, role string, check func(point int)) int {
	t.Helper()
	for point := 0; ; point++ {
		if spawn(t, data, role, point)[0] == nil {
			return point
		}
		check(point)
	}
}

// exactlyOnce checks that each of the first n messages is stored once and that the observations tile them.
func exactlyOnce(t *testing.T, s *script, n int) {
	t.Helper()
	got := s.state()
	if len(got.Messages) != n {
		t.Errorf("%d messages are stored, not %d", len(got.Messages), n)
	}
	next := int64(0)
	for _, note := range got.Notes {
		if note.Generation > 0 {
			continue
		}
		if note.Range.Start != next {
			t.Errorf("%s covers %d to %d, but %d is next", note.ID, note.Range.Start, note.Range.End, next)
		}
		next = note.Range.End + 1
	}
	if next != int64(n) {
		t.Errorf("%d messages are covered, not %d", next, n)
	}
	for i, m := range got.Messages {
		if m.Index != int64(i) {
			t.Errorf("message %d has index %d", i, m.Index)
		}
	}
}

// spawn runs a child for every point to stop at, side by side, and returns how each ended: nil when it went well, an
// error when it was killed. Anything else ends the test.
func spawn(t *testing.T, data, role string, stops ...int) []error {
	t.Helper()
	commands := make([]*exec.Cmd, len(stops))
	inputs := make([]io.WriteCloser, len(stops))
	for i, stop := range stops {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), envRole+"="+role, envData+"="+data, envStop+"="+strconv.Itoa(stop))
		cmd.Stderr = os.Stderr
		input, err := cmd.StdinPipe()
		must(t, err)
		output, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		if line, err := bufio.NewReader(output).ReadString('\n'); err != nil || line != "ready\n" {
			t.Fatalf("child says %q, %v", line, err)
		}
		commands[i], inputs[i] = cmd, input
	}
	for _, input := range inputs {
		_, _ = io.WriteString(input, "go\n") // one that was killed already shows below
	}
	errs := make([]error, len(stops))
	for i, cmd := range commands {
		errs[i] = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code == failed || code == panicked {
			t.Fatalf("child: %v", errs[i])
		}
	}
	return errs
}
