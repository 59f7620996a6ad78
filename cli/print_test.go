// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfigPrint(t *testing.T) {
	golden, err := filepath.Abs("testdata/config-print.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r, err := resolveWith(t,
		[]string{"--nodename=node-1", "--self-signed-serving-certificate", "--kubeconfig=/etc/kubeconfig", "--trace-tag=zone=1"},
		map[string]string{"KUBELET_PORT": "10251"},
		fileHead+"\nprovider: mock\n# a comment\nfullResyncPeriod: 90s\n")
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.print()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run with -update if this is meant\n%s", diff)
	}

	// The output is a configuration file with the same effect.
	again, err := resolveWith(t, nil, nil, string(got))
	if err != nil {
		t.Fatal(err)
	}
	second, err := again.print()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(withoutComments(got), withoutComments(second)); diff != "" {
		t.Error(diff)
	}
}

func withoutComments(text []byte) string {
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		lines[i], _, _ = strings.Cut(line, " #")
	}
	return strings.Join(lines, "\n")
}
