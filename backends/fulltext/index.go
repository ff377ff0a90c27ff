package fulltext

import (
	"cmp"
	"context"
	"slices"
)

// Stats are an area's statistics and its counter.
type Stats struct {
	Next   uint32 // number of the next document; a number is not used again while the area has documents
	Docs   int64  // documents in the area
	Length int64  // sum of their lengths, in terms
	Tail   string // run of the last document added
}

// OpenBlock is the key of the block of a term that still grows. Full blocks have the number of their first document,
// so that sorting by key gives the order of documents.
const OpenBlock uint32 = 1<<32 - 1

// Block is a run of a term's postings, packed. Data is opaque and never changes once a block is full, unless a
// document is removed.
type Block struct {
	Term string
	Key  uint32
	Data []byte // empty: the block is to be deleted
}

// Blocks is what a backend offers for one area, within one transaction when it writes.
type Blocks interface {
	// Stats returns the area's statistics, zero for an area that was never written. In a writing transaction it locks
	// the area against other writers.
	Stats(ctx context.Context) (Stats, error)

	// SetStats stores them, or removes them when the area has no documents.
	SetStats(ctx context.Context, s Stats) error

	// Read returns the blocks of the terms, in any order; only their open blocks if open is set.
	Read(ctx context.Context, terms []string, open bool) ([]Block, error)

	// ReadAll calls f for every block of the area. f does not call other methods.
	ReadAll(ctx context.Context, f func(Block) error) error

	// Write stores blocks over those of the same term and key, and deletes those without data.
	Write(ctx context.Context, blocks []Block) error
}

// Terms that no text yields: the analyzer's terms hold letters and digits only.
const (
	runStarts   = "\x01r"  // documents that do not continue the one numbered before them
	groupPrefix = "\x01g:" // + group: the documents of the group
)

// Add indexes documents and returns the number of the first; the others follow without a gap.
func Add(ctx context.Context, b Blocks, docs []Document) (first uint32, err error) {
	s, err := b.Stats(ctx)
	if err != nil {
		return 0, err
	}
	first = s.Next
	added := map[string][]Posting{}
	for _, d := range docs {
		if s.Docs == 0 || d.Run == "" || d.Run != s.Tail {
			added[runStarts] = append(added[runStarts], Posting{Doc: s.Next})
		}
		if d.Group != "" {
			added[groupPrefix+d.Group] = append(added[groupPrefix+d.Group], Posting{Doc: s.Next})
		}
		for t, p := range d.postings(s.Next) {
			added[t] = append(added[t], p)
		}
		s.Next++
		s.Docs++
		s.Length += int64(len(d.Terms))
		s.Tail = d.Run
	}
	terms := make([]string, 0, len(added))
	for t := range added {
		terms = append(terms, t)
	}
	slices.Sort(terms) // one order for all writers
	open, err := b.Read(ctx, terms, true)
	if err != nil {
		return 0, err
	}
	tails := make(map[string][]byte, len(open))
	for _, o := range open {
		tails[o.Term] = o.Data
	}
	var blocks []Block
	for _, t := range terms {
		ps, err := unpack(nil, tails[t])
		if err != nil {
			return 0, err
		}
		blocks = append(blocks, split(t, append(ps, added[t]...))...)
	}
	if err := b.Write(ctx, blocks); err != nil {
		return 0, err
	}
	return first, b.SetStats(ctx, s)
}

// split packs a term's last postings into full blocks and the open one.
func split(term string, ps []Posting) []Block {
	var out []Block
	for len(ps) > blockSize {
		out = append(out, Block{Term: term, Key: ps[0].Doc, Data: pack(ps[:blockSize])})
		ps = ps[blockSize:]
	}
	return append(out, Block{Term: term, Key: OpenBlock, Data: pack(ps)})
}

// Remove takes documents out of the index; of a run it takes all. Given the documents as they were
// added it looks at their terms only, and at the whole area when as is nil.
func Remove(ctx context.Context, b Blocks, docs []uint32, as []Document) error {
	if len(docs) == 0 {
		return nil
	}
	s, err := b.Stats(ctx)
	if err != nil {
		return err
	}
	gone := make(map[uint32]bool, len(docs))
	for _, d := range docs {
		gone[d] = true
	}
	lengths := make(map[uint32]uint32, len(docs))
	var changed []Block
	visit := func(block Block) error {
		if block.Term == runStarts {
			return nil // the gap still parts its neighbours
		}
		ps, err := unpack(nil, block.Data)
		if err != nil {
			return err
		}
		kept := make([]Posting, 0, len(ps))
		for _, p := range ps {
			if gone[p.Doc] {
				lengths[p.Doc] = max(lengths[p.Doc], p.Length)
			} else {
				kept = append(kept, p)
			}
		}
		if len(kept) < len(ps) {
			changed = append(changed, Block{Term: block.Term, Key: block.Key, Data: pack(kept)})
		}
		return nil
	}
	if as == nil {
		err = b.ReadAll(ctx, visit)
	} else {
		err = visitTerms(ctx, b, as, visit)
	}
	if err != nil {
		return err
	}
	if s.Docs -= int64(len(gone)); s.Docs <= 0 {
		starts, err := b.Read(ctx, []string{runStarts}, false)
		if err != nil {
			return err
		}
		for _, block := range starts {
			changed = append(changed, Block{Term: runStarts, Key: block.Key})
		}
	}
	slices.SortFunc(changed, func(x, y Block) int {
		return cmp.Or(cmp.Compare(x.Term, y.Term), cmp.Compare(x.Key, y.Key))
	})
	if err := b.Write(ctx, changed); err != nil {
		return err
	}
	for _, l := range lengths {
		s.Length -= int64(l)
	}
	s.Tail = "" // what is added next has no neighbour before it
	return b.SetStats(ctx, s)
}

func visitTerms(ctx context.Context, b Blocks, docs []Document, visit func(Block) error) error {
	var terms []string
	for _, d := range docs {
		terms = append(append(append(terms, groupPrefix+d.Group), d.Terms...), d.Extra...)
	}
	slices.Sort(terms)
	blocks, err := b.Read(ctx, slices.Compact(terms), false)
	if err != nil {
		return err
	}
	for _, block := range blocks {
		if err := visit(block); err != nil {
			return err
		}
	}
	return nil
}
