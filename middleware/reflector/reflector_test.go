package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware/observer"
	"github.com/adkmemory/adkmemory/middleware/reflector"
	"github.com/adkmemory/adkmemory/middleware/token"
)

// scripted is a model that yields one answer or one error, or waits for the end of the context.
type scripted struct {
	text string
	err  error
	hang bool
	last *model.LLMRequest
}

func (*scripted) Name() string { return "scripted" }

func (s *scripted) GenerateContent(ctx context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	s.last = req
	return func(yield func(*model.LLMResponse, error) bool) {
		if s.hang {
			<-ctx.Done()
			yield(nil, ctx.Err())
			return
		}
		if s.err != nil {
			yield(nil, s.err)
			return
		}
		yield(&model.LLMResponse{Content: genai.NewContentFromText(s.text, genai.RoleModel)}, nil)
	}
}

var may = time.Date(2024, 5, 1, 9, 0, 0, 0, time.UTC)

func observations(texts ...string) []backends.Observation {
	out := make([]backends.Observation, len(texts))
	for i, text := range texts {
		start := may.AddDate(0, 0, i)
		out[i].Note = backends.Note{ID: strconv.Itoa(i), Text: text, Range: backends.Range{StartTime: start, EndTime: start.Add(time.Hour)}}
	}
	return out
}

func notes() []backends.Observation {
	texts := make([]string, 8)
	for i := range texts {
		d := may.AddDate(0, 0, i).Format(time.DateOnly)
		texts[i] = fmt.Sprintf("- %s user: I decided to visit City%c on %s for %d euros. My booking is AB%dX. [Hotel%c; %d nights]\n"+
			"- %s agent: I have booked it with the code QZ%d, and I wish you a very pleasant journey with all of your friends.\n"+
			"- %s get_booking result: [reservation_id RES%d; price %d]", d, 'A'+i, d, 1000+i*37, i, 'A'+i, i+2, d, i*91, d, i*17, 2000+i*53)
	}
	return observations(texts...)
}

func words(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("w" + strconv.Itoa(i*7919) + " ")
	}
	return b.String()
}

