package transcript_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/examples/internal/transcript"
)

const two = `{"session":"a","system":"Be kind."}
{"session":"a","seq":0,"id":"1","time":"2024-03-01T10:00:00Z","author":"user","content":{"role":"user","parts":[{"text":"Hi"}]}}
{"session":"a","seq":1,"id":"2","time":"2024-03-03T11:00:00Z","author":"bot","content":{"role":"model","parts":[{"text":"Hello"}]}}

{"session":"b","system":"Be kind."}
{"session":"b","seq":0,"id":"1","time":"2024-01-01T09:00:00Z","author":"user","content":{"role":"user","parts":[{"text":"Bye"}]}}
`

func ExampleRead() {
	conversations, err := transcript.Read(strings.NewReader(two))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range conversations {
		fmt.Println(c.Session, len(c.Messages), c.Messages[0].UniqueID(), c.Messages[0].Content.Parts[0].Text)
	}
	// Output:
	// a 2 a/1 Hi
	// b 1 b/1 Bye
}

func TestConcat(t *testing.T) {
	t.Parallel()
	conversations, err := transcript.Read(strings.NewReader(two))
	if err != nil {
		t.Fatal(err)
	}
	joined := transcript.Concat(conversations, 5)
	if len(joined) != 1 || len(joined[0].Messages) != 3 {
		t.Fatalf("joined = %+v, want one conversation of three messages", joined)
	}
	t.Run("equal instructions are kept once", func(t *testing.T) {
		t.Parallel()
		if joined[0].System != "Be kind." {
			t.Errorf("system = %q", joined[0].System)
		}
	})
	t.Run("time never runs backward and keeps the time of day", func(t *testing.T) {
		t.Parallel()
		want := time.Date(2024, 3, 4, 9, 0, 0, 0, time.UTC)
		if got := joined[0].Messages[2].Time; !got.Equal(want) {
			t.Errorf("time of the second conversation = %s, want %s", got, want)
		}
	})
	t.Run("the conversations it was given stay as they were", func(t *testing.T) {
		t.Parallel()
		if got := conversations[1].Messages[0].Time.Year(); got != 2024 || conversations[1].Messages[0].Time.Month() != 1 {
			t.Errorf("the source's time was moved to %s", conversations[1].Messages[0].Time)
		}
	})
	t.Run("groups of n", func(t *testing.T) {
		t.Parallel()
		five := make([]transcript.Conversation, 5)
		if got := len(transcript.Concat(five, 2)); got != 3 {
			t.Errorf("5 conversations in groups of 2 = %d", got)
		}
		if got := len(transcript.Concat(five, 1)); got != 5 {
			t.Errorf("5 conversations in groups of 1 = %d", got)
		}
	})
}

func TestReadFaults(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"not JSON":                   "{",
		"no session":                 `{"system":"x"}`,
		"neither content nor system": `{"session":"a"}`,
		"unknown role":               `{"session":"a","content":{"role":"tool","parts":[]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := transcript.Read(strings.NewReader("\n" + text))
			if err == nil || !strings.Contains(err.Error(), "line 2") {
				t.Errorf("error = %v, want one that names line 2", err)
			}
		})
	}
	t.Run("missing file", func(t *testing.T) {
		t.Parallel()
		if _, err := transcript.Open(t.TempDir() + "/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error = %v, want fs.ErrNotExist", err)
		}
	})
}

func TestWriteReadsBack(t *testing.T) {
	t.Parallel()
	want := []transcript.Conversation{{Session: "s", System: "<b>", Messages: []transcript.Message{
		{Session: "s", ID: "1", Author: "user", Content: genai.NewContentFromText("a < b", genai.RoleUser)},
	}}}
	var buf bytes.Buffer
	if err := transcript.Write(&buf, want); err != nil {
		t.Fatal(err)
	}
	got, err := transcript.Read(&buf)
	if err != nil {
		t.Fatal(err)
	}
	fields := []string{got[0].System, got[0].Messages[0].ID, got[0].Messages[0].Content.Parts[0].Text}
	if !slices.Equal(fields, []string{"<b>", "1", "a < b"}) {
		t.Errorf("read back %+v", got)
	}
}
