package fulltext

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// Parameters of BM25 as they are customary for short texts, and what a match in a neighbour counts: half for the
// document before or after, a quarter for the next but one. A conversation's answers stand beside their questions.
const (
	k1         = 0.9
	b          = 0.4
	neighbours = 2
	fade       = 0.5
)

// Query asks for the best documents of an area.
type Query struct {
	Terms []string // from [AnalyzeQuery]
	Group string   // only documents of this group; "" for all
	Limit int
}

// Result is a document and its score.
type Result struct {
	Doc   uint32
	Score float64
}

// Search returns the documents that match any of the terms, best first, the newest of equals first. A document's score
// is the sum over the terms of the best match among it and its neighbours.
func Search(ctx context.Context, bl Blocks, q Query) ([]Result, error) {
	if len(q.Terms) == 0 || q.Limit <= 0 {
		return nil, nil
	}
	stats, err := bl.Stats(ctx)
	if err != nil || stats.Docs == 0 {
		return nil, err
	}
	asked := append(slices.Clone(q.Terms), runStarts)
	if q.Group != "" {
		asked = append(asked, groupPrefix+q.Group)
	}
	blocks, err := bl.Read(ctx, asked, false)
	if err != nil {
		return nil, err
	}
	lists, err := join(blocks)
	if err != nil {
		return nil, err
	}
	if q.Group != "" && len(lists[groupPrefix+q.Group]) == 0 {
		return nil, nil
	}
	sc := newScorer(stats, lists)
	for _, t := range q.Terms {
		sc.add(lists[t])
	}
	if q.Group != "" {
		sc.keep(lists[groupPrefix+q.Group])
	}
	return sc.top(q.Limit), nil
}

// join decodes the blocks of every term in the order of documents.
func join(blocks []Block) (map[string][]Posting, error) {
	slices.SortFunc(blocks, func(x, y Block) int {
		return cmp.Or(cmp.Compare(x.Term, y.Term), cmp.Compare(x.Key, y.Key))
	})
	lists := map[string][]Posting{}
	for start := 0; start < len(blocks); {
		end, size := start, 0
		for end < len(blocks) && blocks[end].Term == blocks[start].Term {
			size += len(blocks[end].Data)
			end++
		}
		ps := make([]Posting, 0, size/3)
		for _, block := range blocks[start:end] {
			var err error
			if ps, err = unpack(ps, block.Data); err != nil {
				return nil, err
			}
		}
		if len(ps) > 0 {
			lists[blocks[start].Term] = ps
		}
		start = end
	}
	return lists, nil
}

// scorer holds one number for each document of the area: dense, since a conversation's terms are.
type scorer struct {
	stats  Stats
	avg    float64
	starts []bool // the document does not continue the one before it
	total  []float32
	term   []float32 // scratch of one term
}

func newScorer(stats Stats, lists map[string][]Posting) *scorer {
	n := int(stats.Next)
	for _, ps := range lists { // where statistics and blocks are not one snapshot, these may be newer
		n = max(n, int(ps[len(ps)-1].Doc)+1)
	}
	s := &scorer{
		stats: stats, avg: max(1, float64(stats.Length)/float64(stats.Docs)),
		starts: make([]bool, n), total: make([]float32, n), term: make([]float32, n),
	}
	for _, p := range lists[runStarts] {
		s.starts[p.Doc] = true
	}
	return s
}

// add scores one term's postings.
func (s *scorer) add(ps []Posting) {
	if len(ps) == 0 {
		return
	}
	df := float64(len(ps))
	idf := math.Log(1 + (float64(s.stats.Docs)-df+0.5)/(df+0.5))
	for _, p := range ps {
		count := float64(p.Count)
		score := float32(idf * count * (k1 + 1) / (count + k1*(1-b+b*float64(p.Length)/s.avg)))
		s.term[p.Doc] = max(s.term[p.Doc], score)
		faded := score
		for d := int(p.Doc); d > max(0, int(p.Doc)-neighbours) && !s.starts[d]; d-- {
			faded *= fade
			s.term[d-1] = max(s.term[d-1], faded)
		}
		faded = score
		for d := int(p.Doc) + 1; d <= min(len(s.term)-1, int(p.Doc)+neighbours) && !s.starts[d]; d++ {
			faded *= fade
			s.term[d] = max(s.term[d], faded)
		}
	}
	from := max(0, int(ps[0].Doc)-neighbours)
	to := min(len(s.term), int(ps[len(ps)-1].Doc)+neighbours+1)
	for d := from; d < to; d++ {
		s.total[d] += s.term[d]
		s.term[d] = 0
	}
}

// keep drops the scores of all documents but those of a group.
func (s *scorer) keep(group []Posting) {
	for _, p := range group {
		s.term[p.Doc] = s.total[p.Doc]
	}
	s.total, s.term = s.term, nil
}

// top selects the best documents by a heap of at most limit results whose root is the worst.
func (s *scorer) top(limit int) []Result {
	var best []Result
	worse := func(x, y Result) bool { return x.Score < y.Score || x.Score == y.Score && x.Doc < y.Doc }
	sink := func(i int) {
		for {
			low := i
			for c := 2*i + 1; c <= 2*i+2 && c < len(best); c++ {
				if worse(best[c], best[low]) {
					low = c
				}
			}
			if low == i {
				return
			}
			best[i], best[low] = best[low], best[i]
			i = low
		}
	}
	for d, score := range s.total {
		if score <= 0 {
			continue
		}
		r := Result{Doc: uint32(d), Score: float64(score)}
		switch {
		case len(best) < limit:
			best = append(best, r)
			if len(best) == limit {
				for i := limit/2 - 1; i >= 0; i-- {
					sink(i)
				}
			}
		case worse(best[0], r):
			best[0] = r
			sink(0)
		}
	}
	slices.SortFunc(best, func(x, y Result) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(y.Doc, x.Doc))
	})
	return best
}
