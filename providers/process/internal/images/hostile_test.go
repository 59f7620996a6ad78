// SPDX-License-Identifier: Apache-2.0

//go:build unix

package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// borrowed is an image with the layers of one image and the configuration of another.
type borrowed struct {
	v1.Image
	config v1.Image
}

func (b borrowed) RawConfigFile() ([]byte, error)      { return b.config.RawConfigFile() }
func (b borrowed) ConfigFile() (*v1.ConfigFile, error) { return b.config.ConfigFile() }
func (b borrowed) ConfigName() (v1.Hash, error)        { return b.config.ConfigName() }
func (b borrowed) Manifest() (*v1.Manifest, error) {
	m, err := b.Image.Manifest()
	if err != nil {
		return nil, err
	}
	other, err := b.config.Manifest()
	if err != nil {
		return nil, err
	}
	m = m.DeepCopy()
	m.Config = other.Config
	return m, nil
}

// TestSecurityI1AnImageDoesNotBorrowAConfiguration checks that the layers of an image must match its
// configuration. Otherwise the first pull under that configuration would decide which files a later pull by
// digest gets.
func TestSecurityI1AnImageDoesNotBorrowAConfiguration(t *testing.T) {
	good, bad := testImage(t, "good"), testImage(t, "bad")
	s, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.addImage(t.Context(), borrowed{bad, good}, Image{Tags: []string{"docker.io/evil/app:1"}}, false)
	if err == nil || !strings.Contains(err.Error(), "the configuration of the image says sha256:") {
		t.Errorf("got %v, want that its files are not those of its configuration", err)
	}
	image, err := s.addImage(t.Context(), good, Image{Tags: []string{"docker.io/good/app:1"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(s.Root(image.ID), "f")); err != nil || string(data) != "good" {
		t.Errorf("files of the image: got %q, %v", data, err)
	}
	more, err := mutate.AppendLayers(good, layerOf(t, entry{name: "f", content: "bad"}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.addImage(t.Context(), borrowed{more, bad}, Image{}, false); err == nil || !strings.Contains(err.Error(), "its configuration says 1") {
		t.Errorf("an image with one more layer than its configuration says: got %v", err)
	}
}

// TestSecurityI1AConfigurationIsItsDigest checks that a configuration in a directory of images matches its
// digest. No other code compares the two there.
func TestSecurityI1AConfigurationIsItsDigest(t *testing.T) {
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	image := testImage(t, "x")
	if err := path.AppendImage(image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "example.com/app:1"})); err != nil {
		t.Fatal(err)
	}
	id, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "blobs", "sha256", id.Hex)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(data, []byte(`"rootfs"`), []byte(` "rootfs"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.TempDir(), Options{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "example.com/app:1"); err == nil || !strings.Contains(err.Error(), "it is not "+id.String()) {
		t.Errorf("got %v, want that the configuration is another one", err)
	}
}

// endless is an endless archive of zeros.
type endless struct{ io.Reader }

func (endless) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func archiveOf(t *testing.T, write func(*tar.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(write(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func header(h tar.Header) []byte {
	var b bytes.Buffer
	h.Mode, h.Uid, h.Gid = 0o644, os.Getuid(), os.Getgid()
	_ = tar.NewWriter(&b).WriteHeader(&h) // the reader notices the missing content
	return b.Bytes()
}

// sparse returns the archive entry of a file of 1 TiB without any content. The tar package's writer cannot make
// one.
func sparse() []byte {
	var records string
	for _, r := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=f", "GNU.sparse.realsize=1099511627776"} {
		n := len(r) + 4 // two digits, a blank and a line feed
		records += strconv.Itoa(n) + " " + r + "\n"
	}
	extended := header(tar.Header{Typeflag: tar.TypeReg, Name: "x", Size: int64(len(records))})[:512]
	extended[156] = tar.TypeXHeader
	setSum(extended)
	var out bytes.Buffer
	block := func(content string) { out.Write(append([]byte(content), make([]byte, 512-len(content))...)) }
	out.Write(extended)
	block(records)
	out.Write(header(tar.Header{Typeflag: tar.TypeReg, Name: "f", Size: 512})[:512])
	block("0\n") // an empty map: no part of the file has content
	block("")
	block("")
	return out.Bytes()
}

// setSum writes the checksum of a header into the header.
func setSum(h []byte) {
	copy(h[148:156], "        ")
	sum := 0
	for _, b := range h[:512] {
		sum += int(b)
	}
	copy(h[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

// TestSecurityI2AnImageIsBounded checks that an image that takes few bytes to send cannot use up the disk, the
// memory or the time of the node.
func TestSecurityI2AnImageIsBounded(t *testing.T) {
	const limit = 8 << 20
	zeros := func(n int64) io.Reader { return io.LimitReader(endless{}, n) }
	for what, c := range map[string]struct {
		layer io.Reader
		want  string
	}{
		"a large file":         {io.MultiReader(bytes.NewReader(header(tar.Header{Typeflag: tar.TypeReg, Name: "f", Size: 1 << 40})), endless{}), "have more than 8388608 bytes"},
		"a sparse file":        {bytes.NewReader(sparse()), "have more than 8388608 bytes"},
		"what follows the end": {io.MultiReader(bytes.NewReader(archiveOf(t, func(*tar.Writer) error { return nil })), endless{}), "follow the end of the archive"},
		"a long name": {bytes.NewReader(archiveOf(t, func(w *tar.Writer) error {
			return w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("a/", 4000) + "f", Mode: 0o644, Format: tar.FormatPAX})
		})), "names of files"},
		"headers without end": {endlessHeaders(), "have more than 8388608 bytes"},
		"a bomb":              {gunzip(t, zeros(1<<30)), "follow the end of the archive"},
	} {
		t.Run(what, func(t *testing.T) {
			u := &unpacker{dir: t.TempDir(), limit: limit}
			err := u.unpackLayer(t.Context(), c.layer, "sha256:0")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if u.read > limit+1<<20 {
				t.Errorf("%d bytes were read", u.read)
			}
			var written int64
			_ = filepath.Walk(u.dir, func(_ string, info os.FileInfo, _ error) error {
				written += info.Size()
				return nil
			})
			if written > limit {
				t.Errorf("%d bytes were written", written)
			}
		})
	}
}

// endlessHeaders returns an endless archive of empty files.
func endlessHeaders() io.Reader {
	h := header(tar.Header{Typeflag: tar.TypeReg, Name: "f"})[:512]
	return &repeated{what: h}
}

type repeated struct {
	what []byte
	at   int
}

func (r *repeated) Read(b []byte) (int, error) {
	n := copy(b, r.what[r.at:])
	r.at = (r.at + n) % len(r.what)
	return n, nil
}

// gunzip returns a file of zeros in an archive, compressed a thousandfold, and opened like a layer of a
// registry.
func gunzip(t *testing.T, zeros io.Reader) io.Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "layer")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	_, err = io.CopyN(z, zeros, 64<<20)
	if err := errors.Join(err, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := openLayer(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return io.MultiReader(bytes.NewReader(header(tar.Header{Typeflag: tar.TypeReg, Name: "f", Size: 1 << 20})[:512]), r)
}

// TestSecurityI7PlainHTTPIsForListedRegistriesOnly checks that localhost and private addresses get no plain HTTP
// unless they are listed.
func TestSecurityI7PlainHTTPIsForListedRegistriesOnly(t *testing.T) {
	var asked atomic.Int32
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	ref, err := name.ParseReference(host + "/app:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, testImage(t, "x")); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{host, strings.Replace(host, "127.0.0.1", "localhost", 1)} {
		s, err := Open(t.TempDir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		asked.Store(0)
		_, err = s.Pull(t.Context(), at+"/app:1", Auth{Username: "u", Password: "p"})
		if err == nil || !strings.Contains(err.Error(), "insecureRegistries") || asked.Load() != 0 {
			t.Errorf("%s: got %v and %d requests, want none, and a word about insecureRegistries", at, err, asked.Load())
		}
		if s, err = Open(t.TempDir(), Options{Insecure: []string{at}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Pull(t.Context(), at+"/app:1", Auth{}); err != nil {
			t.Errorf("%s, listed: got %v", at, err)
		}
	}
}

// TestSecurityI7ARegistryDoesNotLeadToPlainHTTP checks that the token server of a registry, which gets the
// password, gets no request over plain HTTP.
func TestSecurityI7ARegistryDoesNotLeadToPlainHTTP(t *testing.T) {
	var asked atomic.Int32
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(tokens.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+tokens.URL+`/token",service="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	s, err := Open(t.TempDir(), Options{Insecure: []string{host}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pull(t.Context(), host+"/app:1", Auth{Username: "u", Password: "p"}); err == nil || asked.Load() != 0 {
		t.Errorf("got %v, and %d requests to a server that is not listed", err, asked.Load())
	}
}

// TestSecurityI8AStalledRegistryKeepsNobodyWaiting checks that a stalled pull delays neither other images nor
// the same image with other credentials.
func TestSecurityI8AStalledRegistryKeepsNobodyWaiting(t *testing.T) {
	reached, release := make(chan struct{}, 8), make(chan struct{})
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	layer := layerOf(t, entry{name: "f", content: strings.Repeat("x", 4096)})
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layer.Digest()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, digest.String()) && strings.Contains(r.URL.Path, "/slow/") {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			reached <- struct{}{}
			<-release
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	host := strings.TrimPrefix(server.URL, "http://")
	for _, tag := range []string{"slow", "fast"} {
		ref, err := name.ParseReference(host + "/" + tag + "/app:1")
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, image); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(t.TempDir(), Options{Insecure: []string{host}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := s.Pull(ctx, host+"/slow/app:1", Auth{}); ended <- err }()
	<-reached
	soon, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	// This image has the same configuration, and so the same ID, but its registry answers.
	if _, err := s.Pull(soon, host+"/fast/app:1", Auth{}); err != nil {
		t.Errorf("another name of the image: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the stalled pull: got %v", err)
	}
	if entries, err := os.ReadDir(s.Dir()); err != nil || len(entries) != 1 {
		t.Errorf("left of it: %v, %v; want the image only", entries, err)
	}
}

// TestSecurityI5HalfPullsAreRemoved checks that the unfinished pull of an earlier process does not count as an
// image, and is removed.
func TestSecurityI5HalfPullsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	sum := sha256.Sum256(nil)
	for _, name := range []string{newPrefix + "1/image/rootfs", newPrefix + "2", hex.EncodeToString(sum[:]) + "/rootfs"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(); err != nil || len(s.List()) != 0 {
		t.Errorf("got %v and %v", err, s.List())
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
