// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const unitFile = "systemd/virtual-kubelet.service"

// unit returns the values of each key of a unit, by section and key.
func unit(t *testing.T, path string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	values, section := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch key, value, is := strings.Cut(line, "="); {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
		case !is:
			t.Fatalf("%s: %q is neither a section nor a key", path, line)
		default:
			values[section+"."+key] = append(values[section+"."+key], value)
		}
	}
	return values
}

// TestPodsOutliveTheUnit: a restart of the daemon neither ends a container nor removes its cgroup. Restarts are
// tried for ever.
func TestPodsOutliveTheUnit(t *testing.T) {
	values := unit(t, unitFile)
	for key, want := range map[string]string{
		"Service.KillMode":           "process",
		"Service.Delegate":           "yes",
		"Service.Restart":            "on-failure",
		"Unit.StartLimitIntervalSec": "0",
		"Service.TasksMax":           "infinity",
		"Service.OOMScoreAdjust":     "-999",
		"Install.WantedBy":           "multi-user.target",
	} {
		if got := values[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	// The container runtime must see the mounts for pods, and containers of provider process inherit the other
	// settings.
	for _, key := range []string{
		"ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "PrivateMounts", "ReadOnlyPaths", "ReadWritePaths", "InaccessiblePaths",
		"ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs", "ProtectControlGroups", "ProtectProc", "ProtectClock", "ProtectHostname",
		"RootDirectory", "BindPaths", "TemporaryFileSystem", "MountFlags", "DynamicUser", "User", "NoNewPrivileges", "RestrictSUIDSGID",
		"RestrictNamespaces", "MemoryDenyWriteExecute", "UMask", "CapabilityBoundingSet", "PrivateUsers", "PrivateNetwork",
	} {
		if got := values["Service."+key]; got != nil {
			t.Errorf("%s=%s would take something from pods", key, got)
		}
	}
}

// TestSettingsOfTheUnit checks the command line of the unit.
func TestSettingsOfTheUnit(t *testing.T) {
	command := unit(t, unitFile)["Service.ExecStart"]
	if len(command) != 1 {
		t.Fatalf("ExecStart is %q, want one", command)
	}
	words := strings.Fields(command[0])
	if words[0] != "/usr/local/bin/virtual-kubelet" || !slices.Equal(words[1:], []string{"--config=/etc/virtual-kubelet/config.yaml"}) {
		t.Errorf("ExecStart is %q", words)
	}
}

// TestUnitIsCorrect verifies the unit with systemd-analyze, where systemd is installed. The program itself need
// not be installed.
func TestUnitIsCorrect(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not there; install systemd")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "virtual-kubelet")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, filepath.Base(unitFile))
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/virtual-kubelet", program)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput()
	if err != nil {
		t.Fatalf("systemd-analyze verify: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, filepath.Base(unitFile)) { // others are of the machine's own units
			t.Errorf("systemd-analyze verify: %s", line)
		}
	}
}
