package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"

	"github.com/adkmemory/adkmemory/backends"
	"github.com/adkmemory/adkmemory/middleware"
	"github.com/adkmemory/adkmemory/middleware/token"
	"github.com/adkmemory/adkmemory/middleware/window"
)

// rawCall is a request as ADK built it, and what was stored and counted by then.
type rawCall struct {
	rep      *replica
	contents []*genai.Content
	texts    []string // of the contents, encoded
	observed map[string]bool
	active   []backends.Note
	stats    middleware.Stats
	src      window.Sources
	ev       session.Events
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(raw)
}

// before takes down a request on its way into memory. It holds the universe until after.
func (u *universe) before(rep *replica, req *model.LLMRequest) {
	u.turnstile <- struct{}{}
	raw := &rawCall{rep: rep, contents: slices.Clone(req.Contents), observed: make(map[string]bool), stats: rep.mem.Stats()}
	for _, c := range req.Contents {
		raw.texts = append(raw.texts, encode(c))
	}
	raw.active = u.activeNotes()
	for _, n := range raw.active {
		for _, m := range u.marksOf(n.Text) {
			raw.observed[m] = true
		}
	}
	u.raw = raw
}

// after checks the request on its way out of memory.
func (u *universe) after(name string, req *model.LLMRequest) {
	defer func() { <-u.turnstile }()
	u.calls.Add(1)
	raw, now := u.raw, u.raw.rep.mem.Stats()
	system := systemOf(req)
	covered := make(map[string]bool)
	for _, m := range u.marksOf(system) {
		covered[m] = true
	}
	sent := sentOf(raw.contents, req.Contents)
	if sent == nil {
		u.fail("%s: the contents sent are not contents of the request in order", name)
		return
	}
	leftOut := u.leftOut(append(raw.active, u.activeNotes()...), system)
	uncovered, excused := 0, 0
	for i, c := range raw.contents {
		if sent[i] {
			if encode(c) != raw.texts[i] {
				u.fail("%s: content %d was changed", name, i)
			}
			continue
		}
		if window.HasResponse(c) || window.HasCall(c) {
			for _, j := range []int{i - 1, i + 1} {
				if j >= 0 && j < len(sent) && sent[j] && pair(raw.contents, min(i, j)) {
					u.fail("%s: contents %d and %d were separated", name, i, j)
				}
			}
		}
		for _, mark := range markPattern.FindAllString(raw.texts[i], -1) {
			switch {
			case covered[mark]:
			case leftOut[mark]:
				excused++
			default:
				uncovered++
			}
		}
	}
	dropped, notes := now.DroppedHardLimit-raw.stats.DroppedHardLimit, now.NotesLeftOut-raw.stats.NotesLeftOut
	if uncovered > 0 && int64(uncovered) > dropped*4 || excused > 0 && notes == 0 && dropped == 0 { // a content has up to four marks
		u.fail("%s: %d messages are neither sent nor in a note of the prompt, and %d in notes that were left out; counted were %d and %d; %s",
			name, uncovered, excused, dropped, notes, u.describe(raw, sent, covered))
	}
	if first := slices.Index(sent, true); first >= 0 && !userText(raw.contents[first]) && slices.ContainsFunc(raw.contents[:first], userText) {
		u.fail("%s: what is sent begins with %s", name, raw.texts[first])
	}
	if now.LoadFailures == raw.stats.LoadFailures && now.Panics == raw.stats.Panics {
		u.checkBudget(name, raw, sent)
	}
}

