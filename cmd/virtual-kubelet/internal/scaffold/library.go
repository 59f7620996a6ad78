// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// libraryModule is the path of the library.
const libraryModule = "github.com/virtual-kubelet/virtual-kubelet"

// Library is the source of the library: a tree on this machine, or a release.
type Library struct {
	Tree    string // an absolute path
	Version string // such as v1.2.3
}

// described matches the version of a build between two releases, in the format of git describe.
var described = regexp.MustCompile(`-[0-9]+-g[0-9a-f]+$|-dirty$`)

// FindLibrary returns the tree at the path replace. If that path is empty, it returns the program's release of
// that version. For a build without a release it returns the first tree found above one of the folders.
func FindLibrary(replace, version string, folders ...string) (Library, error) {
	if replace != "" {
		dir, err := filepath.Abs(replace)
		if err != nil {
			return Library{}, fmt.Errorf("--replace %s: %w", replace, err)
		}
		if moduleIn(dir) != libraryModule {
			return Library{}, fmt.Errorf("--replace %s: there is no go.mod of %s: name the root of a clone of virtual-kubelet", replace, libraryModule)
		}
		return Library{Tree: dir}, nil
	}
	if semver.IsValid(version) && semver.Build(version) == "" && !described.MatchString(version) {
		return Library{Version: version}, nil
	}
	for _, dir := range folders {
		for ; dir != ""; dir = parentFolder(dir) {
			if moduleIn(dir) == libraryModule {
				return Library{Tree: dir}, nil
			}
		}
	}
	return Library{}, fmt.Errorf("this program is no release (%s), and no clone of virtual-kubelet is around it: set --replace to the root of a clone, which the new module will be built with", version)
}

// parentFolder returns the folder that contains dir, or "" for the root.
func parentFolder(dir string) string {
	if parent := filepath.Dir(dir); parent != dir {
		return parent
	}
	return ""
}

// Folders returns the possible folders inside a clone: the folder of the program, and the working directory.
func Folders() (folders []string) {
	if program, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(program); err == nil {
			program = real
		}
		folders = append(folders, filepath.Dir(program))
	}
	if dir, err := os.Getwd(); err == nil {
		folders = append(folders, dir)
	}
	return folders
}

// goVersion is the Go version of new modules: the same as in the library.
const goVersion = "1.26.0"

// unreleased is the version in the requirements between modules of the tree.
const unreleased = "v0.0.0-00010101000000-000000000000"

// goMod returns a go.mod that requires modules of the library. Modules are named by their folders; "" is the
// library's root.
func (l Library) goMod(path string, folders ...string) ([]byte, error) {
	f := &modfile.File{}
	steps := []error{f.AddModuleStmt(path), f.AddGoStmt(goVersion)}
	for _, folder := range folders {
		name := libraryModule
		if folder != "" {
			name += "/" + folder
		}
		if l.Tree == "" {
			steps = append(steps, f.AddRequire(name, l.Version))
			if len(folders) > 1 { // the modules require each other with the unpublished version unreleased
				steps = append(steps, f.AddReplace(name, "", name, l.Version))
			}
			continue
		}
		steps = append(steps, f.AddRequire(name, unreleased), f.AddReplace(name, "", filepath.Join(l.Tree, filepath.FromSlash(folder)), ""))
	}
	versions, err := l.requiredVersions()
	if err != nil {
		return nil, fmt.Errorf("write go.mod of %s: %w", path, err)
	}
	for _, v := range versions {
		f.AddNewRequire(v.Path, v.Version, true)
	}
	for _, err := range steps {
		if err != nil {
			return nil, fmt.Errorf("write go.mod of %s: %w", path, err)
		}
	}
	text, err := f.Format()
	if err != nil {
		return nil, fmt.Errorf("write go.mod of %s: %w", path, err)
	}
	head := "// SPDX-License-Identifier: Apache-2.0\n"
	if l.Tree != "" {
		head += "//\n// FILL(release): take out each replace, and ask for a release of virtual-kubelet: the path below is of the machine that this was written on.\n"
	}
	return []byte(head + strings.Replace("\n"+string(text), "\n\n\n", "\n\n", 1)), nil
}

// requiredVersions returns the modules required by the program of a tree, with their versions. With the same versions, a provider reuses the compiled
// packages in the build cache of Go. With only the library, Go would select the oldest versions and compile them again.
func (l Library) requiredVersions() (list []module.Version, err error) {
	if l.Tree == "" {
		return nil, nil
	}
	name := filepath.Join(l.Tree, "cmd", "virtual-kubelet", "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the versions of the program: %w", err)
	}
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, fmt.Errorf("read the versions of the program: %w", err)
	}
	for _, r := range file.Require {
		if !strings.HasPrefix(r.Mod.Path, libraryModule) {
			list = append(list, r.Mod)
		}
	}
	return list, nil
}
