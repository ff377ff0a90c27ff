package extract

import (
	"strings"
	"time"
)

const maxLabelBytes = 80

// Parse takes a note apart into lines to condense again: what [Note] wrote into what it was made of, and any other text
// into one line a line of text, with the given label where the line begins with no date of its own. Headings are left
// out.
func Parse(note, label string) []Line {
	var lines []Line
	for text := range strings.Lines(note) {
		text = strings.TrimSpace(text)
		text = strings.TrimPrefix(strings.TrimPrefix(text, "- "), "* ")
		if text == "" || strings.HasPrefix(text, "# ") || strings.HasPrefix(text, "##") {
			continue
		}
		line := Line{Label: label, Text: text}
		if own, rest, ok := strings.Cut(text, ": "); ok && len(own) <= maxLabelBytes && beginsWithDate(own) {
			line.Label, line.Text, line.Asks = own, rest, strings.HasSuffix(own, " user")
		}
		if inner, ok := strings.CutSuffix(line.Text, "]"); ok {
			if at := strings.LastIndexByte(inner, '['); at >= 0 {
				line.Text, line.Items = strings.TrimSpace(inner[:at]), parseItems(inner[at+1:])
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// parseItems splits "value; name value, value".
func parseItems(text string) []Item {
	var items []Item
	for part := range strings.SplitSeq(text, "; ") {
		name, values, ok := strings.Cut(part, " ")
		if !ok || !isName(name) {
			items = append(items, Item{Value: part})
			continue
		}
		for v := range strings.SplitSeq(values, ", ") {
			items = append(items, Item{Name: name, Value: v})
		}
	}
	return items
}

// isName reports the name of a field: lower-case ASCII letters and underscores.
func isName(s string) bool { return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == "" }

func beginsWithDate(s string) bool {
	return len(s) >= len(time.DateOnly) && isDate(s[:len(time.DateOnly)])
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}
