// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/containerd/containerd/v2/pkg/archive"
)

// Limits of an image: a small archive can unpack to any size.
const (
	maxBytes   = 64 << 30
	maxEntries = 1_000_000
	// maxName limits the path of a file, like the kernel, and maxNames the memory of all paths.
	maxName  = 4096
	maxNames = 256 << 20
	// maxRest limits the data after the end of an archive: tar programs pad archives to a block.
	maxRest = 1 << 20
)

// unpacker unpacks the layers of one image into a directory. containerd's code handles paths and whiteouts; the
// unpacker verifies the layers against the image's configuration, and enforces limits.
type unpacker struct {
	dir string
	own bool
	// limit is the maximum number of bytes, for the files and for the archives.
	limit int64
	// entries, names, bytes and read are the sums over all layers so far.
	entries, names int
	bytes, read    int64
}

// unpackLayer unpacks an archive, and verifies that its digest is diffID: the configuration lists the digests of
// the layers, and the digest of the configuration is the ID of the image.
func (u *unpacker) unpackLayer(ctx context.Context, content io.Reader, diffID string) error {
	sum := sha256.New()
	r := &bounded{ctx: ctx, r: io.TeeReader(content, sum), u: u}
	options := []archive.ApplyOpt{archive.WithFilter(u.acceptEntry)}
	if !u.own {
		options = append(options, archive.WithNoSameOwner())
	}
	if _, err := archive.Apply(ctx, u.dir, r, options...); err != nil {
		return err
	}
	rest, err := io.CopyN(io.Discard, r, maxRest+1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if rest > maxRest {
		return fmt.Errorf("more than %d bytes follow the end of the archive", maxRest)
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != diffID {
		return fmt.Errorf("its files are %s, and the configuration of the image says %s", got, diffID)
	}
	return nil
}

// acceptEntry reports whether to unpack the entry. It checks the limits before the entry is written, so a huge
// sparse file does not reach the disk.
func (u *unpacker) acceptEntry(h *tar.Header) (bool, error) {
	u.entries++
	u.names += len(h.Name) + len(h.Linkname)
	u.bytes += h.Size
	switch {
	case u.entries > maxEntries:
		return false, fmt.Errorf("the image has more than %d files", maxEntries)
	case len(h.Name) > maxName || len(h.Linkname) > maxName || u.names > maxNames:
		return false, fmt.Errorf("the names of files in the image are longer than %d bytes each, or %d together", maxName, maxNames)
	case h.Size < 0 || u.bytes > u.limit:
		return false, fmt.Errorf("the files of the image have more than %d bytes, and there is no room for more", u.limit)
	}
	switch h.Typeflag {
	case tar.TypeBlock, tar.TypeChar, tar.TypeFifo:
		return false, nil // images may not contain devices and pipes
	}
	for key := range h.PAXRecords {
		if name, ok := strings.CutPrefix(key, "SCHILY.xattr."); ok && !u.keepsAttribute(name) {
			delete(h.PAXRecords, key)
		}
	}
	if !u.own {
		// A non-root process needs permissions to read and remove the file later.
		h.Mode &^= 0o6000
		h.Mode |= 0o600
		if h.Typeflag == tar.TypeDir {
			h.Mode |= 0o100
		}
	}
	return true, nil
}

// keepsAttribute reports whether to unpack the extended attribute. The kernel would interpret overlay attributes,
// which would change the files that a container sees.
func (u *unpacker) keepsAttribute(name string) bool {
	if strings.HasPrefix(name, "user.") {
		return !strings.HasPrefix(name, "user.overlay.")
	}
	return u.own && name == "security.capability"
}

// bounded reads until its context ends, or until the layers of the image exceed their limit. Ending the reads is
// the only way to stop, because a decompressor must not be closed during a read.
type bounded struct {
	ctx context.Context
	r   io.Reader
	u   *unpacker
}

// Read reads, or returns the reason why the read is refused.
func (b *bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.r.Read(p)
	if b.u.read += int64(n); b.u.read > b.u.limit {
		return 0, fmt.Errorf("the layers of the image have more than %d bytes, and there is no room for more", b.u.limit)
	}
	return n, err
}
