package token

import (
	"math/bits"
	"unicode/utf8"
)

// Weights of one character in quarters of a token: four narrow characters or two wide ones make a token.
const (
	narrowQuarters  = 1
	wideQuarters    = 2
	quartersInToken = 4
)

// Estimator counts about 4 characters a token, and 2 for Han, kana and Hangul (jamo, their punctuation and fullwidth
// forms included), rounded up, so that only the empty text has 0. Every byte that is not valid UTF-8 counts as one
// narrow character. For texts a and b that are valid UTF-8, Count(a)+Count(b) is Count(a+b) or one more.
//
// The zero value is ready. It has no state and is safe for concurrent use.
type Estimator struct{}

var _ Counter = Estimator{}

// Count estimates the tokens of text. It does not allocate.
func (Estimator) Count(text string) int {
	quarters := 0
	for i := 0; i < len(text); {
		switch first := text[i]; {
		case first < utf8.RuneSelf:
			n := asciiPrefix(text[i:])
			quarters += n * narrowQuarters
			i += n
		case opensWide(first) && i+2 < len(text) && continues(text[i+1]) && continues(text[i+2]):
			quarters += wideQuarters
			i += 3
		default:
			r, size := utf8.DecodeRuneInString(text[i:])
			i += size
			if isWide(r) {
				quarters += wideQuarters
			} else {
				quarters += narrowQuarters
			}
		}
	}
	return (quarters + quartersInToken - 1) / quartersInToken
}

// asciiPrefix returns how many bytes at the start of s are ASCII. The compiler turns the eight loads into one.
func asciiPrefix(s string) int {
	const high = 0x8080808080808080
	n := 0
	for ; len(s)-n >= 8; n += 8 {
		b := s[n : n+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		if w &= high; w != 0 {
			return n + bits.TrailingZeros64(w)/8
		}
	}
	for n < len(s) && s[n] < utf8.RuneSelf {
		n++
	}
	return n
}

// opensWide reports whether every character of three bytes that begins with b is wide: U+3000 to U+9FFF, which has kana
// and Han, and U+B000 to U+CFFF, most of Hangul. Telling it from one byte is what makes such text quick to count.
func opensWide(b byte) bool { return b >= 0xE3 && b <= 0xEC && b != 0xEA }

// continues reports whether b is a byte of a character after the first.
func continues(b byte) bool { return b&0xC0 == 0x80 }

// isWide reports whether r is a character of Chinese, Japanese or Korean writing. The ranges are Unicode blocks; those
// that CJK text uses most come first.
func isWide(r rune) bool {
	switch {
	case r < 0x1100:
		return false
	case r >= 0x2E80 && r <= 0xA4CF: // radicals, CJK punctuation, kana, compatibility jamo, Han with extension A, Yi
		return true
	case r >= 0xAC00 && r <= 0xD7FF: // Hangul syllables, jamo extended B
		return true
	case r <= 0x11FF: // jamo
		return true
	case r >= 0xA960 && r <= 0xA97F: // jamo extended A
		return true
	case r >= 0xF900 && r <= 0xFAFF: // Han compatibility ideographs
		return true
	case r >= 0xFE30 && r <= 0xFE4F: // CJK vertical forms
		return true
	case r >= 0xFF00 && r <= 0xFFEF: // fullwidth and halfwidth forms
		return true
	case r >= 0x1AFF0 && r <= 0x1B16F: // kana supplements
		return true
	case r >= 0x1F200 && r <= 0x1F2FF: // enclosed ideographs
		return true
	case r >= 0x20000 && r <= 0x3FFFF: // Han extensions B and later
		return true
	}
	return false
}
