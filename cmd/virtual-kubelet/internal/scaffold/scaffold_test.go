// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"go/format"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// tree is the root of this repository.
func tree(t *testing.T) Library {
	t.Helper()
	library, err := FindLibrary("../../../..", "")
	if err != nil {
		t.Fatal(err)
	}
	return library
}

func TestBadInputWritesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(n *New)
		want   []string
	}{
		"no name":             {func(n *New) { n.Name = "" }, []string{"--name", "nomad"}},
		"upper case":          {func(n *New) { n.Name = "Foo" }, []string{"--name", `"Foo"`, "lower-case"}},
		"a hyphen":            {func(n *New) { n.Name = "my-foo" }, []string{"--name", `"my-foo"`, "package"}},
		"a keyword":           {func(n *New) { n.Name = "func" }, []string{"--name", `"func"`, "another"}},
		"a name that clashes": {func(n *New) { n.Name = "cli" }, []string{"--name", `"cli"`, "another"}},
		"the toy":             {func(n *New) { n.Name = "toy" }, []string{"--name", `"toy"`, "another"}},
		"a Go function":       {func(n *New) { n.Name = "init" }, []string{"--name", `"init"`, "another"}},
		"a truth of YAML":     {func(n *New) { n.Name = "true" }, []string{"--name", `"true"`, "another"}},
		"nothing in YAML":     {func(n *New) { n.Name = "null" }, []string{"--name", `"null"`, "another"}},
		"an answer of YAML":   {func(n *New) { n.Name = "no" }, []string{"--name", `"no"`, "another"}},
		"a letter of YAML":    {func(n *New) { n.Name = "y" }, []string{"--name", `"y"`, "another"}},
		"a switch of YAML":    {func(n *New) { n.Name = "on" }, []string{"--name", `"on"`, "another"}},
		"no module":           {func(n *New) { n.Module = "" }, []string{"--module", "example.com/me/vk-foo"}},
		"a module of nowhere": {func(n *New) { n.Module = "vk foo" }, []string{"--module", "vk foo", "example.com/me/vk-foo"}},
		"a URL":               {func(n *New) { n.Module = "https://example.com/vk-foo" }, []string{"--module", "https://example.com/vk-foo"}},
		"our module":          {func(n *New) { n.Module = libraryModule + "/foo" }, []string{"--module", libraryModule, "your own"}},
		"unknown language":    {func(n *New) { n.Language = "rust" }, []string{"--language", `"rust"`, "go, python"}},
		"no folder":           {func(n *New) { n.Dir = "" }, []string{"folder"}},
		"no parent":           {func(n *New) { n.Dir = filepath.Join(n.Dir, "a", "b") }, []string{"a", "not there", "make that first"}},
		"a file":              {func(n *New) { write(t, n.Dir, "text") }, []string{"not a folder"}},
		"not empty":           {func(n *New) { write(t, filepath.Join(n.Dir, "notes.txt"), "text") }, []string{"not empty", "does not exist yet"}},
		"a module is there": {func(n *New) { write(t, filepath.Join(n.Dir, "go.mod"), "module example.com/me/vk-foo\n") },
			[]string{"has the module example.com/me/vk-foo", "does not exist yet"}},
		"several at once": {func(n *New) { n.Name, n.Language = "", "rust" }, []string{"--name", "--language"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			n := New{Module: "example.com/me/vk-foo", Name: "foo", Language: "go", Dir: filepath.Join(dir, "vk-foo"), Library: tree(t)}
			tt.change(&n)
			before := list(t, dir)
			err := n.Write()
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if after := list(t, dir); !slices.Equal(after, before) {
				t.Errorf("there are %q, before there were %q", after, before)
			}
		})
	}
}

func TestWriteThatFailsLeavesNothing(t *testing.T) {
	for name, files := range map[string][]file{
		"half-way":   {{path: "a", mode: 0o600}, {path: "a/b", mode: 0o600}},
		"at the end": {{path: "a", mode: 0o600}},
	} {
		dir := t.TempDir()
		if name == "at the end" {
			write(t, filepath.Join(dir, "vk-foo", "came-meanwhile"), "")
		}
		before := list(t, dir)
		if err := placeFolder(filepath.Join(dir, "vk-foo"), files); err == nil {
			t.Errorf("%s: got no error", name)
		}
		if after := list(t, dir); !slices.Equal(after, before) {
			t.Errorf("%s: there are %q, before there were %q", name, after, before)
		}
	}
}

