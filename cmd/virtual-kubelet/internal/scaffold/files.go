// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed vk-skeleton python both
var templates embed.FS

// placeOfTemplates is the import path of the templates.
const placeOfTemplates = libraryModule + "/cmd/virtual-kubelet/internal/scaffold/vk-skeleton"

// file is a file to write.
type file struct {
	path string // with slashes
	text []byte
	mode fs.FileMode
}

// makeFiles returns all files of the provider.
func (n New) makeFiles() (all []file, err error) {
	roots := []string{"both", map[string]string{"go": "vk-skeleton", "python": "python"}[n.Language]}
	for _, root := range roots {
		err := fs.WalkDir(templates, root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := templates.ReadFile(name)
			if err != nil {
				return err
			}
			all = append(all, n.makeFile(strings.TrimPrefix(name, root+"/"), string(text)))
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the templates: %w", err)
		}
	}
	mod, err := n.makeGoMod()
	return append(all, mod), err
}

// makeFile makes a file from a template.
func (n New) makeFile(name, text string) file {
	words := strings.NewReplacer(
		placeOfTemplates, n.Module,
		"skeleton", n.Name, "Skeleton", strings.ToUpper(n.Name[:1])+n.Name[1:], "SKELETON", strings.ToUpper(n.Name),
	)
	f := file{path: words.Replace(name), text: []byte(words.Replace(text)), mode: 0o644}
	if path.Base(f.path) == "gitignore" {
		f.path = path.Join(path.Dir(f.path), ".gitignore")
	}
	if strings.HasPrefix(text, "#!") {
		f.mode = 0o755
	}
	return f
}

// makeGoMod returns the go.mod of a provider in Go, or of the contract tests of a provider in Python.
func (n New) makeGoMod() (f file, err error) {
	f = file{path: "go.mod", mode: 0o644}
	if n.Language == "go" {
		f.text, err = n.Library.goMod(n.Module, "")
		return f, err
	}
	module := n.Module
	if module == "" {
		module = "vk-" + n.Name
	}
	f.path = "contract/go.mod"
	f.text, err = n.Library.goMod(module+"/contract", "", "podruntime", "providerrpc", "providers")
	return f, err
}
