package adkmem_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genai"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/memory"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/loadmemorytool"
	"google.golang.org/adk/v2/tool/preloadmemorytool"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/backends/sqlite"
	"github.com/adkmemory/adkmemory/middleware/adkmem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is what the tests ask beside the service's own needs.
type store interface {
	adkmem.Store
	backends.Archive
}

// onStores runs a test on the in-memory store and on SQLite.
func onStores(t *testing.T, name string, test func(t *testing.T, s store)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		t.Run("inmemory", func(t *testing.T) {
			t.Parallel()
			test(t, inmemory.New())
		})
		t.Run("sqlite", func(t *testing.T) {
			t.Parallel()
			s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "memory.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			test(t, s)
		})
	})
}

func service(t *testing.T, s adkmem.Store, cfg adkmem.Config) *adkmem.Service {
	t.Helper()
	svc, err := adkmem.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

// conversation is an ADK session with one event a text.
func conversation(t *testing.T, user, id string, texts ...string) session.Session {
	t.Helper()
	svc := session.InMemoryService()
	created, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: user, SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		e := session.NewEvent(t.Context(), "inv")
		e.ID, e.Author = fmt.Sprint("e", i), "user"
		e.Timestamp = time.Date(2026, 3, 4, 5, i, 0, 0, time.UTC)
		e.Content = genai.NewContentFromText(text, genai.RoleUser)
		if err := svc.AppendEvent(t.Context(), created.Session, e); err != nil {
			t.Fatal(err)
		}
	}
	got, err := svc.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: user, SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	return got.Session
}

func search(t *testing.T, svc *adkmem.Service, user, query string) []string {
	t.Helper()
	res, err := svc.SearchMemory(t.Context(), &memory.SearchRequest{AppName: "app", UserID: user, Query: query})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range res.Memories {
		out = append(out, m.Content.Parts[0].Text)
	}
	return out
}

type shout struct{}

func (shout) Redact(text string) string { return strings.ReplaceAll(text, "secret", "[gone]") }

func TestService(t *testing.T) {
	t.Parallel()
	onStores(t, "MEM-1 adding a session twice stores its messages once, and later only what is new", func(t *testing.T, s store) {
		svc := service(t, s, adkmem.Config{})
		key := backends.SessionKey{App: "app", User: "ada", Session: "s"}
		texts := []string{"The parcel is in Lyon.", "It weighs two kilos.", "It is blue."}
		for _, n := range []int{2, 2, 3} {
			if err := svc.AddSessionToMemory(t.Context(), conversation(t, "ada", "s", texts[:n]...)); err != nil {
				t.Fatal(err)
			}
			got, err := s.ListMessages(t.Context(), key, backends.MessageQuery{})
			if err != nil || len(got) != n {
				t.Fatalf("%d messages are stored, want %d: %v", len(got), n, err)
			}
			for i, m := range got {
				if m.Text != texts[i] || m.ID != fmt.Sprint("e", i) || m.Index != int64(i) {
					t.Errorf("message %d is %+v", i, m)
				}
			}
		}
	})
	onStores(t, "MEM-1 search is ranked, bounded and of one user of one app", func(t *testing.T, s store) {
		svc := service(t, s, adkmem.Config{MaxResults: 2})
		for _, sess := range []session.Session{
			conversation(t, "ada", "s1", "Lunch?", "The blue parcel is in Lyon.", "A parcel.", "x", "y", "z", "Nothing."),
			conversation(t, "ada", "s2", "Another parcel is green."), conversation(t, "bob", "s1", "Bob's blue parcel."),
		} {
			if err := svc.AddSessionToMemory(t.Context(), sess); err != nil {
				t.Fatal(err)
			}
		}
		got := search(t, svc, "ada", "Where is the blue parcel in Lyon?")
		if len(got) != 2 || got[0] != "The blue parcel is in Lyon." || slices.Contains(got, "Bob's blue parcel.") {
			t.Errorf("found %q", got)
		}
		if got = search(t, svc, "carl", "blue parcel"); len(got) != 0 {
			t.Errorf("somebody else found %q", got)
		}
		if got = search(t, svc, "ada", "the of is"); len(got) != 0 {
			t.Errorf("stop words found %q", got)
		}
	})
	t.Run("MEM-1 an entry keeps the content, the author and the time", func(t *testing.T) {
		t.Parallel()
		svc := service(t, inmemory.New(), adkmem.Config{})
		if err := svc.AddSessionToMemory(t.Context(), conversation(t, "ada", "s", "The parcel is in Lyon.")); err != nil {
			t.Fatal(err)
		}
		res, err := svc.SearchMemory(t.Context(), &memory.SearchRequest{AppName: "app", UserID: "ada", Query: "parcel"})
		if err != nil || len(res.Memories) != 1 {
			t.Fatal(res, err)
		}
		m := res.Memories[0]
		if m.ID != "e0" || m.Author != "user" || m.Content.Role != genai.RoleUser || m.CustomMetadata["session"] != "s" ||
			!m.Timestamp.Equal(time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)) {
			t.Errorf("got %+v", m)
		}
	})
	t.Run("SEC-2 a redactor runs before anything is stored", func(t *testing.T) {
		t.Parallel()
		svc := service(t, inmemory.New(), adkmem.Config{Redactor: shout{}})
		if err := svc.AddSessionToMemory(t.Context(), conversation(t, "ada", "s", "The secret code.")); err != nil {
			t.Fatal(err)
		}
		if got := search(t, svc, "ada", "code secret"); len(got) != 1 || got[0] != "The [gone] code." {
			t.Errorf("found %q", got)
		}
	})
	t.Run("CFG-5 faults are reported", func(t *testing.T) {
		t.Parallel()
		if _, err := adkmem.New(nil, adkmem.Config{}); !errors.Is(err, backends.ErrInvalid) {
			t.Errorf("without a store: %v", err)
		}
		if _, err := adkmem.New(inmemory.New(), adkmem.Config{MaxResults: -1}); !errors.Is(err, backends.ErrInvalid) {
			t.Errorf("with a negative bound: %v", err)
		}
	})
}

