package blob

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"filippo.io/age"
)

// Keys are the rows of data keys, each wrapped to the recipient of whoever made it.
type Keys interface {
	Newest(ctx context.Context) (id int64, err error)              // 0: there is none
	Wrapped(ctx context.Context, id int64) ([]byte, error)         // nil: there is no such row
	Add(ctx context.Context, wrapped []byte) (id int64, err error) // durable on return
}

// sealer encrypts contents. Each process makes a data key of its own, stores it wrapped to the
// operator's age recipient and keeps it in memory: so it can undo what it did itself without ever
// holding the secret half, and a copy of the store tells its finder nothing but the catalog. With
// an identity at hand the newest key that it opens is used again.
//
// If another process has sealed a content before, the row can't be read by the one that saves it
// again: that one keeps the content in memory, as it keeps its key. A delta is sealed with the key of its
// base, or its base is in clear, so that one key opens a chain.
//
// Content is AES-256-GCM with a random nonce in front; its hash and codec are authenticated, so
// that rows cannot be exchanged.
type sealer struct {
	to   age.Recipient // nil: encryption is off
	ids  []age.Identity
	rows Keys

	mu   sync.Mutex
	own  int64 // row of the key that seals; 0 until the first one is needed
	keys map[int64]cipher.AEAD
	// Contents that this process saved and another one sealed, at most maxHeld bytes.
	held  map[Hash][]byte
	order []Hash // of held, the oldest first
	bytes int
}

func (s *sealer) init(o Options) error {
	s.keys, s.rows = map[int64]cipher.AEAD{}, o.Keys
	s.Forget()
	if o.EncryptTo != "" {
		rs, err := age.ParseRecipients(strings.NewReader(o.EncryptTo))
		if err != nil {
			return fmt.Errorf("reading the recipient to encrypt to: %w", err)
		}
		if len(rs) != 1 {
			return errors.New("encryption needs exactly one recipient")
		}
		s.to = rs[0]
	}
	for _, id := range o.Identities {
		ids, err := age.ParseIdentities(strings.NewReader(id))
		if err != nil {
			return ErrIdentity // the reason could quote the secret
		}
		s.ids = append(s.ids, ids...)
	}
	return nil
}

func (s *sealer) on() bool { return s.to != nil }

// NeedKey makes the key that seals, if anything is to be sealed and there is none yet. It writes to
// the catalog, for which a transaction of the caller is no place.
func (s *sealer) NeedKey(ctx context.Context) error {
	if !s.on() {
		return nil
	}
	_, _, err := s.ownKey(ctx)
	return err
}

// MayStandOn reports whether a delta of this process may stand on a row that is sealed with key.
func (s *sealer) MayStandOn(key int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return key == 0 || s.on() && key == s.own
}

// maxHeld bounds the contents that Retain keeps.
const maxHeld = 64 << 20

// Retain keeps a content that was just saved if its row is sealed with a key that this process can't
// read. The oldest ones go when they get too many.
func (s *sealer) Retain(h Hash, key int64, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key == 0 || len(s.ids) > 0 || s.keys[key] != nil || s.held[h] != nil || len(content) > maxHeld/4 {
		return
	}
	s.held[h], s.order = content, append(s.order, h)
	for s.bytes += len(content); s.bytes > maxHeld; s.order = s.order[1:] {
		s.bytes -= len(s.held[s.order[0]])
		delete(s.held, s.order[0])
	}
}

// Retained is a content that Retain has kept; nil when there is none.
func (s *sealer) Retained(h Hash) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[h]
}

// Forget drops what Retain has kept.
func (s *sealer) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.order, s.bytes = map[Hash][]byte{}, nil, 0
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(b)
}

func sealedAs(h Hash, c Codec) []byte { return append(h[:], byte(c)) }

// seal encrypts r.Z with the key of that row, 0 for this process's own.
func (s *sealer) seal(ctx context.Context, r *Row, key int64) error {
	var aead cipher.AEAD
	var err error
	if key == 0 {
		key, aead, err = s.ownKey(ctx)
	} else {
		s.mu.Lock()
		aead, err = s.key(ctx, key)
		s.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("finding a data key: %w", err)
	}
	out := make([]byte, aead.NonceSize(), aead.NonceSize()+len(r.Z)+aead.Overhead())
	rand.Read(out)
	r.Z = aead.Seal(out, out, r.Z, sealedAs(r.Hash, r.Codec))
	r.Key, r.Codec = key, r.Codec|CodecSealed
	return nil
}

func (s *sealer) ownKey(ctx context.Context) (int64, cipher.AEAD, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own != 0 {
		return s.own, s.keys[s.own], nil
	}
	if len(s.ids) > 0 {
		id, err := s.rows.Newest(ctx)
		if err != nil {
			return 0, nil, err
		}
		if aead, err := s.key(ctx, id); err == nil {
			s.own = id
			return id, aead, nil
		}
	}
	key := make([]byte, 32)
	rand.Read(key)
	aead, err := newAEAD(key)
	if err != nil {
		return 0, nil, err
	}
	var wrapped bytes.Buffer
	w, err := age.Encrypt(&wrapped, s.to)
	if err != nil {
		return 0, nil, err
	}
	if _, err := w.Write(key); err != nil {
		return 0, nil, err
	}
	if err := w.Close(); err != nil {
		return 0, nil, err
	}
	id, err := s.rows.Add(ctx, wrapped.Bytes())
	if err != nil {
		return 0, nil, err
	}
	s.own, s.keys[id] = id, aead
	return id, aead, nil
}

// key finds the key of a row; s is locked.
func (s *sealer) key(ctx context.Context, id int64) (cipher.AEAD, error) {
	if k := s.keys[id]; k != nil {
		return k, nil
	}
	if len(s.ids) == 0 {
		return nil, ErrSealed
	}
	wrapped, err := s.rows.Wrapped(ctx, id)
	if err != nil {
		return nil, err
	}
	if wrapped == nil {
		return nil, errors.New("its key is missing")
	}
	r, err := age.Decrypt(bytes.NewReader(wrapped), s.ids...)
	if err != nil {
		return nil, ErrSealed
	}
	key, err := io.ReadAll(io.LimitReader(r, 33))
	if err != nil || len(key) != 32 {
		return nil, errors.New("its key is damaged")
	}
	aead, err := newAEAD(key)
	if err == nil {
		s.keys[id] = aead
	}
	return aead, err
}

// unseal decrypts z, the bytes of r.
func (s *sealer) unseal(ctx context.Context, r *Row, z []byte) ([]byte, error) {
	s.mu.Lock()
	aead, err := s.key(ctx, r.Key)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	n := aead.NonceSize()
	if len(z) < n {
		return nil, errors.New("too short to be encrypted")
	}
	out, err := aead.Open(nil, z[:n], z[n:], sealedAs(r.Hash, r.Codec&^(CodecStore|CodecSealed)))
	if err != nil {
		return nil, errors.New("it does not decrypt")
	}
	return out, nil
}
