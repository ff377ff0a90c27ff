package fulltext

import "strings"

// stopWords are English function words, read-only. "go" and "may" are not among
// them: a language and a month.
var stopWords = set(`
a about above after again against ain all also am an and any are aren as at be because been before being below between
both but by can cannot could couldn did didn do does doesn doing don down during each else ever few for from further
had hadn has hasn have haven having he her here hers herself him himself his how however i if in into is isn it its
itself just let me might mightn more most must mustn my myself needn no nor not now of off on once only or other ought our
ours ourselves out over own per please same shall shan she should shouldn so some such than that the their theirs them
themselves then there these they this those though through to too under until up upon us very via was wasn we were
weren what when where whether which while who whom whose why will with won would wouldn yes yet you your yours
yourself yourselves`)

// englishEndings stand behind an apostrophe: it's, don't, we'll, they're, I've, she'd, I'm.
var englishEndings = set(`s t ll re ve d m`)

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// IsStopWord reports whether a lower-case word is an English function word that neither the index nor a query holds.
func IsStopWord(word string) bool { return stopWords[plainWord(word)] }
