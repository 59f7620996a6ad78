// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDoctorTellsAllWrongSettings(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("VKUBELET_TAINT_EFFECT", "Never")
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(fileHead+"nodeNmae: x\nport: many\nlogFormat: xml\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := testProgram.execute(t.Context(), []string{"doctor", "-o", "json", "--config", file, "--nodename=A_b", "--provider=othre"}, &stdout, &stderr)
	var report struct {
		Findings []struct{ Problem, Fix string }
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil || code != 1 || stderr.Len() > 0 {
		t.Fatalf("got %d, %v, %s%s", code, err, &stdout, &stderr)
	}
	for _, want := range [][2]string{
		{`unknown field "nodeNmae"`, ""},
		{`field "port"`, ""},
		{`--log-format "xml"`, "where it is set: " + file + ":5"},
		{`--nodename "A_b"`, "where it is set: flag --nodename"},
		{`--taint-effect "Never"`, "where it is set: environment VKUBELET_TAINT_EFFECT"},
		{`no certificate for the kubelet API`, ""},
		{`no such provider "othre"`, "where it is set: flag --provider"},
		{`there is no kubeconfig`, "--kubeconfig"},
	} {
		found := false
		for _, f := range report.Findings {
			found = found || strings.HasPrefix(f.Problem, want[0]) && strings.Contains(f.Fix, want[1])
		}
		if !found {
			t.Errorf("%q with the remedy %q is not in %s", want[0], want[1], &stdout)
		}
	}
}

func TestDoctorExitCodes(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want int
	}{
		{[]string{"--output=xml"}, 2},
		{[]string{"--bogus"}, 2},
		{[]string{"--config=none.yaml"}, 1},
		{[]string{"--provider=empty", "--disable-kubelet-api", "--kubeconfig=none"}, 1},
	} {
		var stdout, stderr bytes.Buffer
		if got := testProgram.execute(t.Context(), append([]string{"doctor"}, tc.args...), &stdout, &stderr); got != tc.want {
			t.Errorf("%q: got %d, want %d: %s%s", tc.args, got, tc.want, &stdout, &stderr)
		}
	}
}
