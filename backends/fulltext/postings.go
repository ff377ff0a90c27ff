package fulltext

import (
	"encoding/binary"
	"errors"
)

// blockSize bounds the postings of one block. At about three bytes each a full block stays below the two kilobytes
// past which Postgres moves a value out of its row.
const blockSize = 512

// errCorrupt means that a block's bytes are not what this package wrote.
var errCorrupt = errors.New("fulltext: corrupt block")

// Posting says how often a term stands in a document, and how long that document is, in terms.
type Posting struct {
	Doc    uint32
	Count  uint32
	Length uint32
}

// pack encodes postings, ordered by document: the distance to the document before, the count and the length, each as
// a varint.
func pack(ps []Posting) []byte {
	out := make([]byte, 0, 3*len(ps)+2)
	last := uint32(0)
	for _, p := range ps {
		out = binary.AppendUvarint(out, uint64(p.Doc-last))
		out = binary.AppendUvarint(out, uint64(p.Count))
		out = binary.AppendUvarint(out, uint64(p.Length))
		last = p.Doc
	}
	return out
}

// unpack appends the postings of a block to ps.
func unpack(ps []Posting, data []byte) ([]Posting, error) {
	last := uint32(0)
	for i := 0; i < len(data); {
		var v [3]uint32
		for j := range v {
			if i < len(data) && data[i] < 0x80 { // nearly always
				v[j] = uint32(data[i])
				i++
				continue
			}
			n, size := binary.Uvarint(data[i:])
			if size <= 0 {
				return nil, errCorrupt
			}
			v[j] = uint32(n)
			i += size
		}
		last += v[0]
		ps = append(ps, Posting{Doc: last, Count: v[1], Length: v[2]})
	}
	return ps, nil
}
