package fulltext

import "context"

// Memory is an area in memory: the reference for [Blocks]. The zero value is empty and ready. It is not safe for
// concurrent use while something is written.
type Memory struct {
	stats  Stats
	blocks map[string]map[uint32][]byte
}

// Stats implements [Blocks].
func (m *Memory) Stats(context.Context) (Stats, error) { return m.stats, nil }

// SetStats implements [Blocks].
func (m *Memory) SetStats(_ context.Context, s Stats) error {
	if s.Docs <= 0 {
		s = Stats{}
	}
	m.stats = s
	return nil
}

// Read implements [Blocks].
func (m *Memory) Read(_ context.Context, terms []string, open bool) ([]Block, error) {
	var out []Block
	for _, t := range terms {
		for key, data := range m.blocks[t] {
			if key == OpenBlock || !open {
				out = append(out, Block{Term: t, Key: key, Data: data})
			}
		}
	}
	return out, nil
}

// ReadAll implements [Blocks].
func (m *Memory) ReadAll(_ context.Context, f func(Block) error) error {
	for t, blocks := range m.blocks {
		for key, data := range blocks {
			if err := f(Block{Term: t, Key: key, Data: data}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Write implements [Blocks].
func (m *Memory) Write(_ context.Context, blocks []Block) error {
	if m.blocks == nil {
		m.blocks = map[string]map[uint32][]byte{}
	}
	for _, b := range blocks {
		of := m.blocks[b.Term]
		switch {
		case len(b.Data) > 0 && of == nil:
			m.blocks[b.Term] = map[uint32][]byte{b.Key: b.Data}
		case len(b.Data) > 0:
			of[b.Key] = b.Data
		default:
			if delete(of, b.Key); len(of) == 0 {
				delete(m.blocks, b.Term)
			}
		}
	}
	return nil
}
