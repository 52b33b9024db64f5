// Package serve has the tokens and the addresses of the servers below it.
//
// [TokenStore] keeps the tokens by which a server knows its callers: the principal, the trees that it may read and change, its tier, and the
// end.
//
// A token is 256 random bits. Only its SHA-256 is kept. A slow hash, such as bcrypt, protects
// secrets that can be guessed; nobody guesses this one, and each call would pay for it.
//
// The tokens are in one file, tokens.json, in a directory of the data directory with mode 0600, or in what the machines of a fleet share.
// Processes change it one after the other, under a lock, and replace it whole. [TokenStore.Check] reads it each time,
// so that a token that was revoked is refused by servers that run. A file that is not as this
// package writes it, or that others may read or write, is refused whole: then no token holds. Nor does one where the file can't be read.
//
// A TokenStore is safe for concurrent use. It opens its own files and nothing else.
//
// [Listen] opens loopback addresses, others only where that is asked for, and Unix sockets, of which [Peer] tells the user at the other end. It opens the
// lock beside a socket, and removes nothing but a socket of a dead server.
package serve

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"moltisfs/internal/state"
)

// A Token is a token as the file keeps it: all but the secret.
type Token struct {
	ID        string `json:"id"`
	Hash      string `json:"sha256"` // of the secret, in hex
	Principal string `json:"principal"`
	// Scope lists the paths that it may read and change, within the configuration; nil: all that is allowed.
	Scope *Scope `json:"scope,omitempty"`
	// Tier is the least strict tier that its calls have, see approval.Tier; "" as configured.
	Tier     string    `json:"tier,omitempty"`
	ByUser   bool      `json:"by_user,omitempty"`  // a person's, not an agent's
	Elicit   bool      `json:"elicit,omitempty"`   // its MCP client may ask its own user for approvals
	Operator bool      `json:"operator,omitempty"` // answers approvals and makes no calls
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires,omitzero"` // zero: never
	// LastUsed is when Check found it last, to a minute; zero: never. It is that of a file of its own, and only List gives it.
	LastUsed time.Time `json:"last_used,omitzero"`
}

// Scope is absolute paths, each with all below it.
type Scope struct {
	Readable []string `json:"readable"`
	Writable []string `json:"writable"`
}

// Expired reports whether its time is over.
func (t *Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// ErrUnknownToken is the error of a token that never was, is revoked, or has expired, which are not told apart,
// and of an id that Revoke does not find.
var ErrUnknownToken = errors.New("there is no such token")

// ErrTooManyTokens is the error of one token too many.
var ErrTooManyTokens = errors.New("there are as many tokens as are kept; revoke some")

const (
	prefix    = "mfs_" // so that scanners of secrets, and people, know what they see
	maxSecret = 256    // bytes that are looked at
	maxTokens = 1000
	maxName   = 256                 // bytes of a principal
	keepOld   = 30 * 24 * time.Hour // an expired one is listed for so long
)

// TokenStore is the tokens of one directory.
type TokenStore struct {
	files state.Files

	mu     sync.Mutex
	raw    []byte  // the file as it was last
	tokens []Token // in it
	used   map[string]time.Time
}

// usedEvery is how often the use of a token is noted, at most.
const usedEvery = time.Minute

// note notes that a token is used, by the time of a file. Where that fails the use is not known, and no more.
func (s *TokenStore) note(id string, now time.Time) {
	s.mu.Lock()
	old := now.Sub(s.used[id]) >= usedEvery
	if old {
		if s.used == nil {
			s.used = map[string]time.Time{}
		}
		s.used[id] = now
	}
	s.mu.Unlock()
	if old {
		_ = s.files.Touch(id + usedSuffix)
	}
}

// Tokens is the store in dir. Nothing is opened or made yet.
func Tokens(dir string) *TokenStore {
	return TokensIn(state.Dir{Path: dir, Temp: newName, Most: maxFile, Private: true})
}

// TokensIn is the store in files.
func TokensIn(files state.Files) *TokenStore { return &TokenStore{files: files} }

// Create keeps a token like t, with an id, a secret and a time of creation of its own. The secret
// is nowhere else from then on.
func (s *TokenStore) Create(t Token) (_ Token, secret string, err error) {
	if t.Principal == "" || len(t.Principal) > maxName || !utf8.ValidString(t.Principal) ||
		strings.ContainsFunc(t.Principal, unicode.IsControl) {
		return t, "", fmt.Errorf("a principal is 1 to %d bytes of printable text", maxName)
	}
	bits := make([]byte, 32)
	_, _ = rand.Read(bits) // it never fails
	secret = prefix + base64.RawURLEncoding.EncodeToString(bits)
	t.Hash, t.Created = hashOf(secret), time.Now().UTC().Truncate(time.Second)
	err = s.change(func(all []Token) ([]Token, error) {
		all = slices.DeleteFunc(all, func(o Token) bool { return o.Expired(t.Created.Add(-keepOld)) })
		if len(all) >= maxTokens {
			return nil, ErrTooManyTokens
		}
		for t.ID == "" || slices.ContainsFunc(all, func(o Token) bool { return o.ID == t.ID }) {
			t.ID = "tk-" + strings.ToLower(rand.Text()[:8])
		}
		return append(all, t), nil
	})
	if err != nil {
		return t, "", fmt.Errorf("making a token: %w", err)
	}
	return t, secret, nil
}

// Revoke takes a token away for good.
func (s *TokenStore) Revoke(id string) (gone Token, err error) {
	if all, err := s.read(s.files); err == nil && len(all) == 0 {
		return gone, ErrUnknownToken // and nothing is made
	}
	err = s.change(func(all []Token) ([]Token, error) {
		i := slices.IndexFunc(all, func(t Token) bool { return t.ID == id })
		if i < 0 {
			return nil, ErrUnknownToken
		}
		gone = all[i]
		return slices.Delete(all, i, i+1), nil
	})
	if err == nil {
		_ = s.files.Remove(gone.ID + usedSuffix) // it may never have been used
	}
	if err != nil && err != ErrUnknownToken {
		err = fmt.Errorf("revoking a token: %w", err)
	}
	return gone, err
}

// List gives all tokens, oldest first, expired ones too.
func (s *TokenStore) List() ([]Token, error) {
	all, err := s.read(s.files)
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.ID + usedSuffix
	}
	var used []state.Info
	if err == nil {
		used, err = s.files.Look(names...)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the tokens: %w", err)
	}
	all = slices.Clone(all)
	for i := range all {
		all[i].LastUsed = used[i].At.UTC().Truncate(time.Second)
	}
	return all, nil
}

