// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// machine is an empty root with a shell, and a systemctl that records its calls.
type machine struct {
	t    *testing.T
	root string
}

func newMachine(t *testing.T, program string) machine {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		if os.Getenv("VK_REQUIRE_PACKAGERS") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v: install the package of Debian that has it", err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may change the root of a process")
	}
	m := machine{t, t.TempDir()}
	for _, dir := range []string{"run/systemd/system", "bin", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/rpm"} {
		m.makeFolder(dir)
	}
	write(t, m.path("var/lib/dpkg/status"), "")
	for _, tool := range []string{"sh", "rm", "rmdir"} {
		m.copyProgram(tool)
	}
	write(t, m.path("bin/systemctl"), "#!/bin/sh\necho \"$@\" >>/calls\n")
	if err := os.Chmod(m.path("bin/systemctl"), 0o755); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return m
}

func (m machine) path(name string) string { return filepath.Join(m.root, name) }

func (m machine) makeFolder(name string) {
	m.t.Helper()
	if err := os.MkdirAll(m.path(name), 0o755); err != nil { //nolint:gosec // a root of a machine is for everybody
		m.t.Fatal(err)
	}
}

// copyProgram copies a program of this machine and the libraries that ldd finds for it.
func (m machine) copyProgram(name string) {
	m.t.Helper()
	found, err := exec.LookPath(name)
	if err != nil {
		m.t.Fatal(err)
	}
	copies := map[string]string{found: "bin/" + name}
	if f, err := elf.Open(found); err == nil {
		libraries, err := f.ImportedLibraries()
		_ = f.Close() // it was only read
		if err == nil && len(libraries) > 0 {
			for word := range strings.FieldsSeq(string(m.run("ldd", found))) {
				if strings.HasPrefix(word, "/") {
					copies[word] = word
				}
			}
		}
	}
	for from, to := range copies {
		data, err := os.ReadFile(from)
		if err != nil {
			m.t.Fatal(err)
		}
		m.makeFolder(filepath.Dir(to))
		if err := os.WriteFile(m.path(to), data, 0o755); err != nil { //nolint:gosec // it is a program
			m.t.Fatal(err)
		}
	}
}

