package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/backends/pgtest"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// measure runs recall with -json.
func measure(t *testing.T, args ...string) map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), append(args, "-json"), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func number(t *testing.T, r map[string]any, name string) float64 {
	t.Helper()
	n, ok := r[name].(float64)
	if !ok {
		t.Fatalf("no %s in %v", name, r)
	}
	return n
}

func TestRealConversations(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "..", "shared", "data")
	if _, err := os.Stat(filepath.Join(dir, "locomo.jsonl")); err != nil {
		t.Skip("no recorded conversations in ../shared/data beside the repository")
	}
	args := func(more ...string) []string {
		return append([]string{"-transcript", filepath.Join(dir, "locomo.jsonl"), "-qa", filepath.Join(dir, "locomo_qa.jsonl")}, more...)
	}
	names := []string{"recall@5", "recall@10", "recall@20", "mrr"}
	inMemory := measure(t, args()...)
	t.Run("RET-8 lexical search finds the evidence", func(t *testing.T) {
		t.Parallel()
		for i, floor := range []float64{0.62, 0.70, 0.77, 0.45} {
			if got := number(t, inMemory, names[i]); got < floor {
				t.Errorf("%s is %.3f, want at least %.2f", names[i], got, floor)
			}
		}
		if n := number(t, inMemory, "queries"); n != 760 {
			t.Errorf("%v questions", n)
		}
	})
	same := func(t *testing.T, got map[string]any) {
		for _, name := range names {
			if a, b := number(t, got, name), number(t, inMemory, name); a != b {
				t.Errorf("%s is %v, and %v in memory", name, a, b)
			}
		}
	}
	t.Run("RET-8 SQLite ranks alike", func(t *testing.T) {
		t.Parallel()
		same(t, measure(t, args("-backend", "sqlite")...))
	})
	t.Run("RET-8 Postgres ranks alike", func(t *testing.T) {
		t.Parallel()
		same(t, measure(t, args("-backend", "postgres", "-dsn", pgtest.DSN(t))...))
	})
	t.Run("RAG-3 with the local embedder search finds no less", func(t *testing.T) {
		t.Parallel()
		hybrid := measure(t, args("-hybrid")...)
		for _, name := range names {
			if a, b := number(t, hybrid, name), number(t, inMemory, name); a < b {
				t.Errorf("%s is %.4f, without the embedder %.4f", name, a, b)
			}
		}
	})
}

func TestSmall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	transcript := write("t.jsonl", `{"session":"a","id":"1","author":"Ada","content":{"role":"user","parts":[{"text":"The parcel is at the depot in Lyon."}]}}
{"session":"a","id":"1","author":"agent","content":{"role":"model","parts":[{"text":"Thanks."}]}}
{"session":"b","id":"1","author":"Ada","content":{"role":"user","parts":[{"text":"강아지 이름은 뽀삐예요."}]}}
`)
	qa := write("qa.jsonl", `{"session":"a","question":"Where is the parcel?","category":"c","evidence":["1","1"]}
{"session":"b","question":"강아지 이름이 뭐예요?","category":"c","evidence":["1"]}
{"session":"b","question":"Where is the parcel?","category":"c","evidence":["1"]}
{"session":"a","question":"?","category":"c","adversarial":true,"evidence":["1"]}
`)
	t.Run("RET-8 recall counts evidence of the question's own session", func(t *testing.T) {
		t.Parallel()
		r := measure(t, "-transcript", transcript, "-qa", qa, "-k", "1,3")
		if number(t, r, "queries") != 3 || number(t, r, "recall@1") != 2.0/3 || number(t, r, "recall@3") != 2.0/3 || number(t, r, "mrr") != 2.0/3 {
			t.Errorf("got %v", r)
		}
	})
	t.Run("RET-8 the result can be read by people too", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		if err := run(t.Context(), []string{"-transcript", transcript, "-qa", qa}, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(out.Bytes(), []byte("recall@10")) {
			t.Errorf("got %s", out.String())
		}
	})
	t.Run("SEC-4 bad flags are errors", func(t *testing.T) {
		t.Parallel()
		for _, args := range [][]string{
			{}, {"-transcript", transcript}, {"-transcript", transcript, "-qa", qa, "-k", "0"},
			{"-transcript", transcript, "-qa", qa, "-backend", "none"}, {"-transcript", transcript, "-qa", qa, "-backend", "postgres"},
			{"-transcript", transcript, "-qa", qa, "more"}, {"-transcript", "none", "-qa", qa}, {"-transcript", transcript, "-qa", "none"},
		} {
			if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
				t.Errorf("%q: no error", args)
			}
		}
	})
}
