// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// Languages are the supported languages of providers.
var Languages = []string{"go", "python"}

var nameFormat = regexp.MustCompile(`^[a-z][a-z0-9]{0,30}$`)

// taken are names of folders, packages and imports in the generated code, and words that YAML does not parse as strings.
var taken = []string{
	"bin", "cli", "init", "internal", "main", "testdata", "toy", "vendor",
	"false", "n", "no", "null", "off", "on", "true", "y", "yes",
}

func (n New) checkName() error {
	switch {
	case n.Name == "":
		return errors.New("the provider has no name: set --name to the value that users will pass to --provider, such as nomad")
	case !nameFormat.MatchString(n.Name):
		return fmt.Errorf("--name %q: want a lower-case letter, and up to 30 lower-case letters and digits after it: it becomes the name of a package, too", n.Name)
	case token.IsKeyword(n.Name) || slices.Contains(taken, n.Name):
		return fmt.Errorf("--name %q: the name means something else in a Go module or in YAML: choose another one", n.Name)
	}
	return nil
}

func (n New) checkLanguage() error {
	if !slices.Contains(Languages, n.Language) {
		return fmt.Errorf("--language %q: want one of: %s", n.Language, strings.Join(Languages, ", "))
	}
	return nil
}

func (n New) checkModule() error {
	if n.Module == "" && n.Language == "python" {
		return nil
	}
	if n.Module == "" {
		return errors.New("the module has no path: set --module to where its repository will be, such as example.com/me/vk-foo")
	}
	if n.Module == libraryModule || strings.HasPrefix(n.Module, libraryModule+"/") {
		return fmt.Errorf("--module %q: that is the path of virtual-kubelet: set it to where your own repository will be, such as example.com/me/vk-foo", n.Module)
	}
	if err := module.CheckPath(n.Module); err != nil {
		return fmt.Errorf("--module: %w: set it to where the repository will be, such as example.com/me/vk-foo", err)
	}
	return nil
}

// checkDir returns an error unless the folder is empty or missing.
func (n New) checkDir() error {
	if n.Dir == "" {
		return errors.New("there is no folder to write to: name one that does not exist yet")
	}
	entries, err := os.ReadDir(n.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return n.checkParent()
	case err != nil:
		return fmt.Errorf("%s is not a folder to write to: name one that does not exist yet: %w", n.Dir, err)
	case len(entries) == 0:
		return nil
	}
	if has := moduleIn(n.Dir); has != "" {
		return fmt.Errorf("%s has the module %s already: name a folder that does not exist yet; nothing was written", n.Dir, has)
	}
	return fmt.Errorf("%s is not empty: name a folder that does not exist yet; nothing was written", n.Dir)
}

func (n New) checkParent() error {
	parent := filepath.Dir(filepath.Clean(n.Dir))
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is to be a folder in %s, which is not there: make that first", n.Dir, parent)
	}
	return nil
}

// moduleIn returns the path of the module in a folder, or "" if there is none.
func moduleIn(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return ""
	}
	return modfile.ModulePath(data)
}
