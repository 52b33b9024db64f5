package blob

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // what S3 checks a body with
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"moltisfs/internal/outage"
)

// S3 is a Store of objects in a bucket of S3, or of another store that speaks it and has conditional writes.
type S3 struct {
	core   minio.Core
	bucket string
	prefix string // "" or with a slash at its end
	// A request may take that long, and a second more for each s3Slowest bytes.
	patience time.Duration

	probed atomic.Bool // it has conditional writes
	failed atomic.Pointer[error]
}

const (
	s3Tries    = 3
	s3Patience = 10 * time.Second
	s3Slowest  = 1 << 20
	s3Probe    = "conditional-write"
)

// ErrUnconditional: the store of objects has no conditional writes.
var ErrUnconditional = errors.New("the store of large contents takes no notice of If-None-Match: two gateways could write one name")

// OpenS3 takes the address of the contents of a fleet: "s3://bucket/prefix", with "?endpoint=https://host" for another store than that of
// Amazon, and "&region=…" where the store needs one. The keys come from the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, from the
// shared credentials file or from the role of the machine, never from the address. Nothing is asked of the store yet.
func OpenS3(address string) (*S3, error) {
	bad := func(why string) (*S3, error) {
		return nil, errors.New("the address of the contents " + why + `: want "s3://bucket/prefix?endpoint=…&region=…"`)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "s3" || u.Host == "":
		return bad("names no bucket")
	case u.User != nil:
		return bad("must have no keys")
	}
	for key := range u.Query() {
		if key != "endpoint" && key != "region" {
			return bad("has an option that is none of endpoint and region")
		}
	}
	host, secure, lookup, region := "s3.amazonaws.com", true, minio.BucketLookupAuto, u.Query().Get("region")
	if at := u.Query().Get("endpoint"); at != "" {
		e, err := url.Parse(at)
		if err != nil || e.Host == "" || e.User != nil || e.Scheme != "http" && e.Scheme != "https" || strings.Trim(e.Path, "/") != "" {
			return bad("has an endpoint that is none of https://host or http://host")
		}
		host, secure, lookup = e.Host, e.Scheme == "https", minio.BucketLookupPath
		if region == "" {
			region = "us-east-1" // what stores that have no regions take
		}
	}
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	transport.ResponseHeaderTimeout = s3Patience
	keys := credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{Timeout: s3Patience}}})
	client, err := minio.New(host, &minio.Options{Creds: keys, Secure: secure, Transport: transport, Region: region, BucketLookup: lookup, MaxRetries: 1})
	if err != nil {
		return bad("is of no use: " + err.Error())
	}
	s := &S3{core: minio.Core{Client: client}, bucket: u.Host, patience: s3Patience}
	if p := strings.Trim(u.Path, "/"); p != "" {
		s.prefix = path.Clean(p) + "/"
	}
	return s, nil
}

// Probe writes one small object, once, to see whether the store can be reached and has conditional writes: ErrUnconditional if not.
func (s *S3) Probe(ctx context.Context) (err error) {
	for n := 0; n < 2 && err == nil && !s.probed.Load(); n++ { // from the second gateway on it is there
		var there bool
		there, _, err = s.put(ctx, s3Probe, []byte("moltis-fs looks here whether the store has conditional writes\n"))
		s.probed.Store(there && err == nil)
	}
	if err == nil && !s.probed.Load() {
		err = ErrUnconditional
		s.failed.Store(&err)
	}
	return err
}

// Failed is the error of the last request that the store did not answer, or ErrUnconditional; nil once it has answered one since.
func (s *S3) Failed() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Put writes an object unless there is one of that name, after a Probe. If the answer to a request is lost it is sent again, and finds what the first one
// wrote.
func (s *S3) Put(ctx context.Context, name string, z []byte) error {
	if !isName(name) {
		return ErrName
	}
	if err := s.Probe(ctx); err != nil {
		return err
	}
	there, again, err := s.put(ctx, name, z)
	if !there || err != nil {
		return err
	}
	if !again {
		return &fs.PathError{Op: "put", Path: name, Err: fs.ErrExist}
	}
	found, err := s.Get(ctx, name, int64(len(z)))
	if outage.Is(err) {
		return err
	}
	if err != nil || !bytes.Equal(found, z) {
		return &fs.PathError{Op: "put", Path: name, Err: fs.ErrExist}
	}
	return nil
}

