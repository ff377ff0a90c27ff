package rag_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"go.uber.org/goleak"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/backends/inmemory"
	"github.com/adkmemory/adkmemory/retriever/queue"
	"github.com/adkmemory/adkmemory/retriever/rag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func say(t testing.TB, s *inmemory.Store, user, session string, texts ...string) []backends.Ref {
	t.Helper()
	var messages []backends.Message
	var refs []backends.Ref
	for i, text := range texts {
		m := backends.Message{ID: fmt.Sprint("m", i), Text: text}
		messages = append(messages, m)
		refs = append(refs, backends.Ref{Kind: backends.KindMessage, Session: session, ID: m.ID})
	}
	key := backends.SessionKey{App: "app", User: user, Session: session}
	if _, err := s.AppendMessages(context.Background(), key, backends.Stream{}, messages); err != nil {
		t.Fatal(err)
	}
	return refs
}

// axes is an embedder whose vectors the tests choose.
type axes struct {
	vectors map[string][]float32
	err     error
	asked   []string
}

func (*axes) Model() string { return "axes" }

func (a *axes) Embed(_ context.Context, _ rag.Task, texts []string) ([][]float32, error) {
	a.asked = append(a.asked, texts...)
	if a.err != nil {
		return nil, a.err
	}
	var out [][]float32
	for _, t := range texts {
		v := a.vectors[t]
		if v == nil {
			v = []float32{0, 0, 1}
		}
		out = append(out, v)
	}
	return out, nil
}

func cosine(t *testing.T, a, b string) float64 {
	t.Helper()
	v, err := rag.Local{}.Embed(t.Context(), rag.Document, []string{a, b})
	if err != nil {
		t.Fatal(err)
	}
	return backends.Cosine(v[0], v[1])
}

func TestLocal(t *testing.T) {
	t.Parallel()
	t.Run("RAG-3 equal texts have equal vectors of length one, always", func(t *testing.T) {
		t.Parallel()
		text := "The deployment failed in 東京, twice."
		a, err := rag.Local{}.Embed(t.Context(), rag.Document, []string{text, "", text})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := rag.Local{}.Embed(t.Context(), rag.Query, []string{text})
		sum := 0.0
		for _, x := range a[0] {
			sum += float64(x) * float64(x)
		}
		if !slices.Equal(a[0], a[2]) || !slices.Equal(a[0], b[0]) || math.Abs(sum-1) > 1e-5 || len(a[1]) != len(a[0]) {
			t.Errorf("vectors of length %v", sum)
		}
	})
	t.Run("RAG-3 texts with common words and parts are near, others are not", func(t *testing.T) {
		t.Parallel()
		near, typo, far := cosine(t, "failed deployments", "the deployment failed"), cosine(t, "deploymnet", "deployment"), cosine(t, "failed deployments", "lunch at noon")
		if near < 0.9 || typo < 0.15 || far > 0.15 || typo <= far {
			t.Errorf("similarities %.2f %.2f %.2f", near, typo, far)
		}
	})
}

