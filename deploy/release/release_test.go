// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"debug/buildinfo"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

const (
	testVersion = "v1.2.3"
	testDate    = "2026-01-02T03:04:05Z"
	testCommit  = "0123456789abcdef0123456789abcdef01234567"
)

// native is a release for Linux on this kind of processor. It is made once for all tests.
var native struct {
	sync.Once
	dir string
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if native.dir != "" {
		_ = os.RemoveAll(native.dir) // an error leaves files in a folder for temporary files
	}
	os.Exit(code)
}

// makeRelease makes a release of the sources in root.
func makeRelease(t *testing.T, root, out string) error {
	t.Helper()
	return run(t.Context(), []string{"-version=" + testVersion, "-commit=" + testCommit, "-date=" + testDate, "-platforms=linux/" + runtime.GOARCH, "-root=" + root, "-o=" + out})
}

func nativeRelease(t *testing.T) string {
	t.Helper()
	native.Do(func() {
		if native.dir, native.err = os.MkdirTemp("", "release"); native.err == nil { //nolint:usetesting // it outlives the first test
			native.err = makeRelease(t, filepath.Join("..", ".."), native.dir)
		}
	})
	if native.err != nil {
		t.Fatal(native.err)
	}
	return native.dir
}

func binaryName() string { return program + "_" + testVersion + "_linux_" + runtime.GOARCH }

// sums returns the checksums in SHA256SUMS, by file name.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	all := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		digest, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok {
			t.Fatalf("SHA256SUMS: %q", lines.Text())
		}
		all[name] = digest
	}
	return all
}

// TestSecurityG3TwoBuildsAreEqual makes the release again from a copy of the sources in another folder.
func TestSecurityG3TwoBuildsAreEqual(t *testing.T) {
	want := sums(t, nativeRelease(t))
	copied, out := t.TempDir(), t.TempDir()
	copySources(t, filepath.Join("..", ".."), copied)
	t.Setenv("GOFLAGS", "-buildvcs=auto") // settings of the environment must not matter
	if err := makeRelease(t, copied, out); err != nil {
		t.Fatal(err)
	}
	got := sums(t, out)
	if len(want) != 30 {
		t.Errorf("a release for one platform has %d files, want seven binaries, two descriptions of each, image, image of the demo, notice, archive, package twice, chart twice, and krew's manifest: %v", len(want), want)
	}
	for name, digest := range want {
		if got[name] != digest {
			t.Errorf("%s: got SHA-256 %s, want %s", name, got[name], digest)
		}
	}
}

