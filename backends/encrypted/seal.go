package encrypted

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/adkmemory/adkmemory/backends"
)

// format begins every sealed value: version, length of the key's id, the id, nonce, ciphertext with tag.
const format byte = 1

// textPrefix begins a sealed value where the store wants text. What follows is one word of letters and digits, so that
// a full-text index makes one useless term of it.
const textPrefix = "enc1"

var textEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// The kinds of values, part of what a ciphertext is bound to.
const (
	kindNote    = "note"
	kindMessage = "message"
	kindCursor  = "cursor"
)

// vault seals and opens the values of one session within one call. It is not safe for concurrent use.
type vault struct {
	keys    Keys
	session backends.SessionKey
	plain   bool // accept what was never encrypted
	current string
	ciphers map[string]cipher.AEAD
}

func (s *Store) vault(key backends.SessionKey) *vault {
	return &vault{keys: s.keys, session: key, plain: s.plain, ciphers: make(map[string]cipher.AEAD)}
}

// cipher derives the session's own key: random nonces never come near their limit, and another session's ciphertext
// does not even have the right key.
func (v *vault) cipher(id string, key []byte) (cipher.AEAD, error) {
	if a, ok := v.ciphers[id]; ok {
		return a, nil
	}
	if len(key) != KeyBytes {
		return nil, fmt.Errorf("adkmemory: key %q is %d bytes long, need %d", id, len(key), KeyBytes)
	}
	derived, err := hkdf.Key(sha256.New, key, nil, "adkmemory session key 1"+string(bind(v.session.App, v.session.User, v.session.Session)), KeyBytes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	a, err := cipher.NewGCM(block)
	if err == nil {
		v.ciphers[id] = a
	}
	return a, err
}

// bind joins strings so that no two lists share a result.
func bind(parts ...string) []byte {
	var out []byte
	for _, p := range parts {
		out = binary.BigEndian.AppendUint32(out, uint32(len(p)))
		out = append(out, p...)
	}
	return out
}

func (v *vault) seal(ctx context.Context, kind, id string, plain []byte) ([]byte, error) {
	if v.current == "" {
		current, key, err := v.keys.Current(ctx)
		if err != nil {
			return nil, fmt.Errorf("adkmemory: current key: %w", err)
		}
		if current == "" || len(current) > maxKeyIDBytes {
			return nil, fmt.Errorf("adkmemory: key id %q: need 1 to %d bytes", current, maxKeyIDBytes)
		}
		if _, err := v.cipher(current, key); err != nil {
			return nil, err
		}
		v.current = current
	}
	a := v.ciphers[v.current]
	out := append([]byte{format, byte(len(v.current))}, v.current...)
	at := len(out)
	out = append(out, make([]byte, a.NonceSize())...)
	if _, err := rand.Read(out[at:]); err != nil {
		return nil, err
	}
	return a.Seal(out, out[at:], plain, v.bound(kind, id)), nil
}

func (v *vault) bound(kind, id string) []byte {
	return bind(v.session.App, v.session.User, v.session.Session, kind, id)
}

func (v *vault) open(ctx context.Context, kind, id string, sealed []byte) ([]byte, error) {
	if len(sealed) < 2 || sealed[0] != format || len(sealed) < 2+int(sealed[1]) {
		return nil, fmt.Errorf("%w: %s %q is not encrypted", ErrOpen, kind, id)
	}
	keyID, rest := string(sealed[2:2+int(sealed[1])]), sealed[2+int(sealed[1]):]
	a, ok := v.ciphers[keyID]
	if !ok {
		key, err := v.keys.Key(ctx, keyID)
		if err != nil {
			return nil, fmt.Errorf("adkmemory: open %s %q: %w", kind, id, err)
		}
		if a, err = v.cipher(keyID, key); err != nil {
			return nil, err
		}
	}
	if len(rest) < a.NonceSize() {
		return nil, fmt.Errorf("%w: %s %q is cut off", ErrOpen, kind, id)
	}
	plain, err := a.Open(nil, rest[:a.NonceSize()], rest[a.NonceSize():], v.bound(kind, id))
	if err != nil {
		return nil, fmt.Errorf("%w: %s %q", ErrOpen, kind, id)
	}
	return plain, nil
}

func (v *vault) sealText(ctx context.Context, kind, id, plain string) (string, error) {
	sealed, err := v.seal(ctx, kind, id, []byte(plain))
	if err != nil {
		return "", err
	}
	return textPrefix + textEncoding.EncodeToString(sealed), nil
}

func (v *vault) openText(ctx context.Context, kind, id, sealed string) (string, error) {
	encoded, ok := strings.CutPrefix(sealed, textPrefix)
	if !ok {
		if v.plain {
			return sealed, nil
		}
		return "", fmt.Errorf("%w: %s %q is not encrypted", ErrOpen, kind, id)
	}
	raw, err := textEncoding.DecodeString(encoded)
	if err != nil {
		return "", fmt.Errorf("%w: %s %q is damaged", ErrOpen, kind, id)
	}
	plain, err := v.open(ctx, kind, id, raw)
	return string(plain), err
}

// sealMessage hides a message's text and content together where the content was. Content past the store's limit gives
// way, as it does for a message that is too large from the start.
func (v *vault) sealMessage(ctx context.Context, m *backends.Message) error {
	plain := binary.BigEndian.AppendUint32(nil, uint32(len(m.Text)))
	plain = append(plain, m.Text...)
	if m.Content != nil {
		plain = append(append(plain, 1), m.Content...)
	}
	const overhead = 2 + maxKeyIDBytes + 12 + 16
	if len(plain)+overhead > backends.MaxMessageBytes {
		plain = plain[:4+len(m.Text)]
	}
	sealed, err := v.seal(ctx, kindMessage, m.ID, plain)
	m.Text, m.Content = "", sealed
	return err
}

func (v *vault) openMessage(ctx context.Context, m *backends.Message) error {
	if v.plain && (len(m.Content) == 0 || m.Content[0] != format) { // JSON never begins with that byte
		return nil
	}
	plain, err := v.open(ctx, kindMessage, m.ID, m.Content)
	if err != nil {
		return err
	}
	n := uint64(0)
	if len(plain) >= 4 {
		n = uint64(binary.BigEndian.Uint32(plain))
	}
	if uint64(len(plain)) < 4+n {
		return fmt.Errorf("%w: message %q is damaged", ErrOpen, m.ID)
	}
	m.Text, m.Content = string(plain[4:4+n]), nil
	if rest := plain[4+n:]; len(rest) > 0 {
		m.Content = rest[1:]
	}
	return nil
}

func (v *vault) openNote(ctx context.Context, n *backends.Note) (err error) {
	n.Text, err = v.openText(ctx, kindNote, n.ID, n.Text)
	return err
}

func (v *vault) sealCursor(ctx context.Context, c *backends.Cursor) (err error) {
	if c.Fingerprint != "" {
		c.Fingerprint, err = v.sealText(ctx, kindCursor, c.MessageID, c.Fingerprint)
	}
	return err
}

func (v *vault) openCursor(ctx context.Context, c *backends.Cursor) (err error) {
	if c.Fingerprint != "" {
		c.Fingerprint, err = v.openText(ctx, kindCursor, c.MessageID, c.Fingerprint)
	}
	return err
}
