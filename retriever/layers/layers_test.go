package layers_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"google.golang.org/adk/v2/tool"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/backends/sqlite"
	"github.com/adkmemory/adkmemory/retriever"
	"github.com/adkmemory/adkmemory/retriever/layers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func key(user string) backends.SessionKey {
	return backends.SessionKey{App: "app", User: user, Session: "telegram:4711:2"}
}

// named is an ADK tool that does nothing.
type named struct{ name, description string }

func (n named) Name() string        { return n.name }
func (n named) Description() string { return n.description }
func (named) IsLongRunning() bool   { return false }

func tools() []tool.Tool {
	return []tool.Tool{
		named{"get_weather", "Current weather of a city"}, named{"send_mail", "Sends an e-mail about the City weather"},
		named{"book_flight", "Books a flight"}, nil,
	}
}

func retrieve(t testing.TB, l retriever.Layer, query string, k backends.SessionKey) []retriever.Item {
	t.Helper()
	r, err := retriever.New(retriever.Config{LayerTimeout: time.Minute}, l)
	if err != nil {
		t.Fatal(err)
	}
	res := r.Retrieve(t.Context(), retriever.Request{Query: query, Key: k, Layers: []string{l.Name()}})
	if len(res.Failed) > 0 {
		t.Fatalf("%s failed", l.Name())
	}
	return res.Items(l.Name())
}

func keys(items []retriever.Item) string {
	var out []string
	for _, i := range items {
		out = append(out, i.Key)
	}
	return strings.Join(out, " ")
}

