package inspect

import (
	"math"
	"strings"
	"time"

	"github.com/adkmemory/adkmemory/middleware"
)

const maxTurns = 200 // model calls in the chart and its table

// turnsData is what the last model calls were sent.
type turnsData struct {
	Calls         int
	Last          middleware.TurnRecord
	Sent, History int
	Ratio         string // sent of history
	Parts         []part
	Budgets       []budget
	SentWidth     string // of the bar that the whole history fills
	Section       text
	Chart         chart
	Table         []turnRow // newest first
}

// part is a section of the prompt in the bar.
type part struct {
	Name, Class string
	Tokens      int
	Share       string
	X, Width    string
}

// budget is an amount against its limit.
type budget struct {
	Name, Class string
	Tokens, Of  int
	Over        bool
	Width       string
}

type turnRow struct {
	Time          time.Time
	Agent         string
	Sent, History int
	Ratio         string
}

// newTurns makes the pictures of a session's records, nil without any.
func newTurns(records []middleware.TurnRecord, cfg middleware.Config) *turnsData {
	if len(records) == 0 {
		return nil
	}
	records = records[max(0, len(records)-maxTurns):]
	last := records[len(records)-1]
	whole := last.History + last.Instruction // as the request would have been without memory
	d := &turnsData{
		Calls: len(records), Last: last, Sent: last.Sent(), History: whole, Ratio: percent(last.Sent(), whole),
		Section: cut(last.Section, maxSection), Chart: newChart(records),
	}
	scale := pictureWidth / float64(max(1, d.Sent))
	x := 0.0
	for _, p := range []part{
		{Name: "Instruction", Class: "instruction", Tokens: last.Instruction},
		{Name: "Knowledge", Class: "knowledge", Tokens: last.Knowledge},
		{Name: "Reflections", Class: "reflection", Tokens: last.Reflections},
		{Name: "Observations", Class: "observation", Tokens: last.Observations},
		{Name: "Raw tool outputs", Class: "raw", Tokens: last.Raw},
		{Name: "Messages", Class: "message", Tokens: last.Messages},
	} {
		width := float64(p.Tokens) * scale
		p.X, p.Width, p.Share = units(x), units(max(0, width-blockGap)), percent(p.Tokens, d.Sent)
		d.Parts = append(d.Parts, p)
		x += width
	}
	d.SentWidth = newBudget("", "", d.Sent, whole).Width
	d.Budgets = []budget{
		newBudget("Conversation memory", "observation", last.Reflections+last.Observations, cfg.MemoryTokenBudget),
		newBudget("Messages and raw tool outputs", "message", last.Messages+last.Raw, cfg.MaxMessageTokenBudget),
	}
	for i := len(records) - 1; i >= 0; i-- {
		r := records[i]
		d.Table = append(d.Table, turnRow{r.Time, r.Agent, r.Sent(), r.History + r.Instruction, percent(r.Sent(), r.History+r.Instruction)})
	}
	return d
}

func newBudget(name, class string, tokens, of int) budget {
	filled := min(1, float64(tokens)/float64(max(1, of)))
	return budget{Name: name, Class: class, Tokens: tokens, Of: of, Over: tokens > of, Width: units(filled * pictureWidth)}
}

// chart is a line for what was sent and one for the whole history, call by call.
type chart struct {
	Height        int
	Top, Half     int    // tokens at the upper and the middle line
	Sent, History string // points
	Under         string // points of the area under Sent
	Single        bool   // one call makes no line
	SentY         string // of the last call
	HistoryY      string
	First, Last   time.Time
}

const chartHeight = 300

func newChart(records []middleware.TurnRecord) chart {
	most := 1
	for _, r := range records {
		most = max(most, r.Sent(), r.History+r.Instruction)
	}
	top := niceAbove(most)
	y := func(tokens int) string { return units(chartHeight * (1 - float64(tokens)/float64(top))) }
	var sent, history []string
	for i, r := range records {
		x := pictureWidth
		if len(records) > 1 {
			x = pictureWidth * float64(i) / float64(len(records)-1)
		}
		sent = append(sent, units(x)+","+y(r.Sent()))
		history = append(history, units(x)+","+y(r.History+r.Instruction))
	}
	last := records[len(records)-1]
	return chart{
		Height: chartHeight, Top: top, Half: top / 2, Single: len(records) == 1,
		Sent: strings.Join(sent, " "), History: strings.Join(history, " "),
		Under: "0.0,300.0 " + strings.Join(sent, " ") + " 1000.0,300.0",
		SentY: y(last.Sent()), HistoryY: y(last.History + last.Instruction),
		First: records[0].Time, Last: last.Time,
	}
}

// niceAbove is a round number that is not below n and little above it, at least 10.
func niceAbove(n int) int {
	power := 1
	for power*100 < n && power < math.MaxInt/1000 {
		power *= 10
	}
	for _, f := range []int{10, 12, 16, 20, 24, 30, 40, 50, 60, 80} {
		if f*power >= n {
			return f * power
		}
	}
	return 100 * power
}
