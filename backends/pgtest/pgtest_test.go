package pgtest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/backends/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv("PGTEST_VICTIM") != "" {
		victim()
	}
	os.Exit(pgtest.Main(m))
}

// victim starts a cluster, says where it is, and waits to be killed.
func victim() {
	cluster, err := pgtest.NewCluster(context.Background())
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString(cluster.DSN() + "\n")
	select {}
}

func TestDSN(t *testing.T) {
	t.Parallel()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx := context.Background()
	count := func(dsn string) (n int) {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(ctx) }()
		err = conn.QueryRow(ctx, "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, "CREATE TABLE found (id int)"); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 2 {
		if n := count(pgtest.DSN(t)); n != 0 {
			t.Errorf("a new schema holds %d tables", n)
		}
	}
}

func TestClusterEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	if os.Getenv(pgtest.Env) == "off" {
		t.Skip(pgtest.Env + " is off")
	}
	ctx := context.Background()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), "PGTEST_VICTIM=1", "TMPDIR="+os.TempDir())
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 200)
	n, err := output.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	dsn := strings.TrimSpace(string(line[:n]))
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	dir := filepath.Dir(strings.TrimPrefix(strings.Fields(dsn)[0], "host=") + "/x")
	deadline := time.Now().Add(30 * time.Second)
	for gone := false; !gone; {
		_, err := os.Stat(dir)
		gone = os.IsNotExist(err)
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there", dir)
		}
	}
	if err := conn.Ping(ctx); err == nil {
		t.Error("the server still answers")
	}
	_ = conn.Close(ctx)
}

func ExampleMain() {
	// In a test package:
	//
	//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
	//
	//	func TestStore(t *testing.T) {
	//		store, err := postgres.Open(ctx, pgtest.DSN(t))
	//		…
	//	}
}