// put reports whether there was an object already, and whether the answer to an earlier request of its own is not known.
func (s *S3) put(ctx context.Context, name string, z []byte) (there, again bool, err error) {
	o := minio.PutObjectOptions{ContentType: "application/octet-stream"}
	o.SetMatchETagExcept("*")
	hash, sum := sha256.Sum256(z), md5.Sum(z) //nolint:gosec // as said
	sent := 0
	err = s.try(ctx, int64(len(z)), func(ctx context.Context) error {
		sent++
		_, err := s.core.PutObject(ctx, s.bucket, s.prefix+name, bytes.NewReader(z), int64(len(z)),
			base64.StdEncoding.EncodeToString(sum[:]), hex.EncodeToString(hash[:]), o)
		there = minio.ToErrorResponse(err).StatusCode == http.StatusPreconditionFailed
		if there {
			return nil
		}
		return err
	})
	return there, sent > 1, err
}

// Get reads an object.
func (s *S3) Get(ctx context.Context, name string, size int64) (z []byte, err error) {
	if !isName(name) {
		return nil, ErrName
	}
	if size < 0 || size > 2*maxSize {
		return nil, fmt.Errorf("impossible size %d", size)
	}
	err = s.try(ctx, size, func(ctx context.Context) error {
		body, info, _, err := s.core.GetObject(ctx, s.bucket, s.prefix+name, minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		defer body.Close() //nolint:errcheck // it was read
		if info.Size != size {
			return &sizeError{info.Size, size}
		}
		z = make([]byte, size)
		_, err = io.ReadFull(body, z)
		return err
	})
	if err != nil {
		return nil, err
	}
	return z, nil
}

// sizeError: an object has another size than its row says.
type sizeError struct{ have, want int64 }

func (e *sizeError) Error() string {
	return fmt.Sprintf("the object has %d bytes where %d belong", e.have, e.want)
}

// Delete removes an object.
func (s *S3) Delete(ctx context.Context, name string) error {
	if !isName(name) {
		return nil
	}
	err := s.try(ctx, 0, func(ctx context.Context) error {
		return s.core.RemoveObject(ctx, s.bucket, s.prefix+name, minio.RemoveObjectOptions{})
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// List asks for a thousand objects a request. Objects that Put did not write are left out.
func (s *S3) List(ctx context.Context, fn func(name string, size int64) error) error {
	last := ""
	var stop error
	err := s.try(ctx, 1<<40, func(ctx context.Context) error {
		o := minio.ListObjectsOptions{Prefix: s.prefix, Recursive: true, StartAfter: last}
		for info := range s.core.ListObjectsIter(ctx, s.bucket, o) {
			if info.Err != nil {
				return info.Err
			}
			last = info.Key
			if name := strings.TrimPrefix(info.Key, s.prefix); isName(name) {
				if stop = fn(name, info.Size); stop != nil {
					return nil
				}
			}
		}
		return ctx.Err()
	})
	if stop != nil && stop != fs.SkipAll {
		return stop
	}
	return err
}

// try runs fn, a request with about size bytes, up to three times, while the store does not answer or says that it can't at present. If it
// refuses, once. Either is an *outage.Error: it tells nothing about the object.
func (s *S3) try(ctx context.Context, size int64, fn func(context.Context) error) (err error) {
	for n := range s3Tries {
		if n > 0 {
			select {
			case <-time.After(time.Duration(n*n) * 100 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		request, cancel := context.WithTimeout(ctx, s.patience+time.Duration(size/s3Slowest)*time.Second)
		err = fn(request)
		cancel()
		if err == nil {
			s.failed.Store(nil)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, wrong := errors.AsType[*sizeError](err); wrong {
			return err
		}
		said := minio.ToErrorResponse(err)
		if said.Code == minio.NoSuchKey {
			s.failed.Store(nil)
			return &fs.PathError{Op: "get", Path: said.Key, Err: fs.ErrNotExist}
		}
		status := said.StatusCode // 0: it was not the store that said it
		if status != 0 {          // its words are left out: they may have a key in them
			err = fmt.Errorf("it says %d %s", status, said.Code)
		}
		again := status == http.StatusConflict || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
		if status != 0 && status < 500 && !again {
			break
		}
	}
	err = &outage.Error{What: outage.Contents, Err: err}
	s.failed.Store(&err)
	return err
}
