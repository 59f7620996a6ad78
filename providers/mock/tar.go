// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// tarCommand implements the part of tar that `kubectl cp` needs: it writes or reads an archive over the standard
// streams.
func tarCommand(sh *shell, args []string) error {
	var create, extract bool
	archive, folder, names := "", sh.dir, []string(nil)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		next := func() string {
			if i+1 < len(args) {
				i++
				return args[i]
			}
			return ""
		}
		switch {
		case arg == "-C" || arg == "--directory":
			folder = path.Join(folder, next())
			if strings.HasPrefix(args[i], "/") {
				folder = args[i]
			}
		case arg == "-":
			archive = "-"
		case strings.HasPrefix(arg, "--"):
			// Options about owners and permissions: there are none here.
		case i == 0 || strings.HasPrefix(arg, "-"):
			create = create || strings.Contains(arg, "c")
			extract = extract || strings.Contains(arg, "x")
			if strings.HasSuffix(arg, "f") {
				archive = next()
			}
		default:
			names = append(names, arg)
		}
	}
	switch {
	case archive != "-" || create == extract:
		return sh.fail(2, "tar: only `tar cf - PATH...` and `tar xf - [-C DIR]` work here")
	case create:
		return sh.pack(names)
	}
	return sh.unpack(folder)
}

// pack writes the named files to standard output.
func (sh *shell) pack(names []string) error {
	w := tar.NewWriter(sh.stdout)
	missing := false
	for _, name := range names {
		tree := sh.disk.tree(sh.resolve(name))
		if len(tree) == 0 {
			missing = true
			fmt.Fprintf(sh.stderr, "tar: %s: Cannot stat: No such file or directory\n", name)
		}
		for _, n := range tree {
			f, _ := sh.disk.read(n)
			// As tar does, members lose the slash at the front.
			member := strings.TrimPrefix(n, "/")
			if !strings.HasPrefix(name, "/") {
				member = path.Join(name, strings.TrimPrefix(n, sh.resolve(name)))
			}
			header := &tar.Header{Name: member, Mode: int64(f.mode.Perm()), ModTime: f.modified, Size: int64(len(f.data)), Typeflag: tar.TypeReg}
			if f.mode.IsDir() {
				header.Typeflag, header.Name = tar.TypeDir, member+"/"
			}
			if err := w.WriteHeader(header); err != nil {
				return err
			}
			if _, err := w.Write(f.data); err != nil {
				return err
			}
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if missing {
		return sh.fail(2, "tar: Exiting with failure status due to previous errors")
	}
	return nil
}

// unpack reads an archive from standard input into folder.
func (sh *shell) unpack(folder string) error {
	r := tar.NewReader(sh.stdin)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return sh.fail(2, "tar: %v", err)
		}
		// clean keeps a member with dots below the folder.
		name := path.Join(folder, clean(header.Name))
		switch header.Typeflag {
		case tar.TypeDir:
			err = sh.disk.mkdir(name, time.Now())
		case tar.TypeReg:
			if header.Size > diskLimit {
				return sh.fail(2, "tar: %s: No space left on device", name)
			}
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = sh.disk.write(name, file{data: data, mode: header.FileInfo().Mode().Perm(), modified: header.ModTime})
			}
		default:
			fmt.Fprintf(sh.stderr, "tar: %s: not a file or a folder, left out\n", name)
		}
		if err != nil {
			return sh.fail(2, "tar: %v", err)
		}
	}
}