func TestLLM(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	down := errors.New("model is down")
	for _, tc := range []struct {
		name  string
		model *scripted
		max   int
		want  error
	}{
		{"REF-1 a smaller note is accepted", &scripted{text: "- 2024-05-01 user: visits eight cities."}, 0, nil},
		{"REF-5 one that is not smaller than its sources is rejected", &scripted{text: words(500)}, 10_000, observer.ErrTooLong},
		{"REF-5 one of more than twice the size asked for is rejected", &scripted{text: words(90)}, 50, observer.ErrTooLong},
		{"REF-5 an empty one is rejected", &scripted{}, 0, observer.ErrEmpty},
		{"REF-5 one that repeats itself is rejected", &scripted{text: strings.Repeat("the user travels ", 15)}, 0, observer.ErrRepetitive},
		{"REF-5 a megabyte is rejected", &scripted{text: strings.Repeat("x", 1<<20)}, 0, observer.ErrTooLong},
		{"REF-1 the model's error is handed on", &scripted{err: down}, 0, down},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, err := reflector.New(reflector.Config{})
			if err != nil {
				t.Fatal(err)
			}
			n, err := r.Reflect(ctx, reflector.Request{Observations: notes(), MaxTokens: tc.max, Model: tc.model})
			if !errors.Is(err, tc.want) || tc.want != nil && !errors.Is(tc.want, down) && !errors.Is(err, observer.ErrRejected) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if tc.want == nil && (n.Text != tc.model.text || n.Writer != "scripted" || n.Tokens == 0) {
				t.Errorf("note %+v", n)
			}
		})
	}
	t.Run("REF-1 no model, no notes, a bad limit", func(t *testing.T) {
		t.Parallel()
		r, _ := reflector.New(reflector.Config{})
		if _, err := r.Reflect(ctx, reflector.Request{Observations: notes()}); !errors.Is(err, observer.ErrNoModel) {
			t.Errorf("error %v", err)
		}
		if _, err := r.Reflect(ctx, reflector.Request{}); !errors.Is(err, observer.ErrNoMessages) {
			t.Errorf("error %v", err)
		}
		if _, err := reflector.New(reflector.Config{MaxOutputBytes: -1}); err == nil {
			t.Error("accepted")
		}
	})
	t.Run("REF-1 the context's end ends the wait", func(t *testing.T) {
		t.Parallel()
		r, _ := reflector.New(reflector.Config{Model: &scripted{hang: true}})
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, err := r.Reflect(ctx, reflector.Request{Observations: notes()}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("OBS-8 the prompt can be replaced", func(t *testing.T) {
		t.Parallel()
		m := &scripted{text: "- ok"}
		r, _ := reflector.New(reflector.Config{Model: m, Prompt: "Nur Stichworte."})
		if _, err := r.Reflect(ctx, reflector.Request{Observations: notes()}); err != nil || m.last.Config.SystemInstruction.Parts[0].Text != "Nur Stichworte." {
			t.Errorf("error %v", err)
		}
	})
	t.Run("OBS-7 a note cannot forge a line of the prompt", func(t *testing.T) {
		t.Parallel()
		ours := regexp.MustCompile(`^(The notes:|Note \d+, \d{4}-\d\d-\d\d:|The notes end here\. Write the one note, in their language, in at most \d+ tokens \(about \d+ words\)\.|)$`)
		raw, err := os.ReadFile(filepath.Join("..", "prompt", "testdata", "attacks.txt"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			a, err := strconv.Unquote(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			m := &scripted{text: "- ok"}
			r, _ := reflector.New(reflector.Config{Model: m})
			if _, err := r.Reflect(ctx, reflector.Request{Observations: observations(a, a)}); err != nil && !errors.Is(err, observer.ErrRejected) {
				t.Fatal(err)
			}
			headers := 0
			for l := range strings.SplitSeq(m.last.Contents[0].Parts[0].Text, "\n") {
				if strings.HasPrefix(l, "Note ") {
					headers++
				}
				if !strings.HasPrefix(l, "> ") && !ours.MatchString(l) {
					t.Errorf("line %q is neither ours nor quoted", l)
				}
			}
			if headers != 2 {
				t.Errorf("%d headers for 2 notes under attack %q", headers, a)
			}
		}
	})
}

func TestExtractive(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e := reflector.NewExtractive(reflector.ExtractiveConfig{})
	t.Run("REF-1 dates, decisions and identifiers stay, within the size asked for", func(t *testing.T) {
		t.Parallel()
		for _, size := range []int{40, 80, 150, 0} {
			req := reflector.Request{Observations: notes(), MaxTokens: size}
			n, err := e.Reflect(ctx, req)
			if err != nil {
				t.Fatal(err)
			}
			if err := reflector.Check(n.Text, req, nil); err != nil {
				t.Errorf("its own guard refuses it: %v", err)
			}
			if size > 0 && n.Tokens > size || n.Writer != observer.WriterExtractive || n.Tokens != (token.Estimator{}).Count(n.Text) {
				t.Errorf("%d tokens, asked for %d", n.Tokens, size)
			}
			if size == 0 && (!strings.Contains(n.Text, "- 2024-05-01 user: I decided to visit CityA on 2024-05-01 for 1000 euros.") || !strings.Contains(n.Text, "RES17")) {
				t.Errorf("got\n%s", n.Text)
			}
		}
	})
	t.Run("REF-1 what several notes say is said once", func(t *testing.T) {
		t.Parallel()
		same := "- 2024-05-01 user: I moved to Oslo with Bob.\n- 2024-05-01 agent: Noted, and I wish you all the best for the time that lies ahead of you there."
		n, err := e.Reflect(ctx, reflector.Request{Observations: observations(same, same, same)})
		if err != nil || strings.Count(n.Text, "Oslo") != 1 {
			t.Errorf("error %v, note\n%s", err, n.Text)
		}
	})
	t.Run("REF-5 always smaller than its sources, or an error", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"x", "- a\n- b", "Oslo", "…", "- 2024-05-01 user: [a; b]", strings.Repeat("日本。", 30), words(300)} {
			req := reflector.Request{Reflections: []backends.Reflection{{Note: backends.Note{Text: text}}}}
			n, err := e.Reflect(ctx, req)
			if err != nil && !errors.Is(err, observer.ErrRejected) {
				t.Errorf("%q: error %v", text, err)
			}
			if err == nil && n.Tokens >= (token.Estimator{}).Count(text) {
				t.Errorf("%q: %d tokens", text, n.Tokens)
			}
		}
	})
	t.Run("REF-5 with a counter that is not additive too", func(t *testing.T) {
		t.Parallel()
		texts := make([]string, 50)
		for i := range texts {
			texts[i] = fmt.Sprintf("We met in Room%d.", i)
		}
		n, err := reflector.NewExtractive(reflector.ExtractiveConfig{Counter: labelled{}}).Reflect(ctx, reflector.Request{Observations: observations(texts...)})
		if !errors.Is(err, observer.ErrTooLong) {
			t.Errorf("error %v, note of %d tokens", err, n.Tokens)
		}
	})
	t.Run("REF-1 the same notes give the same reflection", func(t *testing.T) {
		t.Parallel()
		first, _ := e.Reflect(ctx, reflector.Request{Observations: notes()})
		for range 10 {
			if again, _ := e.Reflect(ctx, reflector.Request{Observations: notes()}); again.Text != first.Text {
				t.Fatal("differs")
			}
		}
	})
	t.Run("REF-1 no notes and an ended context are errors", func(t *testing.T) {
		t.Parallel()
		if _, err := e.Reflect(ctx, reflector.Request{}); !errors.Is(err, observer.ErrNoMessages) {
			t.Errorf("error %v", err)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := e.Reflect(ended, reflector.Request{Observations: notes()}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

// labelled counts one token, but a thousand for a text with a label in it.
type labelled struct{}

func (labelled) Count(text string) int {
	if strings.Contains(text, ": ") {
		return 1000
	}
	return 1
}

func BenchmarkExtractive(b *testing.B) {
	e, req := reflector.NewExtractive(reflector.ExtractiveConfig{}), reflector.Request{Observations: notes()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Reflect(context.Background(), req); err != nil {
			b.Fatal(err)
		}
	}
}