func TestTools(t *testing.T) {
	t.Parallel()
	t.Run("TOOL-1 ListTools returns all descriptors", func(t *testing.T) {
		t.Parallel()
		got := layers.NewToolRegistryAdapter(tools()).ListTools()
		if len(got) != 3 || got[0] != (layers.ToolDescriptor{Name: "get_weather", Description: "Current weather of a city"}) {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("TOOL-2 the tools are copied at construction", func(t *testing.T) {
		t.Parallel()
		list := tools()
		a := layers.NewToolRegistryAdapter(list)
		list[0] = named{"changed", ""}
		a.ListTools()[0].Name = "changed"
		if got := a.ListTools()[0].Name; got != "get_weather" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("TOOL-1 TOOL-3 SearchTools matches a part of name or description in either case, at most limit", func(t *testing.T) {
		t.Parallel()
		a := layers.NewToolRegistryAdapter(tools())
		for query, want := range map[string]int{"WEATHER": 2, "city": 2, "flight": 1, "get_w": 1, "weather flight": 0, "nothing": 0} {
			if got := a.SearchTools(query, 0); len(got) != want {
				t.Errorf("%q finds %+v", query, got)
			}
		}
		if got := a.SearchTools("weather", 1); len(got) != 1 {
			t.Errorf("limit 1 finds %+v", got)
		}
	})
	t.Run("RET-6 tools that match any word are items, those that match more first", func(t *testing.T) {
		t.Parallel()
		l := layers.Tools(layers.NewToolRegistryAdapter(tools()))
		got := retrieve(t, l, "The weather of the city, please, by mail!", backends.SessionKey{})
		if keys(got) != "send_mail get_weather" || got[0].Text != "Sends an e-mail about the City weather" {
			t.Errorf("got %+v", got)
		}
		if got = retrieve(t, l, "book city weather", backends.SessionKey{}); keys(got) != "get_weather send_mail book_flight" {
			t.Errorf("got %+v", got)
		}
		if got = retrieve(t, l, "nothing of the kind", backends.SessionKey{}); len(got) != 0 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("RET-6 RET-7 without a provider there is nothing, and no error", func(t *testing.T) {
		t.Parallel()
		for _, l := range []retriever.Layer{layers.Tools(nil), layers.Runtime(nil)} {
			if got := retrieve(t, l, "weather", key("ada")); len(got) != 0 {
				t.Errorf("%s: %+v", l.Name(), got)
			}
		}
	})
}

func TestRuntime(t *testing.T) {
	t.Parallel()
	t.Run("RUN-1 RUN-2 the channel is direct before any SetSession, the settings stay", func(t *testing.T) {
		t.Parallel()
		settings := layers.RuntimeState{SessionKey: "x", ChannelType: "x", ActiveTools: 3, Encryption: true, Knowledge: true, Memory: true}
		got := layers.NewRuntimeContextAdapter(settings).GetRuntimeContext()
		want := layers.RuntimeState{ChannelType: "direct", ActiveTools: 3, Encryption: true, Knowledge: true, Memory: true}
		if got != want {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("RUN-3 SetSession takes the channel from the prefix", func(t *testing.T) {
		t.Parallel()
		for session, want := range map[string]string{
			"telegram:1:2": "telegram", "discord:1:2": "discord", "slack:C1:2": "slack", "email:1": "direct", "": "direct",
			"telegrams:1": "direct", "x:slack:1": "direct", "7f3a": "direct",
		} {
			a := layers.NewRuntimeContextAdapter(layers.RuntimeState{})
			a.SetSession("slack:before")
			a.SetSession(session)
			if got := a.GetRuntimeContext(); got.ChannelType != want || got.SessionKey != session {
				t.Errorf("%q gives %+v", session, got)
			}
		}
	})
	t.Run("RUN-4 SetSession and GetRuntimeContext may run at once, and agree", func(t *testing.T) {
		t.Parallel()
		a := layers.NewRuntimeContextAdapter(layers.RuntimeState{})
		var wg sync.WaitGroup
		for _, channel := range []string{"slack", "telegram", "discord"} {
			wg.Go(func() {
				for range 200 {
					a.SetSession(channel + ":1")
					if got := a.GetRuntimeContext(); got.SessionKey != got.ChannelType+":1" {
						t.Errorf("got %+v", got)
					}
				}
			})
		}
		wg.Wait()
	})
	t.Run("RET-7 CTX-6 one item shows the request's session and its channel", func(t *testing.T) {
		t.Parallel()
		a := layers.NewRuntimeContextAdapter(layers.RuntimeState{ActiveTools: 3, Memory: true})
		got := retrieve(t, layers.Runtime(a), "weather", key("ada"))
		want := "session telegram:4711:2, channel telegram, 3 active tools, encryption off, knowledge off, memory on"
		if len(got) != 1 || got[0].Key != "session-state" || got[0].Text != want {
			t.Errorf("got %+v", got)
		}
		if s := a.GetRuntimeContext(); s.SessionKey != "" {
			t.Errorf("the shared adapter was changed to %+v", s)
		}
	})
	t.Run("CTX-6 concurrent calls never see each other's session", func(t *testing.T) {
		t.Parallel()
		l := layers.Runtime(layers.NewRuntimeContextAdapter(layers.RuntimeState{}))
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				session := fmt.Sprint("slack:", i)
				for range 50 {
					items, err := l.Retrieve(context.Background(), retriever.Query{Key: backends.SessionKey{App: "a", User: "u", Session: session}})
					if err != nil || !strings.HasPrefix(items[0].Text, "session "+session+",") {
						t.Errorf("%s got %+v, %v", session, items, err)
					}
				}
			})
		}
		wg.Wait()
	})
}

func save(t testing.TB, s backends.KnowledgeStore, user string, e backends.Entry) {
	t.Helper()
	if _, err := s.SaveEntry(context.Background(), "app", user, e); err != nil {
		t.Fatal(err)
	}
}

func TestStored(t *testing.T) {
	t.Parallel()
	s := inmemory.New()
	for _, user := range []string{"ada", "bob"} {
		for _, kind := range backends.EntryKinds() {
			save(t, s, user, backends.Entry{Kind: kind, Key: string(kind) + " of " + user, Title: "Parcels", Text: "About the parcel of " + user, Source: "https://example.org"})
		}
		for i, session := range []string{key(user).Session, "other"} {
			k := backends.SessionKey{App: "app", User: user, Session: session}
			day := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
			note := backends.Note{ID: fmt.Sprint("note", i), Text: "The parcel is in Lyon.", Range: backends.Range{StartTime: day, EndTime: day.AddDate(0, 0, i)}}
			_, err := s.Commit(t.Context(), k, backends.Commit{To: backends.Cursor{MessageID: "m"}, Observation: backends.Observation{Note: note}})
			if err != nil {
				t.Fatal(err)
			}
			snap, err := s.Load(t.Context(), k, backends.Stamp{})
			if err != nil {
				t.Fatal(err)
			}
			reflection := backends.Reflection{Generation: 1, Sources: []string{note.ID}, Note: backends.Note{ID: "r" + note.ID, Text: "Parcels go to Lyon."}}
			if _, err := s.Condense(t.Context(), k, backends.Condense{Epoch: snap.Epoch, Reflection: reflection}); err != nil {
				t.Fatal(err)
			}
		}
	}
	standard := layers.Standard(s)
	want := map[string]string{
		retriever.UserKnowledge: "knowledge of ada", retriever.SkillPatterns: "skill of ada", retriever.ExternalKnowledge: "reference of ada",
		retriever.AgentLearnings: "learning of ada", retriever.Observations: "note0", retriever.Reflections: "rnote0",
	}
	if len(standard) != len(want) {
		t.Errorf("%d layers", len(standard))
	}
	for _, l := range standard {
		t.Run("RET-1 RET-8 "+l.Name()+" finds what belongs to the user, and to the session where there is one", func(t *testing.T) {
			t.Parallel()
			if got := retrieve(t, l, "Where is the parcel?", key("ada")); keys(got) != want[l.Name()] {
				t.Errorf("found %+v", got)
			}
			for _, k := range []backends.SessionKey{{}, key("carl"), {App: "other", User: "ada", Session: key("ada").Session}} {
				if got := retrieve(t, l, "Where is the parcel?", k); len(got) != 0 {
					t.Errorf("%v found %+v", k, got)
				}
			}
			if got := retrieve(t, l, "unrelated words", key("ada")); len(got) != 0 {
				t.Errorf("found %+v", got)
			}
		})
	}
	t.Run("RET-1 a reference names its source, a note its day", func(t *testing.T) {
		t.Parallel()
		if got := retrieve(t, layers.ExternalKnowledge(s), "parcel", key("ada")); !strings.HasSuffix(got[0].Text, "(https://example.org)") {
			t.Errorf("got %+v", got)
		}
		if got := retrieve(t, layers.Observations(s), "parcel", key("ada")); got[0].Title != "2026-03-04" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("RET-1 a learning that failed ranks below one that worked", func(t *testing.T) {
		t.Parallel()
		s := inmemory.New()
		for _, k := range []string{"worked", "failed"} {
			save(t, s, "ada", backends.Entry{Kind: backends.KindLearning, Key: k, Text: "Restart the resolver. " + k})
			for range 3 {
				if _, err := s.RecordOutcome(t.Context(), "app", "ada", backends.KindLearning, k, k == "worked"); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := retrieve(t, layers.AgentLearnings(s), "resolver restart", key("ada")); keys(got) != "worked failed" {
			t.Errorf("got %+v", got)
		}
	})
}

// BenchmarkSixLayers retrieves all six layers of a turn over 10,000 entries of one user in SQLite.
func BenchmarkSixLayers(b *testing.B) {
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "memory.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	kinds := backends.EntryKinds()
	words := strings.Fields("deploy service billing parcel customer failed night release resolver cache index query login token queue worker")
	for i := range 10_000 {
		text := fmt.Sprintf("Entry %d:", i)
		for j := range 20 {
			text += fmt.Sprintf(" %s%d", words[(i*7+j*3)%len(words)], (i*j)%97)
		}
		text += " " + words[i%len(words)] + " " + words[(i/16)%len(words)]
		save(b, s, "ada", backends.Entry{Kind: kinds[i%len(kinds)], Key: fmt.Sprint(i), Text: text})
	}
	r, err := retriever.New(retriever.Config{}, append(layers.Standard(s), layers.Tools(layers.NewToolRegistryAdapter(tools())),
		layers.Runtime(layers.NewRuntimeContextAdapter(layers.RuntimeState{})))...)
	if err != nil {
		b.Fatal(err)
	}
	six := append(retriever.DefaultLayers(), retriever.RuntimeContext, retriever.ToolRegistry)
	var times []time.Duration
	for i := 0; b.Loop(); i++ {
		begin := time.Now()
		res := r.Retrieve(b.Context(), retriever.Request{
			Query: fmt.Sprintf("Why did the %s of the %s fail at night?", words[i%len(words)], words[(i*5+1)%len(words)]), Key: key("ada"), Layers: six,
		})
		times = append(times, time.Since(begin))
		if len(res.Failed) > 0 || len(res.Layers) < 5 {
			b.Fatalf("%+v", res)
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
}

func Example() {
	store := inmemory.New()
	r, err := retriever.New(retriever.Config{}, append(layers.Standard(store),
		layers.Tools(layers.NewToolRegistryAdapter(nil)),
		layers.Runtime(layers.NewRuntimeContextAdapter(layers.RuntimeState{Memory: true})))...)
	if err != nil {
		fmt.Println(err)
		return
	}
	res := r.Retrieve(context.Background(), retriever.Request{
		Query: "Where is my parcel?", Key: backends.SessionKey{App: "shop", User: "ada", Session: "slack:C1:7"},
		Layers: []string{retriever.RuntimeContext},
	})
	fmt.Println(res.Items(retriever.RuntimeContext)[0].Text)
	// Output: session slack:C1:7, channel slack, 0 active tools, encryption off, knowledge off, memory on
}
