package checkpoint

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"filippo.io/age"
)

// sealer encrypts contents. Each process makes a data key of its own, stores it wrapped to the operator's age recipient
// and keeps it in memory: so it can undo what it did itself without ever holding the secret half, and a copy of the
// store tells its finder nothing but the catalog. With an identity at hand the newest key that it opens is used again.
//
// What a process saves and finds in the store under somebody else's key it can't read from there: such contents it keeps in memory too, as it
// keeps its key. A delta is sealed with the key of its base, or its base is in clear, so that one key opens a chain.
//
// Content is AES-256-GCM with a random nonce in front; its hash and codec are authenticated, so that rows cannot be
// exchanged.
type sealer struct {
	to  age.Recipient // nil: encryption is off
	ids []age.Identity

	held versions // by hash: saved by this process, sealed by another

	mu   sync.Mutex
	own  int64 // row of the key that seals; 0 until the first one is needed
	keys map[int64]cipher.AEAD
}

func newSealer(o Options) (*sealer, error) {
	s := &sealer{keys: map[int64]cipher.AEAD{}}
	s.held.max = 64 << 20
	if o.EncryptTo != "" {
		rs, err := age.ParseRecipients(strings.NewReader(o.EncryptTo))
		if err != nil {
			return nil, fmt.Errorf("reading the recipient to encrypt to: %w", err)
		}
		if len(rs) != 1 {
			return nil, &BadOpError{"", "encryption needs exactly one recipient"}
		}
		s.to = rs[0]
	}
	for _, id := range o.Identities {
		ids, err := age.ParseIdentities(strings.NewReader(id))
		if err != nil {
			return nil, ErrIdentity // the reason could quote the secret
		}
		s.ids = append(s.ids, ids...)
	}
	return s, nil
}

func (s *sealer) on() bool { return s.to != nil }

// ready reports whether sealing needs no new key.
func (s *sealer) ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own != 0
}

// mayStandOn says whether a delta of this process may stand on base (nil: none).
func (s *sealer) mayStandOn(base *version) bool {
	if base == nil || base.key == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on() && base.key == s.own
}

// hold keeps a content that was just saved if its row can't be read by this process.
func (s *sealer) hold(v *version) {
	if v.key == 0 || len(s.ids) > 0 {
		return
	}
	s.mu.Lock()
	readable := s.keys[v.key] != nil
	s.mu.Unlock()
	if !readable {
		s.held.add(&version{path: string(v.h[:]), h: v.h, content: v.content})
	}
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(b)
}

func sealedAs(h hash, c codec) []byte { return append(h[:], byte(c)) }

// seal encrypts z and returns the row of the key.
func (s *sealer) seal(ctx context.Context, d *DB, h hash, c codec, z []byte) ([]byte, int64, error) {
	id, aead, err := s.ownKey(ctx, d)
	if err != nil {
		return nil, 0, fmt.Errorf("making a data key: %w", err)
	}
	return sealWith(aead, h, c, z), id, nil
}

func sealWith(aead cipher.AEAD, h hash, c codec, z []byte) []byte {
	out := make([]byte, aead.NonceSize(), aead.NonceSize()+len(z)+aead.Overhead())
	rand.Read(out)
	return aead.Seal(out, out, z, sealedAs(h, c))
}

// again encrypts z with the key of a row that this process has read.
func (s *sealer) again(ctx context.Context, d *DB, key int64, h hash, c codec, z []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	aead, err := s.key(ctx, d, key)
	if err != nil {
		return nil, err
	}
	return sealWith(aead, h, c, z), nil
}

func (s *sealer) ownKey(ctx context.Context, d *DB) (int64, cipher.AEAD, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own != 0 {
		return s.own, s.keys[s.own], nil
	}
	if len(s.ids) > 0 {
		var id int64
		err := d.r.QueryRowContext(ctx, "SELECT ifnull(max(id),0) FROM seal").Scan(&id)
		if err != nil {
			return 0, nil, err
		}
		if aead, err := s.key(ctx, d, id); err == nil {
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
	var id int64
	err = d.com.do(ctx, func(ctx context.Context, c *committer) error {
		id, err = c.insert(ctx, "INSERT INTO seal(wrapped) VALUES(?)", wrapped.Bytes())
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	s.own, s.keys[id] = id, aead
	return id, aead, nil
}

// key finds the key of a row; s is locked.
func (s *sealer) key(ctx context.Context, d *DB, id int64) (cipher.AEAD, error) {
	if k := s.keys[id]; k != nil {
		return k, nil
	}
	if len(s.ids) == 0 {
		return nil, ErrSealed
	}
	var wrapped []byte
	err := d.r.QueryRowContext(ctx, "SELECT wrapped FROM seal WHERE id=?", id).Scan(&wrapped)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, errors.New("its key is missing")
	}
	if err != nil {
		return nil, err
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

// open decrypts what seal made.
func (s *sealer) open(ctx context.Context, d *DB, id int64, h hash, c codec, z []byte) ([]byte, error) {
	s.mu.Lock()
	aead, err := s.key(ctx, d, id)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	n := aead.NonceSize()
	if len(z) < n {
		return nil, errors.New("too short to be encrypted")
	}
	out, err := aead.Open(nil, z[:n], z[n:], sealedAs(h, c))
	if err != nil {
		return nil, errors.New("it does not decrypt")
	}
	return out, nil
}