// asks is a model that calls a tool first, if it is given a name, and then answers.
type asks struct {
	tool     string
	requests []*model.LLMRequest
}

func (a *asks) Name() string { return "asks" }

func (a *asks) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		a.requests = append(a.requests, req)
		content := genai.NewContentFromText("Done.", genai.RoleModel)
		if len(a.requests) == 1 && a.tool != "" {
			content = genai.NewContentFromFunctionCall(a.tool, map[string]any{"query": "parcel"}, genai.RoleModel)
		}
		yield(&model.LLMResponse{Content: content}, nil)
	}
}

func TestStockTools(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, llm *asks, tl tool.Tool) string {
		svc := service(t, inmemory.New(), adkmem.Config{})
		if err := svc.AddSessionToMemory(t.Context(), conversation(t, "ada", "old", "The parcel is in Lyon.")); err != nil {
			t.Fatal(err)
		}
		a, err := llmagent.New(llmagent.Config{Name: "agent", Model: llm, Tools: []tool.Tool{tl}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := runner.New(runner.Config{
			AppName: "app", Agent: a, SessionService: session.InMemoryService(), MemoryService: svc, AutoCreateSession: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range r.Run(t.Context(), "ada", "new", genai.NewContentFromText("Where is the parcel?", genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		last := llm.requests[len(llm.requests)-1]
		text := fmt.Sprintf("%+v", last.Config.SystemInstruction.Parts[0].Text)
		for _, c := range last.Contents {
			for _, p := range c.Parts {
				if p.FunctionResponse != nil {
					text += fmt.Sprintf("%+v", p.FunctionResponse.Response["memories"].([]memory.Entry)[0].Content.Parts[0].Text)
				}
			}
		}
		return text
	}
	t.Run("MEM-1 ADK's load_memory tool finds what was added", func(t *testing.T) {
		t.Parallel()
		if got := run(t, &asks{tool: "load_memory"}, loadmemorytool.New()); !strings.Contains(got, "The parcel is in Lyon.") {
			t.Errorf("the model got %s", got)
		}
	})
	t.Run("MEM-1 ADK's preload_memory tool finds what was added", func(t *testing.T) {
		t.Parallel()
		if got := run(t, &asks{}, preloadmemorytool.New()); !strings.Contains(got, "The parcel is in Lyon.") {
			t.Errorf("the model got %s", got)
		}
	})
}

func Example() {
	svc, err := adkmem.New(inmemory.New(), adkmem.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := svc.SearchMemory(context.Background(), &memory.SearchRequest{AppName: "app", UserID: "ada", Query: "parcel"})
	fmt.Println(len(res.Memories), err)
	// Output: 0 <nil>
}