// Check finds the token with this secret. The error is ErrUnknownToken, or that of tokens that can't be
// read. Its time says nothing of the tokens but their number.
func (s *TokenStore) Check(secret string, now time.Time) (Token, error) {
	all, err := s.read(s.files)
	if err != nil {
		return Token{}, fmt.Errorf("reading the tokens: %w", err)
	}
	hash, found := []byte(hashOf(secret[:min(len(secret), maxSecret)])), -1
	for i := range all {
		if subtle.ConstantTimeCompare(hash, []byte(all[i].Hash)) == 1 {
			found = i
		}
	}
	if found < 0 || len(secret) > maxSecret || all[found].Expired(now) {
		return Token{}, ErrUnknownToken
	}
	s.note(all[found].ID, now)
	return all[found], nil
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// read gives the tokens that are in the file now; none where there is no file. Callers must not change the slice.
func (s *TokenStore) read(files state.Files) ([]Token, error) {
	s.mu.Lock()
	like := len(s.raw)
	s.mu.Unlock()
	var raw []byte
	f, err := files.Open(fileName)
	if err == nil {
		b := bytes.NewBuffer(make([]byte, 0, like+2*bytes.MinRead)) // as large as it was last, so that one read does it
		_, err = b.ReadFrom(io.LimitReader(f, maxFile))
		err, raw = errors.Join(err, f.Close()), b.Bytes()
		if err == nil && len(raw) == 0 {
			err = fmt.Errorf("%s is damaged: it is empty", fileName)
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if raw == nil || !bytes.Equal(raw, s.raw) {
		if s.tokens, err = parse(raw); err != nil {
			s.raw = nil
			return nil, err
		}
		s.raw = raw
	}
	return s.tokens, nil
}

// change replaces the tokens by what edit makes of them, with nobody else changing them meanwhile.
func (s *TokenStore) change(edit func([]Token) ([]Token, error)) error {
	return s.files.Update(context.Background(), lockName, func(files state.Files) error {
		all, err := s.read(files)
		if err == nil {
			all, err = edit(slices.Clone(all))
		}
		if err != nil {
			return err
		}
		raw, err := json.MarshalIndent(file{version, all}, "", " ")
		if err != nil {
			return err
		}
		if len(raw) >= maxFile { // it would not be read again
			return ErrTooManyTokens
		}
		return files.Replace(fileName, append(raw, '\n'))
	})
}

// file is the JSON of the file.
type file struct {
	Version int     `json:"version"`
	Tokens  []Token `json:"tokens"`
}

const version = 1

// parse takes the file apart. It is strict: a file that somebody has changed may not say what they meant.
func parse(raw []byte) ([]Token, error) {
	if len(raw) == 0 {
		return []Token{}, nil // there is none
	}
	var f file
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", fileName, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%s is damaged: there is more after its end", fileName)
	}
	if f.Version != version {
		return nil, fmt.Errorf("%s is of version %d, and this program knows %d", fileName, f.Version,
			version)
	}
	ids := map[string]bool{}
	for _, t := range f.Tokens {
		bits, err := hex.DecodeString(t.Hash)
		if err != nil || len(bits) != sha256.Size || !plainID(t.ID) || t.Principal == "" || ids[t.ID] {
			return nil, fmt.Errorf("%s is damaged: its token %q is not whole, or there twice",
				fileName, t.ID)
		}
		ids[t.ID] = true
	}
	return append([]Token{}, f.Tokens...), nil
}

// plainID says that an id can be part of the name of a file.
func plainID(id string) bool {
	return id != "" && !strings.ContainsFunc(id, func(r rune) bool { return r != '-' && !unicode.IsDigit(r) && (r < 'a' || r > 'z') })
}

const (
	fileName   = "tokens.json"
	lockName   = "tokens.lock"
	newName    = "tokens.new" // a next file that is not whole yet; it belongs to the holder of the lock
	usedSuffix = ".used"      // behind the id of a token: its time is that of the last use
	maxFile    = 1 << 20
)
