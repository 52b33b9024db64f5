package readers

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/rc4"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"regexp"

	"github.com/ledongthuc/pdf"
)

// decrypted is the PDF with its streams decrypted in place, for the empty password that opens most encrypted files (ISO 32000-2, 7.6). The
// library behind the native engine knows two of the six kinds of encryption and takes a third for one of them. Strings outside of streams stay
// as they are: none of them is shown. A stream that gets shorter is filled up with line ends, which end no filter's data early.
func decrypted(data []byte) ([]byte, error) {
	plain, found := withoutEncrypt(data)
	if !found {
		return data, nil
	}
	r, err := openPDF(plain)
	if err != nil {
		return nil, err
	}
	e := r.Trailer().Key("EncrypX")
	if e.Kind() != pdf.Dict {
		return data, nil // what looked like it was not in the trailer
	}
	c, err := cryptOf(e, r.Trailer().Key("ID").Index(0).RawString())
	if err != nil {
		return nil, err
	}
	if c.method != cryptNone {
		c.streams(plain)
	}
	return plain, nil
}

// withoutEncrypt is a copy in which the trailers' /Encrypt is called something that the library does not know.
func withoutEncrypt(data []byte) (plain []byte, found bool) {
	const name = "/Encrypt"
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte(name))
		if i < 0 {
			return plain, found
		}
		at += i + len(name)
		if at == len(data) || !blank(data[at]) && data[at] != '<' {
			continue // /EncryptMetadata
		}
		if !found {
			plain, found = bytes.Clone(data), true
		}
		plain[at-1] = 'X'
	}
}

const (
	cryptNone = iota
	cryptRC4
	cryptAES
)

// pdfCrypt decrypts the streams of one document.
type pdfCrypt struct {
	key    []byte
	method int
	whole  bool // the key is used as it is (AES-256), not mixed with the object's number
}

// passwordPad stands for the empty password in the older kinds.
var passwordPad = []byte("\x28\xbf\x4e\x5e\x4e\x75\x8a\x41\x64\x00\x4e\x56\xff\xfa\x01\x08\x2e\x2e\x00\xb6\xd0\x68\x3e\x80\x2f\x0c\xa9\xfe\x64\x53\x69\x7a")

// cryptOf reads the encryption dictionary and finds the key for the empty password.
func cryptOf(e pdf.Value, id string) (*pdfCrypt, error) {
	v, rev := e.Key("V").Int64(), e.Key("R").Int64()
	if e.Key("Filter").Name() != "Standard" || rev < 2 || rev > 6 {
		return nil, errNativeEncryption
	}
	c := &pdfCrypt{method: cryptRC4}
	length := int64(5)
	switch v {
	case 1:
	case 2, 3:
		if n := e.Key("Length").Int64(); n >= 40 && n <= 128 {
			length = n / 8
		}
	case 4, 5:
		length = 16
		c.whole = v == 5
		switch filter := e.Key("StmF").Name(); e.Key("CF").Key(filter).Key("CFM").Name() {
		case "V2":
		case "AESV2", "AESV3":
			c.method = cryptAES
		case "", "None": // "Identity", or no filter at all
			c.method = cryptNone
			return c, nil
		default:
			return nil, errNativeEncryption
		}
	default:
		return nil, errNativeEncryption
	}
	var ok bool
	if v == 5 {
		ok = c.wholeKey(rev, e.Key("U").RawString(), e.Key("UE").RawString())
	} else {
		ok = c.mixedKey(rev, int(length), e, id)
	}
	if !ok {
		return nil, &Encrypted{"PDF"}
	}
	return c, nil
}

// mixedKey is algorithm 2, and 4 to 6 for whether the password is right.
func (c *pdfCrypt) mixedKey(rev int64, length int, e pdf.Value, id string) bool {
	owner, user := e.Key("O").RawString(), e.Key("U").RawString()
	if len(owner) < 32 || len(user) < 32 {
		return false
	}
	h := md5.New()
	h.Write(passwordPad)
	h.Write([]byte(owner[:32]))
	h.Write(binary.LittleEndian.AppendUint32(nil, uint32(e.Key("P").Int64())))
	h.Write([]byte(id))
	if m := e.Key("EncryptMetadata"); rev >= 4 && m.Kind() == pdf.Bool && !m.Bool() {
		h.Write([]byte{0xff, 0xff, 0xff, 0xff})
	}
	key := h.Sum(nil)
	if rev >= 3 {
		for range 50 {
			next := md5.Sum(key[:length])
			key = next[:]
		}
	}
	c.key = key[:length]
	if rev == 2 {
		return string(rc4With(c.key, passwordPad)) == user[:32]
	}
	check := md5.Sum(append(bytes.Clone(passwordPad), id...))
	got := check[:]
	for i := range 20 {
		k := bytes.Clone(c.key)
		for j := range k {
			k[j] ^= byte(i)
		}
		got = rc4With(k, got)
	}
	return string(got) == user[:16]
}

