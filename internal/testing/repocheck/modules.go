// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// Replaces checks that modules take required modules of the repository from the tree.
func (t *Tree) Replaces() (breaches []string) {
	for _, dir := range slices.Sorted(maps.Keys(t.Modules)) {
		mod := t.Modules[dir]
		for _, req := range mod.Require {
			folder, ours := t.folderOf(req.Mod.Path)
			if !ours || replacedBy(mod, dir, req.Mod.Path) == folder {
				continue
			}
			breaches = append(breaches, fmt.Sprintf("%s: requires %s without replacing it by folder %s of the tree",
				path.Join(dir, "go.mod"), req.Mod.Path, folder))
		}
	}
	return breaches
}

// replacedBy returns the replacing folder of a module, relative to the root.
func replacedBy(mod *modfile.File, dir, modulePath string) string {
	for _, r := range mod.Replace {
		if r.Old.Path == modulePath && r.New.Version == "" {
			return path.Join(dir, r.New.Path)
		}
	}
	return ""
}

// Requirements checks that no module requires a module with one of the path prefixes, not even indirectly,
// except for the modules in the folders to.
func (t *Tree) Requirements(rules []Confined) (breaches []string) {
	for _, dir := range slices.Sorted(maps.Keys(t.Modules)) {
		for _, req := range t.Modules[dir].Require {
			for _, r := range rules {
				if matchesPattern(r.Import+"/...", req.Mod.Path) && !matchesAny(r.To, dir) {
					breaches = append(breaches, fmt.Sprintf("%s: requires %s, which belongs to %s: %s",
						path.Join(dir, "go.mod"), req.Mod.Path, strings.Join(r.To, ", "), r.Why))
				}
			}
		}
	}
	return breaches
}

// Budget is a list of allowed modules, with one reason.
type Budget struct {
	Why     string
	Modules []string
}

// DependencyBudget compares the modules for building the packages, without their tests, with the budget. Modules
// missing in the budget are breaches, and so are unneeded modules in it.
func (t *Tree) DependencyBudget(ctx context.Context, budget []Budget, packages ...string) ([]string, error) {
	needed, err := t.neededBy(ctx, packages)
	if err != nil {
		return nil, err
	}
	allowed := map[string]bool{}
	var breaches []string
	for _, b := range budget {
		for _, m := range b.Modules {
			if allowed[m] {
				breaches = append(breaches, fmt.Sprintf("the budget lists %s twice", m))
			}
			allowed[m] = true
			if needed[m] == "" {
				breaches = append(breaches, fmt.Sprintf("the budget lists %s, which nothing needs: take it off", m))
			}
		}
	}
	for _, m := range slices.Sorted(maps.Keys(needed)) {
		if !allowed[m] {
			breaches = append(breaches, fmt.Sprintf("%s is needed (for its package %s) and not in the budget: do without it, or list it with its reason", m, needed[m]))
		}
	}
	return breaches, nil
}

// neededBy returns the modules in packages beyond the library, each with one of its used packages.
func (t *Tree) neededBy(ctx context.Context, packages []string) (map[string]string, error) {
	out, err := t.list(ctx, ".", "{{with .Module}}{{.Path}} {{end}}{{.ImportPath}}", packages...)
	if err != nil {
		return nil, err
	}
	needed := map[string]string{}
	for line := range strings.Lines(out) {
		module, pkg, found := strings.Cut(strings.TrimSpace(line), " ")
		if found && module != t.ModulePath {
			needed[module] = pkg
		}
	}
	return needed, nil
}

// list runs go list in a folder of the tree, for the packages and all their dependencies.
func (t *Tree) list(ctx context.Context, dir, format string, packages ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-f", format}, packages...)...)
	cmd.Dir = filepath.Join(t.Root, dir)
	// The answer depends on the platform; one platform is enough for a budget.
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("list the dependencies of %s in %s: %w\n%s", strings.Join(packages, " "), dir, err, stderr.String())
	}
	return string(out), nil
}
