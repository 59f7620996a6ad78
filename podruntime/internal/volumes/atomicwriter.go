// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	currentLink = "..data"     // points to the current version
	nextLink    = "..data_tmp" // takes its place
)

// file is a file of a volume.
type file struct {
	data []byte
	mode fs.FileMode
	user *int64 // its owner; nil is ours
}

// projectFiles updates the files of a volume. A version is a directory with a timestamp in its name. It is complete, with its group, before ..data
// points to it. The names in the volume are links through ..data. The next call repairs the state after a crash: it removes unpublished links and
// versions, and adds missing links.
func projectFiles(root *os.Root, files map[string]file, group *int64) error {
	files, err := cleanPaths(files)
	if err != nil {
		return err
	}
	current := currentVersion(root)
	if current == "" || !hasFiles(root, current, files) {
		next, err := writeVersion(root, files, group)
		if err != nil {
			return err
		}
		if err := publishVersion(root, next); err != nil {
			return err
		}
		current = next
	}
	return tidyLinks(root, current, files)
}

// cleanPaths validates the paths of files, and returns the files by their cleaned paths.
func cleanPaths(files map[string]file) (map[string]file, error) {
	out := make(map[string]file, len(files))
	for name, f := range files {
		switch parts := strings.Split(name, "/"); {
		case name == "":
			return nil, fmt.Errorf("invalid path: must not be empty: %q", name)
		case path.IsAbs(name):
			return nil, fmt.Errorf("invalid path: must be relative path: %s", name)
		case len(name) > 4096:
			return nil, errors.New("invalid path: must be less than or equal to 4096 characters")
		case slices.Contains(parts, ".."):
			return nil, fmt.Errorf("invalid path: must not contain '..': %s", name)
		case slices.ContainsFunc(parts, func(p string) bool { return len(p) > 255 }):
			return nil, errors.New("invalid path: filenames must be less than or equal to 255 characters")
		case strings.HasPrefix(path.Clean(name), ".."):
			return nil, fmt.Errorf("invalid path: must not start with '..': %s", name)
		}
		out[path.Clean(name)] = f
	}
	return out, nil
}

// currentVersion returns the current version, or "" if there is no complete version. A version gets its name when it is complete, and a published
// version never changes.
func currentVersion(root *os.Root) string {
	name, err := root.Readlink(currentLink)
	if err != nil || !strings.HasPrefix(name, "..") || !isPlainName(name) {
		return ""
	}
	if info, err := root.Lstat(name); err != nil || !info.IsDir() {
		return ""
	}
	return name
}

// hasFiles reports whether a version has these files and no others.
func hasFiles(root *os.Root, version string, files map[string]file) bool {
	found := 0
	err := fs.WalkDir(root.FS(), version, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, ok := files[strings.TrimPrefix(name, version+"/")]
		if !ok {
			return fs.ErrNotExist
		}
		data, err := root.ReadFile(name)
		if err == nil && !bytes.Equal(data, f.data) {
			err = fs.ErrInvalid
		}
		found++
		return err
	})
	return err == nil && found == len(files)
}

// writeVersion makes a new version, and returns its name.
func writeVersion(root *os.Root, files map[string]file, group *int64) (string, error) {
	name := time.Now().UTC().Format("..2006_01_02_15_04_05.") + strconv.FormatUint(rand.Uint64(), 36)
	if err := makeDir(root, name, 0o755); err != nil {
		return "", err
	}
	for _, rel := range slices.Sorted(maps.Keys(files)) {
		f := files[rel]
		full := name + "/" + rel
		if err := root.MkdirAll(path.Dir(full), 0o777); err != nil {
			return "", err
		}
		if err := root.WriteFile(full, f.data, 0o600); err != nil {
			return "", err
		}
		if err := root.Chmod(full, f.mode); err != nil { // independent of the umask
			return "", err
		}
		if f.user != nil {
			if err := ignoreRights(root.Lchown(full, int(*f.user), -1)); err != nil {
				return "", err
			}
		}
	}
	return name, giveTo(root, name, group, true)
}

// publishVersion makes ..data point to a version. The rename changes the volume atomically.
func publishVersion(root *os.Root, version string) error {
	if err := root.RemoveAll(nextLink); err != nil { // left by a process that crashed here
		return err
	}
	if err := root.Symlink(version, nextLink); err != nil {
		return err
	}
	return root.Rename(nextLink, currentLink)
}

// tidyLinks links new files in the volume, and removes the files of older versions.
func tidyLinks(root *os.Root, current string, files map[string]file) error {
	tops := map[string]bool{}
	for name := range files {
		top, _, _ := strings.Cut(name, "/")
		tops[top] = true
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		switch link, _ := root.Readlink(name); {
		case name == currentLink || name == current:
		case strings.HasPrefix(name, ".."):
			err = root.RemoveAll(name)
		case link == currentLink+"/"+name && !tops[name]:
			err = root.Remove(name)
		default:
			delete(tops, name) // the link exists already, or the name is a directory with another volume mounted on it
		}
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tops)) {
		if err := root.Symlink(currentLink+"/"+name, name); err != nil {
			return err
		}
	}
	return nil
}
