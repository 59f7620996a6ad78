// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podjob

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// account is a user in the files of an image.
type account struct {
	uid, gid int
	home     string
	groups   []int
}

// accounts reads /etc/passwd and /etc/group of an untrusted image.
type accounts struct{ root string }

// user finds a user by USER[:GROUP], each a name or a number. A number does not have to be in the files.
func (a accounts) user(text string) (account, error) {
	wanted, group, _ := strings.Cut(cmp.Or(text, "0"), ":")
	number, err := strconv.Atoi(wanted)
	isNumber := err == nil
	found := account{uid: number, home: "/"}
	known, named := false, wanted
	for _, f := range a.lines("passwd", 6) {
		uid, err1 := strconv.Atoi(f[2])
		gid, err2 := strconv.Atoi(f[3])
		if err1 == nil && err2 == nil && (isNumber && uid == number || f[0] == wanted) {
			found, known, named = account{uid: uid, gid: gid, home: cmp.Or(f[5], "/")}, true, f[0]
			break
		}
	}
	if !known && !isNumber {
		return found, fmt.Errorf("user %q: the image has none of that name", wanted)
	}
	for _, f := range a.lines("group", 4) {
		gid, err := strconv.Atoi(f[2])
		if err == nil && slices.Contains(strings.Split(f[3], ","), named) {
			found.groups = append(found.groups, gid)
		}
	}
	if group == "" {
		return found, nil
	}
	if found.gid, err = strconv.Atoi(group); err == nil {
		return found, nil
	}
	for _, f := range a.lines("group", 3) {
		if f[0] == group {
			found.gid, err = strconv.Atoi(f[2])
			return found, err
		}
	}
	return found, fmt.Errorf("group %q: the image has none of that name", group)
}

// maxAccounts is the largest number of bytes to read of each file.
const maxAccounts = 1 << 20

// lines returns the lines of a file with at least so many fields.
func (a accounts) lines(name string, least int) (all [][]string) {
	root, err := os.OpenRoot(a.root)
	if err != nil {
		return nil
	}
	defer root.Close()
	path := filepath.Join("etc", name)
	if info, err := root.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	file, err := root.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	data, _ := io.ReadAll(io.LimitReader(file, maxAccounts))
	for line := range strings.Lines(string(data)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) >= least {
			all = append(all, f)
		}
	}
	return all
}