func TestEmptyFolderIsTaken(t *testing.T) {
	n := New{Module: "example.com/me/vk-foo", Name: "foo", Language: "go", Dir: t.TempDir(), Library: tree(t)}
	if err := n.Write(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(n.Dir, "foo", "driver.go")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("driver.go: %v, %v", info, err)
	}
	if info, err := os.Stat(n.Dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the folder: %v, %v", info, err)
	}
}

func TestLibrary(t *testing.T) {
	root := tree(t).Tree
	deep := filepath.Join(root, "cmd", "virtual-kubelet")
	outside := t.TempDir()
	for name, tt := range map[string]struct {
		replace, version string
		folders          []string
		want             Library
		err              string
	}{
		"a release":                  {"", "v1.2.3", []string{deep}, Library{Version: "v1.2.3"}, ""},
		"a candidate":                {"", "v1.2.3-rc.1", nil, Library{Version: "v1.2.3-rc.1"}, ""},
		"after a release":            {"", "v1.2.3-5-gabcdef0", []string{outside, deep}, Library{Tree: root}, ""},
		"a release that was changed": {"", "v1.2.3-dirty", []string{deep}, Library{Tree: root}, ""},
		"a clone":                    {"", "abcdef0", []string{deep}, Library{Tree: root}, ""},
		"an asked for clone":         {root, "v1.2.3", nil, Library{Tree: root}, ""},
		"no clone":                   {"", "unknown", []string{outside}, Library{}, "--replace"},
		"not a clone":                {outside, "v1.2.3", nil, Library{}, "--replace " + outside},
		"a nested module":            {deep, "v1.2.3", nil, Library{}, "root of a clone"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FindLibrary(tt.replace, tt.version, tt.folders...)
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %+v, %v, want %+v, %q", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestGoModOfARelease(t *testing.T) {
	one, err := Library{Version: "v1.2.3"}.goMod("example.com/me/vk-foo", "")
	if err != nil || !strings.Contains(string(one), "require "+libraryModule+" v1.2.3\n") || strings.Contains(string(one), "replace") {
		t.Errorf("got %v\n%s", err, one)
	}
	four, err := Library{Version: "v1.2.3"}.goMod("example.com/me/vk-foo/contract", "", "providers")
	if err != nil || !strings.Contains(string(four), libraryModule+"/providers => "+libraryModule+"/providers v1.2.3\n") {
		t.Errorf("got %v\n%s", err, four)
	}
}

// TestGoModOfACloneHasItsVersions: a provider that is generated next to a clone does not compile Kubernetes again.
func TestGoModOfACloneHasItsVersions(t *testing.T) {
	text, err := tree(t).goMod("example.com/me/vk-foo", "")
	if err != nil {
		t.Fatal(err)
	}
	ours := regexp.MustCompile(`\n\t(k8s\.io/client-go|golang\.org/x/net) (v\S+)`).FindAllStringSubmatch(read(t, filepath.Join(tree(t).Tree, "cmd", "virtual-kubelet", "go.mod")), -1)
	if len(ours) != 2 {
		t.Fatalf("the program has %v", ours)
	}
	for _, version := range ours {
		if !strings.Contains(string(text), version[1]+" "+version[2]+" // indirect\n") {
			t.Errorf("want %s %s in\n%s", version[1], version[2], text)
		}
	}
}

// TestExamplePodGoesThroughTheScheduler: the example pod of a new provider has no nodeName, selects the provider's node, and tolerates its taint.
func TestExamplePodGoesThroughTheScheduler(t *testing.T) {
	for _, language := range []string{"go", "python"} {
		n := New{Module: "example.com/me/vk-foo", Name: "foo", Language: language, Dir: t.TempDir(), Library: tree(t)}
		if err := n.Write(); err != nil {
			t.Fatal(err)
		}
		var pod corev1.Pod
		if err := yaml.UnmarshalStrict([]byte(read(t, filepath.Join(n.Dir, "pod.yaml"))), &pod); err != nil {
			t.Fatal(err)
		}
		tolerated := corev1.Toleration{Key: "virtual-kubelet.io/provider", Operator: corev1.TolerationOpExists}
		if s := pod.Spec; s.NodeName != "" || s.NodeSelector[corev1.LabelHostname] != "foo" || !slices.Contains(s.Tolerations, tolerated) {
			t.Errorf("%s: got node %q, selector %v and tolerations %v", language, s.NodeName, s.NodeSelector, s.Tolerations)
		}
	}
}

func TestGoVersionIsThatOfTheLibrary(t *testing.T) {
	if text := read(t, filepath.Join(tree(t).Tree, "go.mod")); !strings.Contains(text, "\ngo "+goVersion+"\n") {
		t.Errorf("new modules ask for Go %s, and go.mod of the library does not", goVersion)
	}
}

var (
	mark = regexp.MustCompile(`FILL\(([a-z]+)\): `)
	box  = regexp.MustCompile("(?m)^- \\[ \\] FILL\\(([a-z]+)\\): `([^`]+)`")
)

// TestEveryPlaceToFillIsInTheReadme compares marks and boxes, with the files that they are in.
func TestEveryPlaceToFillIsInTheReadme(t *testing.T) {
	for _, language := range Languages {
		t.Run(language, func(t *testing.T) {
			n := New{Module: "example.com/me/vk-foo", Name: "foo", Language: language, Library: tree(t)}
			files, err := n.makeFiles()
			if err != nil {
				t.Fatal(err)
			}
			marks, boxes := map[string]string{}, map[string]string{}
			for _, f := range files {
				if f.path == "README.md" {
					for _, m := range box.FindAllStringSubmatch(string(f.text), -1) {
						boxes[m[1]] = m[2]
					}
					continue
				}
				for _, m := range mark.FindAllStringSubmatch(string(f.text), -1) {
					marks[m[1]] = f.path
				}
			}
			if !maps.Equal(marks, boxes) || len(marks) < 8 {
				t.Errorf("marks are  %v\nboxes are  %v", marks, boxes)
			}
		})
	}
}

// TestProviderIsSixFiles: all that an author writes in Go, besides tests, and nothing of the service that it is tried on.
func TestProviderIsSixFiles(t *testing.T) {
	n := New{Module: "example.com/me/vk-foo", Name: "foo", Language: "go", Library: tree(t)}
	files, err := n.makeFiles()
	if err != nil {
		t.Fatal(err)
	}
	var provider []string
	for _, f := range files {
		name, in := strings.CutPrefix(f.path, "foo/")
		is := in && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		if is {
			provider = append(provider, name)
		}
		if strings.HasSuffix(f.path, ".go") && !in && mark.Match(f.text) {
			t.Errorf("%s is to be filled in, and is no file of the provider", f.path)
		}
		if is && strings.Contains(string(f.text), n.Module+"/toy") {
			t.Errorf("%s imports the toy", f.path)
		}
	}
	if want := []string{"capabilities.go", "client.go", "config.go", "driver.go", "mapping.go", "status.go"}; !slices.Equal(provider, want) {
		t.Errorf("the provider is %q, want %q", provider, want)
	}
}

func TestNothingIsLeftOfTheSkeleton(t *testing.T) {
	for _, language := range Languages {
		n := New{Module: "example.com/me/vk-skeletal", Name: "foo", Language: language, Library: tree(t)}
		files, err := n.makeFiles()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			for _, text := range []string{f.path, strings.ReplaceAll(string(f.text), tree(t).Tree, "")} {
				if strings.Contains(strings.ToLower(text), "skeleton") || strings.Contains(text, "internal/scaffold") {
					t.Errorf("%s: %s has a name of the template", language, f.path)
				}
			}
		}
	}
}

// TestWhatIsWrittenIsFormatted with names of any length: the program itself does not format, which would make it larger.
func TestWhatIsWrittenIsFormatted(t *testing.T) {
	for _, name := range []string{"a", "zun", "azurecontainerinstances", strings.Repeat("m", 31)} {
		for _, module := range []string{"a.io/x", "zzz.example.com/some/where/vk-" + name} {
			for _, language := range Languages {
				n := New{Module: module, Name: name, Language: language, Library: tree(t)}
				files, err := n.makeFiles()
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					if filepath.Ext(f.path) != ".go" {
						continue
					}
					if formatted, err := format.Source(f.text); err != nil || string(formatted) != string(f.text) {
						t.Errorf("%s of %s in %s is not formatted (%v)", f.path, name, module, err)
					}
				}
			}
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// list returns the paths of all files and folders below a folder.
func list(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if path != dir {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
