// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fixture is a test file. Each of its tests has a file of its name, and fails in as many processes as this file
// has lines.
const fixture = `package fixture

import (
	"os"
	"strings"
	"testing"
)

func play(t *testing.T) {
	file := os.Getenv("FIXTURE") + "/" + t.Name()
	data, _ := os.ReadFile(file)
	line, rest, found := strings.Cut(string(data), "\n")
	if !found {
		return
	}
	if err := os.WriteFile(file, []byte(rest), 0o600); err != nil {
		t.Fatal(err)
	}
	switch line {
	case "panic":
		panic("it is broken")
	case "exit":
		os.Exit(0)
	case "skip":
		t.Skip("not today")
	}
	t.Run("part", func(t *testing.T) { t.Fatal(line) })
}

func TestA(t *testing.T) { play(t) }
func TestB(t *testing.T) { play(t) }
func TestC(t *testing.T) { play(t) }
func TestD(t *testing.T) { play(t) }
func TestE(t *testing.T) { play(t) }
func TestF(t *testing.T) { play(t) }
`

func TestRepeats(t *testing.T) {
	broken := fixture + "func TestG(t *testing.T) { undefined() }\n"
	endsBadly := fixture + `
func TestMain(m *testing.M) {
	code := m.Run()
	if said, err := os.ReadFile(os.Getenv("FIXTURE") + "/bad-end"); err == nil {
		os.Remove(os.Getenv("FIXTURE") + "/bad-end")
		os.Stdout.Write(said)
		code = 1
	}
	os.Exit(code)
}
`
	for name, tt := range map[string]struct {
		source string
		fails  map[string]string // lines of the files
		fail   bool
		want   []string // regular expressions for the output of retest repeat
	}{
		"no failure":      {want: []string{`^DONE 6 tests, 0 skipped, 0 flaky, 0 failures\n$`}},
		"fails once":      {fails: map[string]string{"TestB": "once\n"}, want: []string{`^repeat fixture.TestB\n`, `FLAKY fixture.TestB\n(.*\n)*.*fixture_test.go:\d+: once\n(.*\n)*DONE 7 tests, 0 skipped, 1 flaky, 0 failures\n$`}},
		"fails twice":     {fails: map[string]string{"TestA": "once\n", "TestB": "1st\n2nd\n"}, fail: true, want: []string{`(?m)^FLAKY fixture.TestA$`, `(?m)^FAILED fixture.TestB: failed again in its repeat$`, `1 flaky, 1 failures`}},
		"skips then":      {fails: map[string]string{"TestA": "once\nskip\n"}, fail: true, want: []string{`FAILED fixture.TestA: its repeat did not run it`}},
		"five fail":       {fails: map[string]string{"TestA": "x\n", "TestB": "x\n", "TestC": "x\n", "TestD": "x\n", "TestE": "x\n"}, want: []string{`5 flaky, 0 failures`}},
		"six fail":        {fails: map[string]string{"TestA": "x\n", "TestB": "x\n", "TestC": "x\n", "TestD": "x\n", "TestE": "x\n", "TestF": "x\n"}, fail: true, want: []string{`^FAILED fixture.TestA: not repeated, since 6 failed and at most 5 are\n`, `0 flaky, 6 failures`}},
		"panics once":     {fails: map[string]string{"TestB": "panic\n"}, want: []string{`^repeat fixture\n`, `FLAKY fixture\n(.*\n)*panic: it is broken`, `1 flaky, 0 failures`}},
		"hides a failure": {fails: map[string]string{"TestB": "panic\n", "TestC": "x\n"}, fail: true, want: []string{`TestC/part`, `FAILED fixture: failed again in its repeat`}},
		"exits":           {fails: map[string]string{"TestB": "exit\n"}, want: []string{`FLAKY fixture\n`}},
		"TestMain fails":  {source: endsBadly, fails: map[string]string{"bad-end": ""}, want: []string{`^repeat fixture\n`, `FLAKY fixture\n`}},
		"does not build":  {source: broken, fail: true, want: []string{`^FAILED fixture: it does not build\n`}},
		"data race":       {fails: map[string]string{"TestA": "WARNING: DATA RACE\n"}, fail: true, want: []string{`^FAILED fixture.TestA: a data race or a random input`}},
		"race outside":    {source: endsBadly, fails: map[string]string{"bad-end": "testing: race detected outside of test execution\n"}, fail: true, want: []string{`^FAILED fixture: a data race or a random input`}},
		"random input":    {fails: map[string]string{"TestA": "[rapid] failed after 3 tests\n"}, fail: true, want: []string{`^FAILED fixture.TestA: a data race or a random input`}},
		"ends early":      {source: "package fixture; import _ \"testing\"; func init() { panic(`early`) }", fail: true, want: []string{`FAILED fixture: failed again`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, records, state := t.TempDir(), t.TempDir(), t.TempDir()
			write(t, dir, "go.mod", "module fixture\n\ngo 1.26\n")
			if tt.source == "" {
				tt.source = fixture
			}
			write(t, dir, "fixture_test.go", tt.source)
			for _, file := range slices.Sorted(maps.Keys(tt.fails)) {
				write(t, state, file, tt.fails[file])
			}
			lane := record{Dir: dir, Env: append(os.Environ(), "FIXTURE="+state)}
			var out bytes.Buffer
			if err := runLane(&out, records, lane, []string{"-vet=off", "-timeout", "1m", "./..."}); err != nil {
				t.Fatalf("the lane ended with %v\n%s", err, &out)
			}
			t.Logf("the lane said\n%s", &out)
			out.Reset()
			if err := repeatFailures(&out, records, 5); (err != nil) != tt.fail {
				t.Errorf("the repeats ended with %v, want an error %t", err, tt.fail)
			}
			for _, want := range tt.want {
				if !regexp.MustCompile(want).MatchString(out.String()) {
					t.Errorf("the repeats said\n%s\nwant %s", &out, want)
				}
			}
		})
	}
}