// checkBudget makes sure that nothing that notes cover is sent past the budget, and nothing but pinned contents past the
// hard limit. The first content may be there for the others' sake.
func (u *universe) checkBudget(name string, raw *rawCall, sent []bool) {
	total := 0
	pinned := pins(raw)
	var loose, observed []int
	for i, c := range raw.contents {
		if !sent[i] {
			continue
		}
		total += token.Content(token.Estimator{}, c)
		if pinned[i] || len(loose) == 0 && i == slices.Index(sent, true) {
			continue
		}
		loose = append(loose, i)
		if !slices.ContainsFunc(markPattern.FindAllString(raw.texts[i], -1), func(m string) bool { return !raw.observed[m] }) && !u.partner(raw, i) {
			observed = append(observed, i)
		}
	}
	if total > u.cfg.MaxMessageTokenBudget && len(observed) > 0 {
		u.fail("%s: %d tokens are sent, although contents %v are observed", name, total, observed)
	}
	if total > u.cfg.HardMessageTokenLimit && len(loose) > 0 {
		d := ""
		for i := range raw.contents {
			if sent[i] && raw.src != nil {
				d += fmt.Sprintf("%d obs %v pin %v src %v tok %d %.60s\n", i, raw.observed[markPattern.FindString(raw.texts[i])], pinned[i], raw.src[i], token.Content(token.Estimator{}, raw.contents[i]), raw.texts[i])
			}
		}
		d += fmt.Sprintf("budget %d hard %d before %+v now %+v", u.cfg.MaxMessageTokenBudget, u.cfg.HardMessageTokenLimit, raw.stats, raw.rep.mem.Stats())
		u.fail("%s", d)
		u.fail("%s: %d tokens are sent past the hard limit, although contents %v are not pinned", name, total, loose)
	}
}

// partner reports whether the other half of the content's pair is not observed.
func (u *universe) partner(raw *rawCall, i int) bool {
	for _, j := range []int{i - 1, i + 1} {
		if j >= 0 && j < len(raw.texts) && pair(raw.contents, min(i, j)) &&
			slices.ContainsFunc(markPattern.FindAllString(raw.texts[j], -1), func(m string) bool { return !raw.observed[m] }) {
			return true
		}
	}
	return false
}

// pins marks what stays however little room there is.
func pins(raw *rawCall) []bool {
	pinned := make([]bool, len(raw.contents))
	current, known := false, false
	for i := len(pinned) - 1; i >= 0; i-- {
		c := raw.contents[i]
		text := userText(c) && !strings.Contains(raw.texts[i], "For context:") && !strings.Contains(raw.texts[i], "Continue processing")
		marked := markPattern.MatchString(raw.texts[i])
		switch {
		case !marked, !known, i == 0 && text:
			pinned[i] = true
		case text && !current:
			pinned[i] = true
		case window.HasCall(c) && !pair(raw.contents, i):
			pinned[i] = true // no answer yet
		}
		current = current || text
		known = known || marked || window.HasResponse(c)
	}
	for i := range pinned[:len(pinned)-1] {
		if pair(raw.contents, i) {
			calls, responses := countParts(raw.contents[i]), countParts(raw.contents[i+1])
			both := pinned[i] || pinned[i+1] || calls > responses
			pinned[i], pinned[i+1] = both, both
		}
	}
	return pinned
}

func countParts(c *genai.Content) int {
	n := 0
	for _, p := range c.Parts {
		if p.FunctionCall != nil || p.FunctionResponse != nil {
			n++
		}
	}
	return n
}

func userText(c *genai.Content) bool {
	return c.Role == genai.RoleUser && !window.HasResponse(c)
}

// pair reports whether content i is a call and the next one its response.
func pair(contents []*genai.Content, i int) bool {
	return i+1 < len(contents) && window.HasCall(contents[i]) && window.HasResponse(contents[i+1])
}

// sentOf tells which of the request's contents are sent, nil when something else is.
func sentOf(all, out []*genai.Content) []bool {
	sent := make([]bool, len(all))
	i := 0
	for _, c := range out {
		for i < len(all) && all[i] != c {
			i++
		}
		if i == len(all) {
			return nil
		}
		sent[i] = true
		i++
	}
	return sent
}

func (u *universe) activeNotes() []backends.Note {
	snap, err := u.clean.Load(context.Background(), u.key, backends.Stamp{})
	if err != nil || snap == nil {
		return nil
	}
	var notes []backends.Note
	for _, o := range snap.Observations {
		notes = append(notes, o.Note)
	}
	for _, r := range snap.Reflections {
		notes = append(notes, r.Note)
	}
	return notes
}

// leftOut collects the marks of the notes that the prompt does not show.
func (u *universe) leftOut(notes []backends.Note, system string) map[string]bool {
	marks := make(map[string]bool)
	for _, n := range notes {
		if !strings.Contains(system, notePattern.FindString(n.Text)) {
			for _, m := range u.marksOf(n.Text) {
				marks[m] = true
			}
		}
	}
	return marks
}

