// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
)

// sbatchAlone returns a function that runs sbatch without a controller. The function returns sbatch's message,
// which names the file that sbatch takes for the script. That file does not exist.
func sbatchAlone(t *testing.T) func(args ...string) string {
	t.Helper()
	program := slurmtest.Program(t, "sbatch")
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	text := "ClusterName=test\nSlurmctldHost=localhost\nAuthType=auth/munge\nNodeName=n1\nPartitionName=main Nodes=ALL Default=YES\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = []string{"SLURM_CONF=" + conf, "LC_ALL=C"}
		out, err := cmd.CombinedOutput()
		if exited := new(exec.ExitError); err != nil && !errors.As(err, &exited) || errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return string(out)
	}
}

// opened returns sbatch's message about a script that does not exist.
func opened(script string) string { return "Unable to open file " + script + "\n" }

// TestSecurityC8SbatchKeepsTheScript checks each flag of the real sbatch, in each form that pods may use: the
// script stays the provider's.
func TestSecurityC8SbatchKeepsTheScript(t *testing.T) {
	t.Parallel()
	sbatch := sbatchAlone(t)
	all := regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(sbatch("--help"), -1)
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(flag string) bool { return checkAllowedFlag(flag) != "" })
	if len(all) < 40 {
		t.Fatalf("sbatch has the flags %q, want those of its help", all)
	}
	c := completed(t, Config{Flags: append(all, switchFlags...)})
	taken := 0
	for _, flag := range c.Flags {
		for _, form := range []string{flag, flag + "=", flag + "=1", flag + "=x", flag + "=-1", flag + "=-x"} {
			args, err := c.submission(flagged(form), identity{"home", "n", "ns", "web", "u-1"}, "/no/dir", "/no/program", "/no/script")
			if err != nil {
				continue
			}
			said := sbatch(args...)
			name, _, hasValue := strings.Cut(form, "=")
			switch {
			case strings.HasSuffix(said, opened("/no/script")):
				taken++
			case strings.Contains(said, "unrecognized option"): // of another version
			case hasValue && !strings.Contains(said, "Unable to open file"): // a value that the flag does not take
			default:
				t.Errorf("%s, as %q: sbatch says %q, want that it takes the script", name, args, said)
			}
		}
	}
	if taken < 40 {
		t.Errorf("sbatch took %d of the flags, want most of them", taken)
	}
}

// TestSecurityC8LastFlagKeepsTheScript checks that a flag whose value this program does not know to be required
// cannot take the script as its value.
func TestSecurityC8LastFlagKeepsTheScript(t *testing.T) {
	t.Parallel()
	sbatch, c := sbatchAlone(t), completed(t, Config{})
	args, err := c.submission(flagged(""), identity{"home", "n", "ns", "web", "u-1"}, "/no/dir", "/no/program", "/no/script")
	if err != nil {
		t.Fatal(err)
	}
	if said := sbatch(append([]string{"--constraint"}, "/no/script", "/no/program")...); said != "sbatch: error: "+opened("/no/program") {
		t.Fatalf("sbatch says %q, want that it takes the script for the value: this test shows nothing", said)
	}
	end := slices.Index(args, endOfFlags)
	if end < 0 {
		t.Fatalf("%q does not end the flags", args)
	}
	if said := sbatch(slices.Insert(args, end, "--constraint")...); !strings.HasSuffix(said, opened("/no/script")) {
		t.Errorf("sbatch says %q, want that it takes the script", said)
	}
}

// TestShortFlagsAreThoseOfSbatch compares the table of short flags with the real sbatch.
func TestShortFlagsAreThoseOfSbatch(t *testing.T) {
	t.Parallel()
	found := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^ +(-[A-Za-z]),? +(--[a-z-]+)=`).FindAllStringSubmatch(sbatchAlone(t)("--help"), -1) {
		found[line[1]] = line[2]
	}
	if !maps.Equal(found, shortFlags) {
		t.Errorf("sbatch has the short flags %q, want %q", found, shortFlags)
	}
}
