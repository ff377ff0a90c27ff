package fulltext

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/adkmemory/adkmemory/backends"
)

// naive is BM25 over a list of documents, without any index: what [Search] must agree with.
func naive(docs []Document, q Query) []Result {
	df := map[string]float64{}
	total := 0.0
	for _, d := range docs {
		total += float64(len(d.Terms))
		for t := range d.postings(0) {
			df[t]++
		}
	}
	own := func(i int, t string) float64 {
		p := docs[i].postings(0)[t]
		if p.Count == 0 {
			return 0
		}
		idf := math.Log(1 + (float64(len(docs))-df[t]+0.5)/(df[t]+0.5))
		avg := max(1, total/float64(len(docs)))
		return idf * float64(p.Count) * 1.9 / (float64(p.Count) + 0.9*(0.6+0.4*float64(p.Length)/avg))
	}
	sameRun := func(i, j int) bool {
		for k := min(i, j); k <= max(i, j); k++ {
			if docs[k].Run == "" || docs[k].Run != docs[i].Run {
				return i == j
			}
		}
		return true
	}
	var out []Result
	for i := range docs {
		sum := float32(0)
		for _, t := range q.Terms {
			best := float32(0)
			for j := max(0, i-2); j <= min(len(docs)-1, i+2); j++ {
				if sameRun(i, j) {
					best = max(best, float32(own(j, t))*[]float32{1, .5, .25}[max(i-j, j-i)])
				}
			}
			sum += best
		}
		if sum > 0 && (q.Group == "" || q.Group == docs[i].Group) {
			out = append(out, Result{Doc: uint32(i), Score: float64(sum)})
		}
	}
	slices.SortFunc(out, func(a, b Result) int {
		if a.Score != b.Score {
			return int(math.Copysign(1, b.Score-a.Score))
		}
		return int(b.Doc) - int(a.Doc)
	})
	return out[:min(q.Limit, len(out))]
}

func randomDocs(r *rand.Rand, n int) []Document {
	docs := make([]Document, n)
	for i := range docs {
		for range r.IntN(12) {
			docs[i].Terms = append(docs[i].Terms, fmt.Sprintf("t%d", int(math.Abs(r.NormFloat64()*6))))
		}
		if r.IntN(3) == 0 {
			docs[i].Extra = []string{"extra"}
		}
		session := fmt.Sprintf("s%d", r.IntN(2)+i/40)
		docs[i].Group = session
		if r.IntN(10) > 0 {
			docs[i].Run = session
		}
	}
	return docs
}

