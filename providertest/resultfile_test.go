// SPDX-License-Identifier: Apache-2.0

package providertest_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
)

var sampleReport = providertest.Report{
	Results: []providertest.Result{
		{Name: "b/two", Outcome: providertest.Failed, Detail: "got 1 <nil>", Left: []string{"contract-b-two/p"}},
		{Name: "a/one", Outcome: providertest.Passed, Took: time.Second, Log: []string{"not kept"}},
	},
	Features: []providertest.FeatureResult{{Feature: capability.EmptyDir, Outcome: providertest.Passed, Detail: "files/empty-dir"}},
}

func TestResultFile(t *testing.T) {
	subject := providertest.Subject{Provider: "cloud", Version: "v1", Backend: "account test, region north", Image: "busybox"}
	want := sampleReport.File(subject, time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)), false)
	if want.Partial || want.Checks[0].Name != "a/one" || want.Date.Location() != time.UTC {
		t.Errorf("the file is %+v, want checks by name and the date in UTC", want)
	}
	for _, name := range []string{"r.json", "r.yaml"} {
		path := filepath.Join(t.TempDir(), name)
		data, err := want.Encode(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := providertest.ReadResultFile(path)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s\n%s", name, err, diff, data)
		}
		if isJSON := data[0] == '{'; isJSON != (name == "r.json") {
			t.Errorf("%s holds %s", name, data)
		}
	}
	if _, err := want.Encode("r.txt"); err == nil || !strings.Contains(err.Error(), ".json, .yaml") {
		t.Errorf("a file r.txt: got %v, want the endings that it may have", err)
	}
	if !sampleReport.File(subject, time.Now(), true).Partial || !(providertest.Report{Interrupted: true}).File(subject, time.Now(), false).Partial {
		t.Error("a run of some checks, or one that was interrupted, counts as whole")
	}
}

func TestResultFilesThatAreRefused(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"another kind":       {`{"apiVersion": "v1", "kind": "Pod"}`, `it is "v1" "Pod", want "contract.virtual-kubelet.io/v1alpha1" "ContractResults"`},
		"a field of nobody":  {`{"colour": "red"}`, `"colour"`},
		"no provider":        {`{"backend": "b"}`, "provider is missing"},
		"no backend":         {`{"provider": "p"}`, "backend is missing"},
		"no date":            {`{}`, "date is missing"},
		"an unknown outcome": {`{"checks": [{"name": "a/b", "outcome": "good"}]}`, `check a/b: the outcome is "good"`},
		"an unknown feature": {`{"features": [{"feature": "Teleport", "outcome": "passed"}]}`, `there is no feature "Teleport"`},
		"not a file":         {``, "is missing"},
	} {
		path := filepath.Join(t.TempDir(), "r.json")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := providertest.ReadResultFile(path); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %q and the file", name, err, tt.want)
		}
	}
	if _, err := providertest.ReadResultFile("/does/not/exist.json"); err == nil {
		t.Error("a file that is not there is read")
	}
}

// TestKeep: results of tests are written only into the directory that the environment names.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	keep := func(s providertest.Subject) {
		t.Helper()
		if err := sampleReport.Keep(s); err != nil {
			t.Fatal(err)
		}
	}
	keep(providertest.Subject{Provider: "cloud", Backend: "b"}) // the environment names no folder
	t.Setenv(providertest.ResultsDir, dir)
	t.Setenv(providertest.ResultsVersion, "v7")
	keep(providertest.Subject{})
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Fatalf("got %v, %v, want nothing", files, err)
	}
	keep(providertest.Subject{Provider: "cloud", Backend: "b"})
	if f, err := providertest.ReadResultFile(filepath.Join(dir, "cloud.json")); err != nil || f.Version != "v7" || len(f.Checks) != 2 {
		t.Errorf("got %+v, %v", f, err)
	}
}

// TestRunOfSomeIsPartial: the results of a run with only some checks are marked as partial.
func TestRunOfSomeIsPartial(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(providertest.ResultsDir, dir)
	h := inProcess(func(_ context.Context, p *inprocess.Provider) node.PodLifecycleHandler { return p })
	h.Only, h.Subject = regexp.MustCompile("^creation/runs$"), providertest.Subject{Provider: "cloud", Backend: "b"}
	providertest.Run(t, h)
	if f, err := providertest.ReadResultFile(filepath.Join(dir, "cloud.json")); err != nil || !f.Partial || len(f.Checks) != 1 {
		t.Errorf("got %+v, %v, want it to be partial", f, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("the folder has %v, %v, want the results alone", files, err)
	}
}