// run runs a command of this machine, and returns its output.
func (m machine) run(name string, args ...string) []byte {
	m.t.Helper()
	out, err := exec.CommandContext(m.t.Context(), name, args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// calls returns the calls of systemctl since the last call of calls.
func (m machine) calls() []string {
	m.t.Helper()
	text, err := os.ReadFile(m.path("calls"))
	if err != nil {
		return nil
	}
	if err := os.Remove(m.path("calls")); err != nil {
		m.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// left returns the files below the folders of the package that are there.
func (m machine) left() (files []string) {
	m.t.Helper()
	for _, folder := range []string{"usr/lib/" + program, "usr/bin", "usr/share", "usr/lib/systemd", "etc/" + program, "var/lib/" + program} {
		err := filepath.WalkDir(m.path(folder), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, strings.TrimPrefix(path, m.root))
			}
			return nil
		})
		if err != nil {
			m.t.Fatal(err)
		}
	}
	return files
}

// seeInstalled checks an installed package: the program runs, its helper programs are beside it, and it accepts the sample configuration of the unit.
func (m machine) seeInstalled(version string) {
	m.t.Helper()
	if out := m.run("chroot", m.root, "/usr/bin/virtual-kubelet", "--version"); !bytes.Contains(out, []byte(version)) {
		m.t.Errorf("--version says %s", out)
	}
	unit, err := os.ReadFile(m.path(unitFile))
	if err != nil || !bytes.Contains(unit, []byte("\nExecStart=/usr/bin/virtual-kubelet --config="+configFile+"\n")) {
		m.t.Errorf("the unit is %s, %v", unit, err)
	}
	if out := m.run("chroot", m.root, "/usr/bin/virtual-kubelet", "config", "print", "--config="+configFile); !bytes.Contains(out, []byte("provider: process")) {
		m.t.Errorf("the sample configuration is read as %s", out)
	}
	info, err := os.Stat(m.path(configFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		m.t.Errorf("%s: got %v, %v, want a file for root alone", configFile, info, err)
	}
	for _, name := range []string{documentFolder + "/copyright", documentFolder + "/NOTICE", manualFolder + "/virtual-kubelet-doctor.1.gz", programFolder + "/virtual-kubelet-container", programFolder + "/runsc"} {
		if info, err := os.Stat(m.path(name)); err != nil || info.Size() < 1000 {
			m.t.Errorf("%s: got %v, %v", name, info, err)
		}
	}
}

// writeState writes what a user and a daemon write.
func (m machine) writeState() {
	m.t.Helper()
	write(m.t, m.path(configFile), "# changed\n")
	write(m.t, m.path("etc/virtual-kubelet/provider.yaml"), "# the user's own\n")
	write(m.t, m.path("var/lib/virtual-kubelet/certificates/kubelet-client-current.pem"), "a key")
}

func (m machine) seeCalls(when string, want ...string) {
	m.t.Helper()
	if got := m.calls(); !slices.Equal(got, want) {
		m.t.Errorf("%s: systemctl was called with %q, want %q", when, got, want)
	}
}

// TestDebInstallsUpgradesAndPurges: dpkg installs the package on an empty root. An upgrade keeps a changed configuration and restarts a running
// daemon. A purge leaves only the files of the user.
func TestDebInstallsUpgradesAndPurges(t *testing.T) {
	installDeb(t, filepath.Join(nativeRelease(t), "virtual-kubelet_1.2.3-1_"+runtime.GOARCH+".deb"), testVersion)
}

func installDeb(t *testing.T, file, version string) {
	t.Helper()
	m := newMachine(t, "dpkg")
	dpkg := func(args ...string) {
		t.Helper()
		m.run("dpkg", append([]string{"--root=" + m.root, "--force-confold", "--force-bad-path"}, args...)...)
	}
	dpkg("--install", file)
	m.seeInstalled(version)
	m.seeCalls("installed", "daemon-reload", "try-restart virtual-kubelet.service")
	m.writeState()
	dpkg("--install", file)
	if text, err := os.ReadFile(m.path(configFile)); err != nil || string(text) != "# changed\n" {
		t.Errorf("after an upgrade, the configuration is %q, %v", text, err)
	}
	m.seeCalls("upgraded", "daemon-reload", "daemon-reload", "try-restart virtual-kubelet.service")
	dpkg("--remove", program)
	m.seeCalls("removed", "disable --now virtual-kubelet.service", "daemon-reload")
	if got, want := m.left(), []string{configFile, "/etc/virtual-kubelet/provider.yaml", "/var/lib/virtual-kubelet/certificates/kubelet-client-current.pem"}; !slices.Equal(got, want) {
		t.Errorf("after a removal there are %q, want %q", got, want)
	}
	dpkg("--purge", program)
	if got, want := m.left(), []string{"/etc/virtual-kubelet/provider.yaml"}; !slices.Equal(got, want) {
		t.Errorf("after a purge there are %q, want %q", got, want)
	}
}

// TestRPMInstallsUpgradesAndRemoves: rpm installs the package on an empty root. An upgrade keeps a changed configuration. A removal leaves the
// files of the user, with a changed configuration under the name that rpm gives it.
func TestRPMInstallsUpgradesAndRemoves(t *testing.T) {
	installRPM(t, filepath.Join(nativeRelease(t), "virtual-kubelet-1.2.3-1."+machineArch+".rpm"), testVersion)
}

// machineArch is the architecture of this machine as rpm calls it.
var machineArch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]

func installRPM(t *testing.T, file, version string) {
	t.Helper()
	m := newMachine(t, "rpm")
	rpm := func(args ...string) {
		t.Helper()
		m.run("rpm", append([]string{"--root=" + m.root, "--dbpath=/var/lib/rpm", "--nodeps"}, args...)...) // the root's shell is of no package
	}
	rpm("--install", file)
	m.seeInstalled(version)
	m.seeCalls("installed", "daemon-reload", "try-restart virtual-kubelet.service")
	m.writeState()
	rpm("--upgrade", "--force", file)
	if text, err := os.ReadFile(m.path(configFile)); err != nil || string(text) != "# changed\n" {
		t.Errorf("after an upgrade, the configuration is %q, %v", text, err)
	}
	if got := m.calls(); slices.Contains(got, "disable --now virtual-kubelet.service") || !slices.Contains(got, "try-restart virtual-kubelet.service") {
		t.Errorf("upgraded: systemctl was called with %q, want a restart and no stop", got)
	}
	rpm("--erase", program)
	m.seeCalls("removed", "disable --now virtual-kubelet.service", "daemon-reload")
	want := []string{configFile + ".rpmsave", "/etc/virtual-kubelet/provider.yaml", "/var/lib/virtual-kubelet/certificates/kubelet-client-current.pem"}
	if got := m.left(); !slices.Equal(got, want) {
		t.Errorf("after a removal there are %q, want %q", got, want)
	}
}
