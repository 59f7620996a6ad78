// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// endingLayer is a layer whose reader cancels the context in the middle of a Read.
type endingLayer struct {
	v1.Layer
	content io.Reader
	end     context.CancelFunc
	closed  bool
	broken  bool // it was closed during a read
}

func (l *endingLayer) Uncompressed() (io.ReadCloser, error) { return l, nil }

func (l *endingLayer) Read(b []byte) (int, error) {
	l.end()
	synctest.Wait()
	l.broken = l.broken || l.closed
	return l.content.Read(b)
}

func (l *endingLayer) Close() error { l.closed = true; return nil }

// TestUnpackingEndsWithItsContext checks that unpacking ends after the current Read, and not by a concurrent
// Close, which the decompressor does not allow.
func TestUnpackingEndsWithItsContext(t *testing.T) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, err := range []error{w.WriteHeader(&tar.Header{Name: "file", Mode: 0o644}), w.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		u := &unpacker{dir: dir, limit: 1 << 20}
		ctx, cancel := context.WithCancel(t.Context())
		l := &endingLayer{content: &archive, end: cancel}
		if err := u.unpackLayer(ctx, l, ""); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that the context has ended", err)
		}
		if l.broken || l.closed {
			t.Errorf("closed while it was read: %t, closed at all: %t", l.broken, l.closed)
		}
	})
}