// describe lists what is neither sent nor covered, and the notes that would cover it.
func (u *universe) describe(raw *rawCall, sent []bool, covered map[string]bool) string {
	var b strings.Builder
	for i, text := range raw.texts {
		for _, mark := range markPattern.FindAllString(text, -1) {
			if sent[i] || covered[mark] {
				continue
			}
			fmt.Fprintf(&b, "content %d of %d: %.80s", i, len(sent), text)
			for _, n := range append(raw.active, u.activeNotes()...) {
				if slices.Contains(u.marksOf(n.Text), mark) {
					fmt.Fprintf(&b, "; %s of %+v, %s to %s", notePattern.FindString(n.Text), n.Stream, n.Range.StartID, n.Range.EndID)
				}
			}
			b.WriteByte('\n')
		}
	}
	return fmt.Sprintf("layout %s\n%.4000s\nfirst sent %d", u.cfg.Layout, b.String(), slices.Index(sent, true))
}

// archive lists the ids of the archived messages by stream, as of one snapshot.
func (u *universe) archive() (*backends.Snapshot, map[backends.Stream][]string) {
	ctx := context.Background()
	for {
		archived := make(map[backends.Stream][]string)
		snap, err := u.clean.Load(ctx, u.key, backends.Stamp{})
		if err != nil {
			u.fatalf("%v", err)
		}
		for after, more := int64(0), true; more; {
			page, err := u.clean.ListMessages(ctx, u.key, backends.MessageQuery{AfterSeq: after, Limit: backends.MaxListItems})
			if err != nil {
				u.fatalf("%v", err)
			}
			for _, m := range page {
				archived[m.Stream] = append(archived[m.Stream], m.ID)
				after = m.Seq
			}
			more = len(page) == backends.MaxListItems
		}
		if newer, err := u.clean.Load(ctx, u.key, snap.Stamp); err == nil && newer == nil || snap.Stamp == (backends.Stamp{}) {
			return snap, archived
		}
	}
}

// checkArchive makes sure that each stream's messages up to its cursor were observed exactly once, in order.
func (u *universe) checkArchive() {
	ctx := context.Background()
	snap, archived := u.archive()
	got, err := u.sessions.Get(ctx, &session.GetRequest{AppName: u.key.App, UserID: u.key.User, SessionID: u.key.Session})
	if err != nil {
		return // nobody spoke yet
	}
	want := make(map[backends.Stream][]string)
	done := make(map[backends.Stream]bool)
	for e := range got.Session.Events().All() {
		stream := window.StreamOf(e)
		if c := snap.Cursors[stream]; !window.IsMessage(e) || done[stream] || c.IsZero() {
			continue
		}
		want[stream] = append(want[stream], e.ID)
		done[stream] = e.ID == snap.Cursors[stream].MessageID
	}
	for stream, ids := range want {
		if !slices.Equal(ids, archived[stream]) {
			i := 0
			for i < len(ids) && i < len(archived[stream]) && ids[i] == archived[stream][i] {
				i++
			}
			u.fatalf("stream %+v: of %d messages up to the cursor %d were observed; they differ from message %d on", stream, len(ids), len(archived[stream]), i)
		}
		delete(archived, stream)
	}
	if len(archived) > 0 {
		u.fatalf("observed in streams without a cursor: %v", archived)
	}
}

// checkNotes makes sure that a reflection's range spans those of the notes it condensed.
func (u *universe) checkNotes() {
	var all []backends.StoredNote
	ranges := make(map[string]backends.Range)
	for after := int64(0); ; {
		page, err := u.clean.ListNotes(context.Background(), u.key, backends.NoteQuery{AfterSeq: after, Limit: backends.MaxListItems})
		if err != nil {
			u.fatalf("%v", err)
		}
		for _, n := range page {
			ranges[n.ID], after = n.Range, n.Seq
		}
		if all = append(all, page...); len(page) < backends.MaxListItems {
			break
		}
	}
	for _, n := range all {
		for _, id := range n.Sources {
			if r := ranges[id]; r.Start < n.Range.Start || r.End > n.Range.End {
				u.fatalf("a reflection of generation %d over %d to %d condensed a note over %d to %d", n.Generation, n.Range.Start, n.Range.End, r.Start, r.End)
			}
		}
	}
}