// wholeKey is algorithm 2.A: the hash with one salt tells whether the password is right, with another it opens the key.
func (c *pdfCrypt) wholeKey(rev int64, user, wrapped string) bool {
	if len(user) < 48 || len(wrapped) < 32 {
		return false
	}
	hash := func(salt string) []byte {
		k := sha256.Sum256([]byte(salt))
		if rev < 6 {
			return k[:]
		}
		return hardened(k[:])
	}
	if string(hash(user[32:40])) != user[:32] {
		return false
	}
	block, err := aes.NewCipher(hash(user[40:48]))
	if err != nil {
		return false
	}
	c.key = make([]byte, 32)
	cipher.NewCBCDecrypter(block, make([]byte, aes.BlockSize)).CryptBlocks(c.key, []byte(wrapped[:32]))
	return true
}

// hardened is algorithm 2.B for the empty password. Its length depends on the data; each round past the 64th ends it with a probability that
// grows to one.
func hardened(k []byte) []byte {
	last := byte(0)
	for i := 0; i < 64 || int(last) > i-32; i++ {
		block, err := aes.NewCipher(k[:16])
		if err != nil {
			return nil
		}
		e := bytes.Repeat(k, 64)
		cipher.NewCBCEncrypter(block, k[16:32]).CryptBlocks(e, e)
		remainder := 0
		for _, b := range e[:16] {
			remainder += int(b)
		}
		switch remainder % 3 {
		case 0:
			h := sha256.Sum256(e)
			k = h[:]
		case 1:
			h := sha512.Sum384(e)
			k = h[:]
		default:
			h := sha512.Sum512(e)
			k = h[:]
		}
		last = e[len(e)-1]
	}
	return k[:32]
}

func rc4With(key, b []byte) []byte {
	out := make([]byte, len(b))
	if c, err := rc4.NewCipher(key); err == nil {
		c.XORKeyStream(out, b)
	}
	return out
}

// streams decrypts every stream of the file where it lies. They are found by their keywords, as the cross-reference table is no help with what
// older revisions of the file left behind; the noise of an encrypted stream does not spell them.
func (c *pdfCrypt) streams(data []byte) {
	keyword, ending := []byte("stream"), []byte("endstream")
	for from, at := 0, 0; ; {
		i := bytes.Index(data[at:], keyword)
		if i < 0 {
			return
		}
		dict := bytes.TrimRight(data[from:at+i], "\x00\t\n\f\r ")
		at += i + len(keyword)
		if !bytes.HasSuffix(dict, []byte(">>")) {
			continue
		}
		body := at
		if body < len(data) && data[body] == '\r' {
			body++
		}
		if body < len(data) && data[body] == '\n' {
			body++
		}
		number, generation, dict, ok := objectOf(dict)
		end := body + lengthIn(dict)
		if end == body || end > len(data) || !bytes.HasPrefix(bytes.TrimLeft(data[end:min(end+64, len(data))], "\r\n "), ending) {
			end = bytes.Index(data[body:], ending)
			if end < 0 {
				return
			}
			end += body
		}
		// Of an XRef nothing is encrypted, and with a filter named Crypt the stream has its own rule, most often to be left alone.
		if ok && !bytes.Contains(dict, []byte("/XRef")) && !bytes.Contains(dict, []byte("/Crypt")) {
			c.decrypt(data[body:end], number, generation)
		}
		from, at = end, end+len(ending)
		if at > len(data) {
			return
		}
	}
}

var (
	objectHead   = regexp.MustCompile(`(\d{1,10})\s+(\d{1,5})\s+obj\b`)
	directLength = regexp.MustCompile(`/Length\s+(\d{1,10})\s*[/>]`) // not "12 0 R", which is elsewhere
)

// objectOf finds the last "12 0 obj" of b: its numbers, and what follows it.
func objectOf(b []byte) (number, generation int, rest []byte, ok bool) {
	all := objectHead.FindAllSubmatchIndex(b, -1)
	if len(all) == 0 {
		return 0, 0, nil, false
	}
	m := all[len(all)-1]
	return atoi(string(b[m[2]:m[3]])), atoi(string(b[m[4]:m[5]])), b[m[1]:], true
}

// lengthIn is the length that a stream's dictionary says itself, else 0.
func lengthIn(dict []byte) int {
	if m := directLength.FindSubmatch(dict); m != nil {
		return atoi(string(m[1]))
	}
	return 0
}

// decrypt turns one stream's bytes into what was encrypted.
func (c *pdfCrypt) decrypt(b []byte, number, generation int) {
	key := c.key
	if !c.whole {
		mixed := append(bytes.Clone(key), byte(number), byte(number>>8), byte(number>>16), byte(generation), byte(generation>>8))
		if c.method == cryptAES {
			mixed = append(mixed, "sAlT"...)
		}
		sum := md5.Sum(mixed)
		key = sum[:min(len(c.key)+5, len(sum))]
	}
	if c.method == cryptRC4 {
		if s, err := rc4.NewCipher(key); err == nil {
			s.XORKeyStream(b, b)
		}
		return
	}
	n := len(b) / aes.BlockSize * aes.BlockSize
	if n < 2*aes.BlockSize {
		return // the first block is the initial vector
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return
	}
	body := b[aes.BlockSize:n]
	cipher.NewCBCDecrypter(block, b[:aes.BlockSize]).CryptBlocks(body, body)
	if fill := int(body[len(body)-1]); fill >= 1 && fill <= aes.BlockSize {
		body = body[:len(body)-fill]
	}
	end := copy(b, body)
	for i := end; i < len(b); i++ {
		b[i] = '\n'
	}
}