func TestHybrid(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) (*inmemory.Store, *axes, rag.Hybrid) {
		s := inmemory.New()
		refs := say(t, s, "ada", "s", "puppy", "filler", "filler", "filler", "young dog", "filler", "filler", "filler", "cat")
		other := say(t, s, "ada", "other", "hound")
		foreign := say(t, s, "bob", "s", "wolf")
		e := &axes{vectors: map[string][]float32{"puppy": {1, 0, 0}}}
		put := func(user string, r backends.Ref, v ...float32) {
			if err := s.PutVectors(t.Context(), "app", user, []backends.Vector{{Ref: r, Model: "axes", Values: v}}); err != nil {
				t.Fatal(err)
			}
		}
		put("ada", refs[4], 0.9, 0.1, 0)
		put("ada", refs[8], 0, 1, 0)
		put("ada", other[0], 1, 0, 0)
		put("bob", foreign[0], 1, 0, 0)
		return s, e, rag.Hybrid{Words: s, Vectors: s, Embedder: e, Logger: slog.New(slog.DiscardHandler)}
	}
	search := func(t *testing.T, h rag.Hybrid, q backends.SearchQuery) string {
		t.Helper()
		q.App, q.User = "app", "ada"
		found, err := h.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, f := range found {
			if text := f.Text(); text != "filler" {
				out = append(out, text)
			}
		}
		return strings.Join(out, "|")
	}
	t.Run("RAG-1 CTX-7 what words miss is found by similarity, within the session, user and app", func(t *testing.T) {
		t.Parallel()
		_, _, h := setup(t)
		if got := search(t, h, backends.SearchQuery{Text: "puppy", Session: "s"}); got != "puppy|young dog" && got != "young dog|puppy" {
			t.Errorf("found %s", got)
		}
		if got := search(t, h, backends.SearchQuery{Text: "puppy"}); !strings.Contains(got, "hound") || strings.Contains(got, "wolf") {
			t.Errorf("in all sessions found %s", got)
		}
		if got := search(t, h, backends.SearchQuery{Text: "puppy", Kinds: []backends.Kind{backends.KindObservation}}); got != "" {
			t.Errorf("of another kind found %s", got)
		}
		if got := search(t, h, backends.SearchQuery{Text: "puppy", Limit: 1}); strings.Contains(got, "|") {
			t.Errorf("found %s", got)
		}
	})
	t.Run("RAG-1 what both ways find ranks before what one finds", func(t *testing.T) {
		t.Parallel()
		s, _, h := setup(t)
		err := s.PutVectors(t.Context(), "app", "ada", []backends.Vector{{
			Ref: backends.Ref{Kind: backends.KindMessage, Session: "s", ID: "m0"}, Model: "axes", Values: []float32{0.5, 0.5, 0}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := search(t, h, backends.SearchQuery{Text: "puppy", Session: "s", Limit: 1}); got != "puppy" {
			t.Errorf("found %s", got)
		}
	})
	t.Run("ADP-3 when embedding fails words are enough", func(t *testing.T) {
		t.Parallel()
		_, e, h := setup(t)
		e.err = errors.New("down")
		if got := search(t, h, backends.SearchQuery{Text: "puppy", Session: "s"}); got != "puppy" {
			t.Errorf("found %s", got)
		}
	})
	t.Run("RAG-3 the local embedder never changes the order of what words find", func(t *testing.T) {
		t.Parallel()
		s := inmemory.New()
		texts := []string{"alpha", "alpha beta", "beta alphabet", "x", "gamma alpha beta beta", "y", "alphas betas"}
		refs := say(t, s, "ada", "s", texts...)
		values, err := rag.Local{}.Embed(t.Context(), rag.Document, texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if err := s.PutVectors(t.Context(), "app", "ada", []backends.Vector{{Ref: refs[i], Model: rag.Local{}.Model(), Values: v}}); err != nil {
				t.Fatal(err)
			}
		}
		q := backends.SearchQuery{App: "app", User: "ada", Text: "beta alpha"}
		words, err := s.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		both, err := rag.Hybrid{Words: s, Vectors: s, Embedder: rag.Local{}}.Search(t.Context(), q)
		if err != nil || len(both) < len(words) {
			t.Fatal(both, err)
		}
		for i := range words {
			if words[i].Ref != both[i].Ref {
				t.Errorf("result %d is %s, by words %s", i, both[i].ID, words[i].ID)
			}
		}
	})
}

func TestEmbeddingBuffer(t *testing.T) {
	t.Parallel()
	t.Run("RAG-1 documents are embedded in the background, redacted, and found", func(t *testing.T) {
		t.Parallel()
		s, e := inmemory.New(), &axes{vectors: map[string][]float32{"[x]": {1, 0, 0}}}
		refs := say(t, s, "ada", "s", "secret", "")
		b := rag.NewEmbeddingBuffer(rag.BufferConfig{Redact: func(text string) string { return strings.ReplaceAll(text, "secret", "[x]") }}, e, s)
		if err := b.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.Add(rag.EmbeddingRequest{ID: "1", App: "app", User: "ada", Documents: []rag.Text{{Ref: refs[0], Text: "secret"}, {Ref: refs[1]}}})
		if err := b.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		near, err := s.NearestVectors(t.Context(), backends.VectorQuery{App: "app", User: "ada", Model: "axes", Values: []float32{1, 0, 0}})
		if err != nil || len(near) != 1 || near[0].Ref != refs[0] || near[0].Score < 0.99 || !slices.Equal(e.asked, []string{"[x]"}) {
			t.Errorf("near %v, asked %q, %v", near, e.asked, err)
		}
	})
	t.Run("DRP-1 DRP-2 a full queue drops with a warning that carries the request id", func(t *testing.T) {
		t.Parallel()
		var log bytes.Buffer
		b := rag.NewEmbeddingBuffer(rag.BufferConfig{Config: queue.Config{Size: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))}}, &axes{}, inmemory.New())
		b.Add(rag.EmbeddingRequest{ID: "kept"})
		if b.Add(rag.EmbeddingRequest{ID: "lost"}) || b.DroppedCount() != 1 || !strings.Contains(log.String(), "request_id=lost") || !strings.Contains(log.String(), "queue=embedding") {
			t.Errorf("%d dropped, logged %s", b.DroppedCount(), log.String())
		}
		if err := b.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestProviders(t *testing.T) {
	t.Parallel()
	serve := func(t *testing.T, answer string) (*httptest.Server, *map[string]any) {
		asked := new(map[string]any)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(asked); err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(answer))
		}))
		t.Cleanup(srv.Close)
		return srv, asked
	}
	t.Run("RAG-3 OpenAI's protocol gives vectors in the order of the texts", func(t *testing.T) {
		t.Parallel()
		srv, asked := serve(t, `{"data":[{"index":1,"embedding":[0,1]},{"index":0,"embedding":[1,0]}]}`)
		e := rag.OpenAI{Client: openai.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("k"), option.WithHTTPClient(srv.Client())), Name: "small", Dimensions: 2}
		got, err := e.Embed(t.Context(), rag.Query, []string{"a", "b"})
		if err != nil || fmt.Sprint(got) != "[[1 0] [0 1]]" || e.Model() != "openai/small/2" {
			t.Errorf("got %v, %v", got, err)
		}
		if (*asked)["model"] != "small" || (*asked)["dimensions"] != 2.0 || fmt.Sprint((*asked)["input"]) != "[a b]" {
			t.Errorf("asked %v", *asked)
		}
		if _, err := e.Embed(t.Context(), rag.Query, []string{"a"}); err == nil {
			t.Error("a vector too many is no error")
		}
		if _, err := e.Embed(t.Context(), rag.Query, []string{"a", "b", "c"}); err == nil {
			t.Error("a vector too few is no error")
		}
	})
	t.Run("RAG-3 Gemini is told what the text is for", func(t *testing.T) {
		t.Parallel()
		srv, asked := serve(t, `{"embeddings":[{"values":[1,0]}]}`)
		client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
			APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPClient: srv.Client(), HTTPOptions: genai.HTTPOptions{BaseURL: srv.URL},
		})
		if err != nil {
			t.Fatal(err)
		}
		e := rag.Gemini{Client: client, Dimensions: 2}
		for task, want := range map[rag.Task]string{rag.Document: "RETRIEVAL_DOCUMENT", rag.Query: "RETRIEVAL_QUERY"} {
			got, err := e.Embed(t.Context(), task, []string{"a"})
			if err != nil || fmt.Sprint(got) != "[[1 0]]" {
				t.Errorf("got %v, %v", got, err)
			}
			if text := fmt.Sprint(*asked); !strings.Contains(text, want) {
				t.Errorf("asked %s", text)
			}
		}
	})
}

func Example() {
	ctx := context.Background()
	store := inmemory.New()
	buffer := rag.NewEmbeddingBuffer(rag.BufferConfig{}, rag.Local{}, store)
	if err := buffer.Start(ctx); err != nil {
		fmt.Println(err)
	}
	e, err := store.SaveEntry(ctx, "app", "ada", backends.Entry{Kind: backends.KindSkill, Key: "deploy", Text: "How to deploy the billing service."})
	if err != nil {
		fmt.Println(err)
	}
	buffer.Add(rag.EmbeddingRequest{ID: "1", App: "app", User: "ada", Documents: []rag.Text{{
		Ref: backends.Ref{Kind: e.Kind, ID: e.Key}, Text: e.SearchText(),
	}}})
	if err := buffer.Stop(ctx); err != nil {
		fmt.Println(err)
	}
	found, err := rag.Hybrid{Words: store, Vectors: store, Embedder: rag.Local{}}.Search(ctx, backends.SearchQuery{
		App: "app", User: "ada", Kinds: []backends.Kind{backends.KindSkill}, Text: "biling deployement",
	})
	fmt.Println(len(found), found[0].ID, err)
	// Output: 1 deploy <nil>
}
