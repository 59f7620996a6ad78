// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// What a layer may be at most: an archive of a few bytes can say that it is endless.
const (
	maxBytes   = 64 << 30
	maxEntries = 2_000_000
	maxLinks   = 40
)

// The names by which a layer removes what is below it.
const (
	whiteoutPrefix = ".wh."
	whiteoutOpaque = ".wh..wh..opq"
)

// unpacker writes layers into a directory. Every path goes through an os.Root, so that no link, whoever
// made it, leads out; links inside are followed as if the directory were the root.
type unpacker struct {
	root    *os.Root
	own     bool
	bytes   int64
	entries int
}

func newUnpacker(dir string, own bool) (*unpacker, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &unpacker{root: root, own: own}, nil
}

func (u *unpacker) layer(ctx context.Context, layer v1.Layer) error {
	r, err := layer.Uncompressed()
	if err != nil {
		return err
	}
	defer r.Close()
	defer context.AfterFunc(ctx, func() { r.Close() })()
	if err := u.tar(r); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	// The rest is read so that the digest is checked.
	_, err = io.Copy(io.Discard, r)
	return err
}

// tar writes the entries of one layer. mine are the paths that it wrote: what removes a path removes
// it from the layers below, not from its own.
func (u *unpacker) tar(r io.Reader) error {
	archive, mine := tar.NewReader(r), map[string]bool{}
	var dirs []*tar.Header
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if u.entries++; u.entries > maxEntries {
			return fmt.Errorf("the image has more than %d files", maxEntries)
		}
		if err := u.entry(h, archive, mine); err != nil {
			return fmt.Errorf("%q: %w", h.Name, err)
		}
		if h.Typeflag == tar.TypeDir {
			dirs = append(dirs, h)
		}
	}
	// Last: an entry in a directory changes its time, and may need a right that its mode denies.
	for _, h := range dirs {
		name, err := u.place(h.Name)
		if err != nil || name == "." {
			continue
		}
		if info, err := u.root.Lstat(name); err == nil && info.IsDir() {
			if err := u.attributes(name, h); err != nil {
				return fmt.Errorf("%q: %w", h.Name, err)
			}
		}
	}
	return nil
}

func (u *unpacker) entry(h *tar.Header, content io.Reader, mine map[string]bool) error {
	name, err := u.place(h.Name)
	if err != nil || name == "." {
		return err
	}
	dir, base := path.Split(name)
	dir = path.Clean("./" + dir)
	if base == whiteoutOpaque {
		return u.empty(dir, mine)
	}
	if hidden, ok := strings.CutPrefix(base, whiteoutPrefix); ok {
		if hidden == "" || hidden == "." || hidden == ".." {
			return errors.New("removes nothing that has a name")
		}
		if gone := path.Join(dir, hidden); !mine[gone] {
			return u.root.RemoveAll(gone)
		}
		return nil
	}
	if err := u.root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for p := name; p != "."; p = path.Dir(p) {
		mine[p] = true
	}
	return u.write(name, h, content)
}

// write makes one file, in place of what is there.
func (u *unpacker) write(name string, h *tar.Header, content io.Reader) error {
	info, err := u.root.Lstat(name)
	if err == nil && !(info.IsDir() && h.Typeflag == tar.TypeDir) {
		if err := u.root.RemoveAll(name); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := u.root.MkdirAll(name, 0o755); err != nil {
			return err
		}
		return u.root.Chmod(name, 0o755)
	case tar.TypeReg:
		if err := u.file(name, content); err != nil {
			return err
		}
	case tar.TypeSymlink:
		if err := u.root.Symlink(h.Linkname, name); err != nil {
			return err
		}
	case tar.TypeLink:
		target, err := u.place(h.Linkname)
		if err != nil {
			return err
		}
		return u.root.Link(target, name)
	default:
		return nil // devices and pipes are not for an image to make
	}
	return u.attributes(name, h)
}

func (u *unpacker) file(name string, content io.Reader) error {
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(content, maxBytes-u.bytes+1))
	u.bytes += n
	if u.bytes > maxBytes {
		err = fmt.Errorf("the image has more than %d bytes", int64(maxBytes))
	}
	return errors.Join(err, f.Close())
}

// attributes sets owner, mode and time.
func (u *unpacker) attributes(name string, h *tar.Header) error {
	if u.own {
		if err := u.root.Lchown(name, h.Uid, h.Gid); err != nil {
			return err
		}
	}
	if h.Typeflag == tar.TypeSymlink {
		return nil
	}
	mode := h.FileInfo().Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	if !u.own {
		// Whoever is not root needs its own rights to read and to remove the file again.
		mode &^= fs.ModeSetuid | fs.ModeSetgid
		mode |= 0o600
		if h.Typeflag == tar.TypeDir {
			mode |= 0o700
		}
	}
	if err := u.root.Chmod(name, mode); err != nil {
		return err
	}
	return u.root.Chtimes(name, h.ModTime, h.ModTime)
}

// empty removes what layers below have in dir.
func (u *unpacker) empty(dir string, mine map[string]bool) error {
	f, err := u.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	names, err := f.Readdirnames(-1)
	f.Close()
	if err != nil {
		return err
	}
	for _, name := range names {
		p := path.Join(dir, name)
		if !mine[p] {
			err = errors.Join(err, u.root.RemoveAll(p))
			continue
		}
		if info, lerr := u.root.Lstat(p); lerr == nil && info.IsDir() {
			err = errors.Join(err, u.empty(p, mine))
		}
	}
	return err
}

// place returns the path of an entry, relative and without links but the last: a link in an
// image is relative to the root of the image.
func (u *unpacker) place(name string) (string, error) {
	rest := strings.Split(path.Clean("/"+name), "/")[1:]
	done, links := ".", 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, part)
		info, err := u.root.Lstat(next)
		if len(rest) == 0 || err != nil || info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", errors.New("too many links")
		}
		target, err := u.root.Readlink(next)
		if err != nil {
			return "", err
		}
		if path.IsAbs(target) {
			done = "."
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, nil
}
