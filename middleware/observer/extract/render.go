package extract

import "strings"

func (s *selector) render() string {
	sentences := make([][]string, len(s.groups))
	items := make([]list, len(s.groups))
	for _, u := range s.units {
		switch {
		case !u.taken, u.item && s.allTold(u.facts):
		case u.item:
			items[u.group].add(u)
		default:
			sentences[u.group] = append(sentences[u.group], u.text)
		}
	}
	var b strings.Builder
	for g := range s.groups {
		if len(sentences[g])+len(items[g].texts) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("- ")
		if label := s.groups[g].label; label != "" {
			b.WriteString(label + ": ")
		}
		for i, text := range sentences[g] {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(text)
			if !endsSentence(text) {
				b.WriteByte('.')
			}
		}
		if len(items[g].texts) > 0 {
			if len(sentences[g]) > 0 {
				b.WriteByte(' ')
			}
			b.WriteString("[" + strings.Join(items[g].texts, "; ") + "]")
		}
	}
	return b.String()
}

func (s *selector) allTold(facts []int) bool {
	for _, f := range facts {
		if !s.told[f] {
			return false
		}
	}
	return true
}

// list joins the items of one group, those with one name at the place of the first.
type list struct {
	texts []string
	at    map[*name]int
}

func (l *list) add(u *unit) {
	if u.name == nil {
		l.texts = append(l.texts, u.text)
		return
	}
	if i, ok := l.at[u.name]; ok {
		l.texts[i] += ", " + u.text
		return
	}
	if l.at == nil {
		l.at = make(map[*name]int)
	}
	l.at[u.name] = len(l.texts)
	l.texts = append(l.texts, u.name.text+" "+u.text)
}