func TestSearchAgreesWithTheDefinition(t *testing.T) {
	t.Parallel()
	t.Run("RET-8 ranks are those of BM25 with neighbours over the documents themselves", func(t *testing.T) {
		t.Parallel()
		ctx := context.Background()
		for seed := range uint64(40) {
			r := rand.New(rand.NewPCG(seed, 1))
			docs := randomDocs(r, 1+r.IntN(1500))
			var index Memory
			for rest := docs; len(rest) > 0; {
				n := min(len(rest), 1+r.IntN(60))
				if _, err := Add(ctx, &index, rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			for range 5 {
				q := Query{Terms: []string{"t0", "t3", fmt.Sprintf("t%d", 4+r.IntN(20)), "extra"}[:1+r.IntN(4)], Limit: 1 + r.IntN(50)}
				if r.IntN(2) == 0 {
					q.Group = fmt.Sprintf("s%d", r.IntN(4))
				}
				got, err := Search(ctx, &index, q)
				if err != nil {
					t.Fatal(err)
				}
				if want := naive(docs, q); !close(got, want) {
					t.Fatalf("seed %d, %+v:\ngot  %v\nwant %v", seed, q, got, want)
				}
			}
		}
	})
}

func close(a, b []Result) bool {
	return slices.EqualFunc(a, b, func(x, y Result) bool { return x.Doc == y.Doc && math.Abs(x.Score-y.Score) < 1e-4 })
}

func TestRemove(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, scan := range []bool{true, false} {
		t.Run(fmt.Sprintf("STO-3 removed documents leave no trace in the index (scan %v)", scan), func(t *testing.T) {
			t.Parallel()
			docs := randomDocs(rand.New(rand.NewPCG(9, 9)), 1200)
			for i := range docs {
				docs[i].Run = ""
				docs[i].Group = fmt.Sprint("s", i%3)
			}
			var index, rest Memory
			if _, err := Add(ctx, &index, docs); err != nil {
				t.Fatal(err)
			}
			var gone []uint32
			var as []Document
			for i, d := range docs {
				if d.Group == "s1" {
					gone, as = append(gone, uint32(i)), append(as, d)
					continue
				}
				if _, err := Add(ctx, &rest, []Document{d}); err != nil {
					t.Fatal(err)
				}
			}
			if scan {
				as = nil
			}
			if err := Remove(ctx, &index, gone, as); err != nil {
				t.Fatal(err)
			}
			if index.stats.Docs != rest.stats.Docs || index.stats.Length != rest.stats.Length {
				t.Errorf("statistics %+v, want those of %+v", index.stats, rest.stats)
			}
			if _, left := index.blocks[groupPrefix+"s1"]; left {
				t.Error("the group's list is still there")
			}
			got, _ := Search(ctx, &index, Query{Terms: []string{"t1", "t2"}, Limit: 30})
			want, _ := Search(ctx, &rest, Query{Terms: []string{"t1", "t2"}, Limit: 30})
			if len(got) != len(want) {
				t.Fatalf("%d results, want %d", len(got), len(want))
			}
			for i := range got {
				if docs[got[i].Doc].Group == "s1" || math.Abs(got[i].Score-want[i].Score) > 1e-4 {
					t.Errorf("result %d is %v, want a score of %v", i, got[i], want[i].Score)
				}
			}
		})
	}
	t.Run("STO-3 an area without documents is empty", func(t *testing.T) {
		t.Parallel()
		var index Memory
		if _, err := Add(ctx, &index, []Document{{Terms: []string{"x"}, Group: "g"}, {Extra: []string{"y"}}}); err != nil {
			t.Fatal(err)
		}
		if err := Remove(ctx, &index, []uint32{0, 1}, nil); err != nil {
			t.Fatal(err)
		}
		if len(index.blocks) > 0 || index.stats != (Stats{}) {
			t.Errorf("left: %v, %+v", index.blocks, index.stats)
		}
	})
	t.Run("STO-3 what is added after a removal has no neighbour before it", func(t *testing.T) {
		t.Parallel()
		var index Memory
		docs := []Document{{Terms: []string{"other"}, Run: "b"}, {Terms: []string{"x"}, Run: "a"}, {Terms: []string{"y"}, Run: "a"}}
		if _, err := Add(ctx, &index, docs); err != nil {
			t.Fatal(err)
		}
		if err := Remove(ctx, &index, []uint32{1, 2}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := Add(ctx, &index, []Document{{Terms: []string{"z"}, Run: "a"}}); err != nil {
			t.Fatal(err)
		}
		got, err := Search(ctx, &index, Query{Terms: []string{"other"}, Limit: 10})
		if err != nil || len(got) != 1 {
			t.Errorf("found %v, %v", got, err)
		}
	})
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	t.Run("RET-8 full blocks are sealed and stay small", func(t *testing.T) {
		t.Parallel()
		var index Memory
		for range 3 {
			docs := make([]Document, 500)
			for i := range docs {
				docs[i] = Document{Terms: []string{"common"}}
			}
			if _, err := Add(context.Background(), &index, docs); err != nil {
				t.Fatal(err)
			}
		}
		blocks := index.blocks["common"]
		if len(blocks) != 3 || len(blocks[0]) == 0 || len(blocks[512]) == 0 {
			t.Fatalf("%d blocks", len(blocks))
		}
		for key, data := range blocks {
			if len(data) > 1900 {
				t.Errorf("block %d has %d bytes", key, len(data))
			}
		}
	})
	t.Run("RET-8 a corrupt block is an error", func(t *testing.T) {
		t.Parallel()
		index := Memory{stats: Stats{Next: 1, Docs: 1, Length: 1}}
		_ = index.Write(context.Background(), []Block{{Term: "x", Key: OpenBlock, Data: []byte{1, 0xff}}})
		if _, err := Search(context.Background(), &index, Query{Terms: []string{"x"}, Limit: 1}); err == nil {
			t.Error("no error")
		}
	})
}

func FuzzUnpack(f *testing.F) {
	f.Add(pack([]Posting{{1, 2, 3}, {400, 1, 70_000}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		ps, err := unpack(nil, data)
		if err != nil {
			return
		}
		again, err := unpack(nil, pack(ps))
		if err != nil || !slices.Equal(ps, again) {
			t.Errorf("%v became %v, %v", ps, again, err)
		}
	})
}

func TestBest(t *testing.T) {
	t.Parallel()
	t.Run("RET-8 several kinds are merged by score", func(t *testing.T) {
		t.Parallel()
		found := func(kind backends.Kind, id string, score float64) backends.Found {
			return backends.Found{Ref: backends.Ref{Kind: kind, ID: id}, Score: score}
		}
		got := Best([]backends.Found{found("b", "1", 2), found("b", "2", 1), found("a", "3", 2)}, 2)
		if len(got) != 2 || got[0].ID != "3" || got[1].ID != "1" {
			t.Errorf("got %v", got)
		}
	})
}