// TestLanesUseTheCache: a repeated lane takes its passed tests from the cache of go test. These tests are
// counted.
func TestLanesUseTheCache(t *testing.T) {
	dir, records := t.TempDir(), t.TempDir()
	write(t, dir, "go.mod", "module fixture\n\ngo 1.26\n")
	write(t, dir, "fixture_test.go", fixture)
	lane := record{Dir: dir, Env: append(os.Environ(), "FIXTURE="+t.TempDir())}
	for _, want := range []string{`^ok  \tfixture\t[\d.]+s\n$`, `^ok  \tfixture\t\(cached\)\n$`} {
		var out bytes.Buffer
		if err := runLane(&out, records, lane, []string{"."}); err != nil || !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the lane ended with %v and said %q, want %s", err, &out, want)
		}
	}
	var out strings.Builder
	if err := repeatFailures(&out, records, 0); err != nil || out.String() != "DONE 12 tests, 0 skipped, 0 flaky, 0 failures\n" {
		t.Errorf("the end is %v and %q, want 12 tests of two lanes", err, out.String())
	}
}

// TestLanesFailByThemselves: a lane fails if go test fails without a failed test.
func TestLanesFailByThemselves(t *testing.T) {
	lane := record{Dir: t.TempDir(), Env: os.Environ()}
	var out bytes.Buffer
	if err := runLane(&out, t.TempDir(), lane, []string{"-mod=nonsense", "."}); err == nil {
		t.Errorf("a lane whose go test refuses a flag passes, and says\n%s", &out)
	}
	_, err := readResults(strings.NewReader(`{"Action":"fail","Package":"a"}`+"\n"+`{"Action":"start","Package":"b"}`+"\n"), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "[b]") {
		t.Errorf("a go test that was killed after one package failed: %v, want the package b whose tests did not end", err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
