// SPDX-License-Identifier: Apache-2.0

package testapi

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// recorder records fatal errors and skips instead of ending the test.
type recorder struct {
	testing.TB
	fatal, skip []string
}

func (r *recorder) Fatal(args ...any) {
	r.fatal = append(r.fatal, fmt.Sprint(args...))
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

func (r *recorder) Skipf(format string, args ...any) {
	r.skip = append(r.skip, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (r *recorder) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func TestNoBinary(t *testing.T) {
	t.Setenv(binaryVariable, filepath.Join(t.TempDir(), "nothing"))
	t.Setenv(kubeconfigVariable, "")
	for _, c := range []struct {
		require     string
		fatal, skip int
	}{{"", 0, 1}, {"1", 1, 0}} {
		t.Setenv(requireVariable, c.require)
		r := &recorder{TB: t}
		r.run(func() { New(r, Options{}) })
		if len(r.fatal) != c.fatal || len(r.skip) != c.skip {
			t.Errorf("%s=%q: got fatal %q and skip %q, want %d and %d", requireVariable, c.require, r.fatal, r.skip, c.fatal, c.skip)
		}
	}
}

func TestModuleRootPassesNestedModules(t *testing.T) {
	root := t.TempDir()
	nested := filepath.Join(root, "cmd", "x")
	if err := os.MkdirAll(nested, 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, module := range map[string]string{root: modulePath, nested: modulePath + "/cmd/x"} {
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+module+"\n\ngo 1.26\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(nested)
	got, err := moduleRoot()
	if want, _ := filepath.EvalSymlinks(root); err != nil || got != root && got != want {
		t.Errorf("got %q, %v, want %q", got, err, root)
	}
}
