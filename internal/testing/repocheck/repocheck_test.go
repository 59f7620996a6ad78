// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// loadArchive unpacks a txtar file and loads the tree in it.
func loadArchive(t *testing.T, name string) *Tree {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, f := range archive.Files {
		path := filepath.Join(root, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestEveryRuleCanBeBroken proves that each check finds a violation.
func TestEveryRuleCanBeBroken(t *testing.T) {
	tree := loadArchive(t, filepath.Join("testdata", "broken.txtar"))
	directions := []Direction{
		{Packages: "internal/rules", Outside: []string{"example.net/types"}, Why: "rules are pure"},
		{Packages: "core/...", May: []string{"internal/..."}, Why: "core is the bottom"},
		{Packages: "plug/...", May: []string{"core"}, Why: "plugs are outsiders"},
		{Packages: "good", May: []string{"core", "plug"}, Why: "programs use the library"},
	}
	heavy := []Confined{{Import: "github.com/heavy", To: []string{"good"}, Why: "it is heavy"}}
	must := func(breaches []string, err error) []string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return breaches
	}
	tests := []struct {
		name      string
		got, want []string
	}{
		{"ImportDirections", tree.ImportDirections(directions), []string{
			"internal/rules/rules.go:9: internal/rules must not import example.org/lib/core: rules are pure",
			"internal/rules/rules.go:10: internal/rules must not import example.net/clock: rules are pure",
			"plug/plug.go:5: plug/... must not import example.org/lib/internal/rules: plugs are outsiders",
			"unplaced/unplaced.go: no import direction covers folder unplaced; add one with its reason",
		}},
		{"ConfinedImports", tree.ConfinedImports(heavy), []string{
			"core/core.go:8: github.com/heavy/sdk/client is imported outside good: it is heavy",
		}},
		{"Requirements", tree.Requirements(heavy), []string{
			"go.mod: requires github.com/heavy/sdk, which belongs to good: it is heavy",
		}},
		{"Pure", tree.Pure("internal/rules", "rules are pure"), []string{
			"internal/rules/rules.go:14: internal/rules uses a channel: rules are pure",
			"internal/rules/rules.go:15: internal/rules starts a goroutine: rules are pure",
			"internal/rules/rules.go:15: internal/rules looks at the clock (time.Sleep): rules are pure",
			"internal/rules/rules.go:16: internal/rules looks at the clock (time.Now): rules are pure",
		}},
		{"FileOrders", tree.FileOrders(map[string]int{"plug": 1, "gone": 2}, "core", "internal/...", "plug"), []string{
			"core: 1 of 5 arrows between files point up, and the ceiling is 0: turn 1 of them, such as: two.go uses end of three.go; `go run ./test/report order core` prints all",
			"plug: 0 arrows between files point up, and the ceiling is 1: lower it to 0",
			"gone: has a ceiling, and is no package that is checked: take the ceiling off",
		}},
		{"Licences", tree.Licences(), []string{
			`plug/plug.go: does not begin with "// SPDX-License-Identifier: Apache-2.0" and a blank line`,
		}},
		{"Unfinished", tree.Unfinished(), []string{
			"core/doc.go:6: FIX" + "ME: finish it, or say in a plain sentence what is left out and why",
		}},
		{"Sleeps", tree.Sleeps(), []string{
			"core/core_test.go:7: the test sleeps: wait on a condition, or run it in a synctest bubble",
			"core/whole_test.go:9: the test sleeps: wait on a condition, or run it in a synctest bubble",
		}},
		{"PackageDocs", tree.PackageDocs(), []string{
			"core: 2 package comments, want one: core/core.go, core/doc.go",
			`internal/rules/rules.go: the package comment begins "Rules are pure.", want "Package rules"`,
			`plug/plug.go: the package comment begins "SPDX-License-Identifier: Apache-2.0", want "Package plug"`,
		}},
		{"Replaces", tree.Replaces(), []string{
			"plug/go.mod: requires example.org/lib without replacing it by folder . of the tree",
		}},
		{"MakeTargets", must(tree.MakeTargets("README.md")), []string{
			"README.md: says `make test`, which is no target of the Makefile",
			"README.md: says `make down`, which is no target of the Makefile",
		}},
		{"Links", must(tree.Links()), []string{
			"README.md: links to core/gone.md, which is not there",
			"decisions/README.md: links to 0004-gone.md, which is not there",
		}},
		{"Map", must(tree.Map("MAP.md")), []string{
			"MAP.md: names the folder gone/, which is not there",
			"MAP.md: does not name the folder unplaced/ (as code, with the slash)",
		}},
		{"NamedFiles", must(tree.NamedFiles("MAP.md")), []string{
			"MAP.md: names the file core/gone.go, which is not there",
		}},
		{"FaultTests", must(tree.FaultTests("faults.md", 4, 4)), []string{
			"core/fault_test.go:8: TestFault02IsNotReported is not in faults.md: run `make faults`",
			"core/fault_test.go:9: TestFault77IsNoRow: want the number of a row after TestFault, 01 to 4",
			"core/fault_test.go:10: TestFaultless: want the number of a row after TestFault, 01 to 4",
			"row 3 of the matrix of faults has no test",
		}},
		{"Decisions", must(tree.Decisions("decisions")), []string{
			"decisions/0001-one-thing.md: its number is taken by 0001-another.md",
			`decisions/0005-no-heading.md: want a first line like "# 5. What was decided"`,
			"decisions/2-short.md: want a name like 0001-what-was-decided.md",
			"decisions/README.md: lacks the row | [1](0001-one-thing.md) | One thing |",
			"decisions/README.md: lacks the row | [3](0003-no-index.md) | It is not in the index |",
			"decisions/README.md: has the row | [3](0003-no-index.md) | Said otherwise |, which no decision has",
			"decisions/README.md: has the row | [4](0004-gone.md) | Gone |, which no decision has",
		}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestArchived(t *testing.T) {
	tree, err := Load(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	rows := []Archived{
		{Module: "gopkg.in/yaml.v3", By: []string{"github.com/go-openapi/swag"}, Why: "is true"},
		{Module: "google.golang.org/protobuf", Since: "2020", Instead: "JSON"},
		{Module: "github.com/json-iterator/go", By: []string{"example.org/other"}, Why: "is another"},
		{Module: "example.org/unused", By: []string{"example.org/other"}, Why: "was"},
		{Module: "example.org/absent"},
	}
	got, err := tree.Archived(t.Context(), rows, "providerrpc")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"^google.golang.org/protobuf is imported by .*google.golang.org/grpc.* and archived since 2020: replace it by JSON, or give the reason in its row$",
		"^podruntime/go.mod: requires google.golang.org/protobuf, which is archived since 2020: replace it by JSON$",
		"^github.com/json-iterator/go is imported by sigs.k8s.io/structured-merge-diff/v6, its row has example.org/other$",
		"^example.org/unused is in no build any more: remove By and Why from its row$",
	} {
		if !slices.ContainsFunc(got, regexp.MustCompile(want).MatchString) {
			t.Errorf("breach %d is missing: %s", i, want)
		}
	}
	if t.Failed() || slices.ContainsFunc(got, regexp.MustCompile("yaml.v3|absent").MatchString) {
		t.Errorf("the breaches are\n%s", strings.Join(got, "\n"))
	}
}

func TestDependencyBudget(t *testing.T) {
	tree, err := Load(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	budget := []Budget{{Why: "first", Modules: []string{"github.com/sirupsen/logrus", "example.org/unused"}}}
	got, err := tree.DependencyBudget(t.Context(), budget, "./log/logrus")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"the budget lists example.org/unused, which nothing needs: take it off",
		"golang.org/x/sys is needed (for its package golang.org/x/sys/unix) and not in the budget: do without it, or list it with its reason",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("breaches (-want +got):\n%s", diff)
	}
}