// copySources copies the sources of the program.
func copySources(t *testing.T, from, to string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", from, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("the sources are no git repository: %v", err)
	}
	for name := range strings.SplitSeq(string(out), "\x00") {
		top, _, _ := strings.Cut(name, "/")
		if name == "" || top == "bench" || top == "test" || top == "docs" { // tests too: the scaffold embeds some
			continue
		}
		original, target := filepath.Join(from, name), filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if link, err := os.Readlink(original); err == nil { // the chart has one
			if err := os.Symlink(link, target); err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := os.ReadFile(original)
		if os.IsNotExist(err) {
			continue // deleted, and not committed
		}
		if err == nil {
			err = os.WriteFile(target, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSecurityG2ReleaseSaysWhatIsInIt compares checksums and both descriptions with the binary itself.
func TestSecurityG2ReleaseSaysWhatIsInIt(t *testing.T) {
	dir := nativeRelease(t)
	listed := sums(t, dir)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "SHA256SUMS" {
			return err
		}
		digest, err := digestOf(path)
		if listed[d.Name()] != digest {
			t.Errorf("SHA256SUMS: %s has %q, and the file %s", d.Name(), listed[d.Name()], digest)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	for prefix, c := range map[string]struct {
		module string
		least  int // modules
	}{
		program: {"github.com/virtual-kubelet/virtual-kubelet@" + testVersion, 15}, "runsc": {"gvisor.dev/gvisor@v", 15}, program + "-container": {"k8s.io/apimachinery@v", 3}, "devcluster": {"k8s.io/kubernetes@v", 15}, "emulate": {"k8s.io/apimachinery@v", 15},
	} {
		name := prefix + strings.TrimPrefix(binaryName(), program)
		t.Run(prefix, func(t *testing.T) { describes(t, dir, name, c.module, c.least, listed[name]) })
	}
}

// describes compares the descriptions of a binary with the binary itself. The binary must contain the given
// module.
func describes(t *testing.T, dir, name, module string, least int, digest string) {
	t.Helper()
	info, err := buildinfo.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
		if strings.HasPrefix(s.Key, "vcs") {
			t.Errorf("the binary says %s=%s, so it depends on the state of the repository", s.Key, s.Value)
		}
	}
	if settings["CGO_ENABLED"] != "0" || settings["-trimpath"] != "true" {
		t.Errorf("settings: got %v, want CGO_ENABLED=0 and -trimpath=true", settings)
	}
	want := map[string]bool{"pkg:golang/stdlib@" + strings.TrimPrefix(info.GoVersion, "go"): true}
	named := false
	for _, m := range info.Deps {
		version := m.Version
		switch {
		case m.Replace == nil:
		case strings.HasPrefix(m.Replace.Path, "."):
			version = testVersion // a folder of this repository
		default:
			version = m.Replace.Version
		}
		want["pkg:golang/"+m.Path+"@"+version] = true
		named = named || strings.HasPrefix(m.Path+"@"+version, module)
	}
	if len(want) < least || !named {
		t.Fatalf("the binary names %d modules: %v", len(want), want)
	}

	var spdx struct {
		SPDXVersion string
		Packages    []struct {
			Checksums    []struct{ ChecksumValue string }
			ExternalRefs []struct{ ReferenceLocator string }
		}
	}
	read(t, filepath.Join(dir, name+".spdx.json"), &spdx)
	var urls []string
	for _, p := range spdx.Packages {
		for _, ref := range p.ExternalRefs {
			urls = append(urls, ref.ReferenceLocator)
		}
	}
	same(t, "SPDX", urls, want)
	if spdx.SPDXVersion != "SPDX-2.3" || spdx.Packages[0].Checksums[0].ChecksumValue != digest {
		t.Errorf("SPDX: got version %s and binary %+v", spdx.SPDXVersion, spdx.Packages[0])
	}

	var cdx struct {
		SpecVersion string
		Metadata    struct {
			Component struct{ Hashes []struct{ Content string } }
		}
		Components []struct{ Purl string }
	}
	read(t, filepath.Join(dir, name+".cdx.json"), &cdx)
	urls = nil
	for _, c := range cdx.Components {
		urls = append(urls, c.Purl)
	}
	same(t, "CycloneDX", urls, want)
	if cdx.SpecVersion != "1.6" || cdx.Metadata.Component.Hashes[0].Content != digest {
		t.Errorf("CycloneDX: got version %s and binary %+v", cdx.SpecVersion, cdx.Metadata)
	}
}

func same(t *testing.T, what string, got []string, want map[string]bool) {
	t.Helper()
	has := map[string]bool{}
	for _, url := range got {
		has[url] = true
		if !want[url] {
			t.Errorf("%s names %s, which is not in the binary", what, url)
		}
	}
	for url := range want {
		if !has[url] {
			t.Errorf("%s does not name %s", what, url)
		}
	}
}

func read(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestBinarySaysWhatItIsMadeOf: a binary reports the version, the commit and the time of its sources, and the
// version of gVisor in runsc of the same release.
func TestBinarySaysWhatItIsMadeOf(t *testing.T) {
	dir := nativeRelease(t)
	runsc, err := buildinfo.ReadFile(filepath.Join(dir, "runsc"+strings.TrimPrefix(binaryName(), program)))
	if err != nil {
		t.Fatal(err)
	}
	gVisor := ""
	for _, m := range runsc.Deps {
		if m.Path == "gvisor.dev/gvisor" {
			gVisor = m.Version
		}
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, binaryName()), "version", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Version, GitCommit, BuildTime, GVisorVersion string }
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != testVersion || got.GitCommit != testCommit || got.BuildTime != testDate || gVisor == "" || got.GVisorVersion != gVisor {
		t.Errorf("got %+v, want %s of %s, built at %s, with gVisor %q", got, testVersion, testCommit, testDate, gVisor)
	}
}

// TestControlPlaneIsBuiltAsByTheScript: the build uses the flags of hack/goenv.sh. With other flags, all of
// Kubernetes would be compiled again.
func TestControlPlaneIsBuiltAsByTheScript(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "bash", "-c", `. ../../hack/goenv.sh; printf '%s\n' "${quick_kubernetes[@]}"`).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(quickKubernetes(), "\n")+"\n", string(out); got != want {
		t.Errorf("got\n%s\nwant that of hack/goenv.sh:\n%s", got, want)
	}
}

// TestDemoImageIsPackedAsByMake: the image of a release has the same programs as that of a clone.
func TestDemoImageIsPackedAsByMake(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nDEMO_TOOLS := " + strings.Join(demoTools, " ") + "\n"; !strings.Contains(string(text), want) {
		t.Errorf("the Makefile does not have %q", want)
	}
}

func TestWrongArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"-date":           {"-version=v1", "-commit=unknown"},
		"-version \"\"":   {"-commit=unknown", "-date=" + testDate},
		"-version \"../v": {"-version=../v1", "-commit=unknown", "-date=" + testDate},
		"-commit \"\"":    {"-version=v1", "-date=" + testDate, "-o=."},
		"-commit \"a b":   {"-version=v1", "-commit=a b", "-date=" + testDate, "-o=."},
		"-platforms":      {"-version=v1", "-commit=unknown", "-date=" + testDate, "-platforms=linux"},
		"is not empty":    {"-version=v1", "-commit=unknown", "-date=" + testDate, "-o=."},
	} {
		if err := run(t.Context(), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", args, err, want)
		}
	}
}
