package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/sqlite"
)

// TestMain is the service itself when a test starts this binary as a child.
func TestMain(m *testing.M) {
	if os.Getenv("FXAPP_CHILD") != "" {
		main()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// provider is a server with OpenAI's Responses API. What the Observer asks waits until it is let.
type provider struct {
	*httptest.Server
	observing chan struct{}
	let       chan struct{}
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{observing: make(chan struct{}, 100), let: make(chan struct{})}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := "Noted, anything else?"
		if bytes.Contains(body, []byte("The part of the conversation:")) {
			p.observing <- struct{}{}
			select {
			case <-p.let:
			case <-r.Context().Done():
				return
			}
			text = "- The user books flights for their passengers."
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m","role":"assistant",
			"status":"completed","content":[{"type":"output_text","text":%q,"annotations":[]}]}]}`, text)
	}))
	t.Cleanup(p.Close)
	return p
}

// service is the service as a process.
type service struct {
	cmd *exec.Cmd
	url string
	log *bytes.Buffer
	end chan error
}

func start(t *testing.T, file string, env ...string) *service {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &service{log: new(bytes.Buffer), end: make(chan error, 1)}
	s.cmd = exec.CommandContext(t.Context(), self, "-config", file)
	s.cmd.Env = append(os.Environ(), append(env, "FXAPP_CHILD=1")...)
	out, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for s.url == "" && lines.Scan() {
		s.log.Write(append(lines.Bytes(), '\n'))
		var record struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &record) == nil && record.Msg == "listening" {
			s.url = "http://" + record.Address
		}
	}
	go func() {
		for lines.Scan() {
			s.log.Write(append(lines.Bytes(), '\n'))
		}
		s.end <- s.cmd.Wait()
	}()
	if s.url == "" {
		t.Fatalf("the service did not start: %v\n%s", <-s.end, s.log)
	}
	return s
}

func (s *service) ask(t *testing.T, text string) string {
	t.Helper()
	body, _ := json.Marshal(question{Session: "s1", Text: text})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/ask", bytes.NewReader(body))
	req.Header.Set("X-User", "anna")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var a answer
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	return a.Text
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestService(t *testing.T) {
	t.Parallel()
	t.Run("OPS-3 BUF-3 started from a file, asked over HTTP, stopped in the middle of an observation that still completes", func(t *testing.T) {
		t.Parallel()
		p := newProvider(t)
		db := filepath.Join(t.TempDir(), "memory.db")
		file := write(t, "memory.yaml", `
observationalMemory: {enabled: true, messageTokenThreshold: 200}
database: {dsn: unused}
service: {listen: "127.0.0.1:0", instruction: Help., provider: openai, model: m, redact: true}
`)
		s := start(t, file, "ADKMEMORY_DATABASE_DSN=sqlite:"+db, "OPENAI_BASE_URL="+p.URL+"/v1", "OPENAI_API_KEY=k")
		for i := range 10 {
			got := s.ask(t, fmt.Sprintf("Please book flight %d for Passenger%d on 2024-05-12, aisle seat; mail the receipt to anna@example.com.", i, i))
			if got != "Noted, anything else?" {
				t.Errorf("answer %q", got)
			}
		}
		<-p.observing
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-s.end:
			t.Fatalf("ended while an observation was in flight: %v\n%s", err, s.log)
		case p.let <- struct{}{}:
		}
		close(p.let)
		if err := <-s.end; err != nil {
			t.Fatalf("%v\n%s", err, s.log)
		}
		store, err := sqlite.Open(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		key := backends.SessionKey{App: appName, User: "anna", Session: "s1"}
		snap, err := store.Load(t.Context(), key, backends.Stamp{})
		if err != nil || len(snap.Observations) == 0 || !strings.Contains(snap.Observations[0].Text, "books flights") {
			t.Fatalf("%+v, %v\n%s", snap, err, s.log)
		}
		messages, err := store.ListMessages(t.Context(), key, backends.MessageQuery{})
		if err != nil || len(messages) == 0 || strings.Contains(messages[0].Text, "anna@") || !strings.Contains(messages[0].Text, "[redacted email]") {
			t.Errorf("%+v, %v", messages, err)
		}
	})
	t.Run("CFG-5 a bad file ends it with every fault", func(t *testing.T) {
		t.Parallel()
		self, _ := os.Executable()
		file := write(t, "bad.yaml", "observationalMemory: {enabled: true, workers: -1, layuot: x}\nservise: {}\n")
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, self, "-config", file)
		cmd.Env = append(os.Environ(), "FXAPP_CHILD=1")
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Error("it started")
		}
		for _, want := range []string{"workers", "layuot", "servise"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%q is not reported: %s", want, out)
			}
		}
	})
	t.Run("CFG-1 the file beside the example is valid", func(t *testing.T) {
		t.Parallel()
		raw, err := os.ReadFile("memory.yaml")
		if err != nil {
			t.Fatal(err)
		}
		file := write(t, "memory.yaml", strings.Replace(string(raw), ":8080", "127.0.0.1:0", 1))
		s := start(t, file, "ADKMEMORY_DATABASE_DSN="+filepath.Join(t.TempDir(), "m.db"), "OPENAI_API_KEY=k",
			"ADKMEMORY_SERVICE_ENCRYPTION=k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=", "ADKMEMORY_SERVICE_OTLP=http://127.0.0.1:1/v1/traces")
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := <-s.end; err != nil {
			t.Errorf("%v\n%s", err, s.log)
		}
	})
}
