// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oomscore"
)

// Vulnerability is a vulnerability of a runtime that gives a container or an image access to the machine.
type Vulnerability struct {
	ID string
	// Fixed are the first fixed versions, one for each series that was maintained. Later series were never
	// vulnerable.
	Fixed []string
	// Minor is true if the authors rate the severity as low.
	Minor bool
}

// vulnerabilities are the known vulnerabilities, by the name in the runtime's version text. The sources are the
// changelog of runc in its repository (as of 2026-08-19) and the release pages of crun. crun is not affected by
// the three of 2025: its authors tested the attacks (github.com/containers/crun/issues/1906, 2025-11-13).
// Vulnerabilities of checkpoints are left out, because this provider makes no checkpoints.
var vulnerabilities = map[string][]Vulnerability{
	"runc": {
		{ID: "CVE-2024-21626", Fixed: []string{"1.1.12"}},
		{ID: "CVE-2025-31133", Fixed: []string{"1.2.8", "1.3.3", "1.4.0-rc.3"}},
		{ID: "CVE-2025-52565", Fixed: []string{"1.2.8", "1.3.3", "1.4.0-rc.3"}},
		{ID: "CVE-2025-52881", Fixed: []string{"1.2.8", "1.3.3", "1.4.0-rc.3"}},
		{ID: "CVE-2026-41579", Fixed: []string{"1.3.6", "1.4.3", "1.5.0-rc.3"}, Minor: true},
	},
	"crun": {
		{ID: "CVE-2026-88264", Fixed: []string{"1.30"}},
		{ID: "CVE-2026-115521", Fixed: []string{"1.31"}, Minor: true},
	},
	"runsc": {}, // gVisor publishes no such list; its versions are dates
}

// packaged is a package of a distribution that fixes vulnerabilities without a new version of the runtime.
type packaged struct {
	name string
	// series is the part of the version that identifies a release of the distribution, and version the first
	// version with the fixes.
	series, version string
	fixes           []string
}

// packages are the known packages, according to the distributions. Debian 12 has no package with fixes of the
// later vulnerabilities: the package below was the newest on 2026-11-28. Ubuntu's packages have the version
// number of the fixed runc.
var packages = []packaged{
	// From its changelog of 2024-02-02.
	{"runc", "+deb12u", "1.1.5+ds1-1+deb12u1", []string{"CVE-2024-21626"}},
}

// FindVulnerabilities returns the known unfixed vulnerabilities of a runtime, by its version text and the Debian
// package of the program. known is false for an unknown runtime or version.
func FindVulnerabilities(ctx context.Context, program, said string) (open []Vulnerability, known bool) {
	name, version, ok := parseVersion(said)
	list, listed := vulnerabilities[name]
	if !listed || !ok && len(list) > 0 {
		return nil, false
	}
	open = slices.DeleteFunc(slices.Clone(list), func(v Vulnerability) bool { return v.fixedIn(version) })
	if len(open) == 0 {
		return nil, true
	}
	pkg, number := packageOf(ctx, program)
	return slices.DeleteFunc(open, func(v Vulnerability) bool {
		return slices.ContainsFunc(packages, func(p packaged) bool {
			return p.name == pkg && strings.Contains(number, p.series) && slices.Contains(p.fixes, v.ID) && debianAtLeast(ctx, number, p.version)
		})
	}), true
}

// release matches the upstream version number, without the suffix of a distribution.
var release = regexp.MustCompile(`^v?(\d+\.\d+(?:\.\d+)?)(?:-rc\.?(\d+))?`)

// parseVersion parses the version text of a runtime, such as runc version 1.1.5+ds1.
func parseVersion(said string) (name string, version *utilversion.Version, ok bool) {
	name, number, _ := strings.Cut(said, " version ")
	m := release.FindStringSubmatch(number)
	if m == nil {
		return name, nil, false
	}
	number = m[1]
	if strings.Count(number, ".") == 1 {
		number += ".0"
	}
	if m[2] != "" {
		number += "-rc." + m[2]
	}
	version, err := utilversion.ParseSemantic(number)
	return name, version, err == nil
}

// fixedIn reports whether the vulnerability is fixed in a version: the version is not older than the fix of its
// series or, if its series has no fix, not older than the newest fix.
func (v Vulnerability) fixedIn(version *utilversion.Version) bool {
	newest := true
	for _, first := range v.Fixed {
		_, fixed, _ := parseVersion(" version " + first)
		if version.Major() == fixed.Major() && version.Minor() == fixed.Minor() {
			return !version.LessThan(fixed)
		}
		newest = newest && !version.LessThan(fixed)
	}
	return newest
}

// packageOf returns the Debian package of a program and its version, or "" if no package has it.
func packageOf(ctx context.Context, program string) (name, version string) {
	if real, err := filepath.EvalSymlinks(program); err == nil {
		program = real
	}
	owner, err := outputOf(ctx, "dpkg-query", "--search", program)
	if err != nil {
		return "", "" // the program belongs to no package, or this distribution has no dpkg
	}
	name, _, _ = strings.Cut(owner, ":") // the architecture and the path may follow the name
	version, err = outputOf(ctx, "dpkg-query", "--show", "--showformat", "${Version}", name)
	if err != nil {
		return "", ""
	}
	return name, version
}

func debianAtLeast(ctx context.Context, version, least string) bool {
	_, err := outputOf(ctx, "dpkg", "--compare-versions", version, "ge", least)
	return err == nil
}

func outputOf(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out strings.Builder
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdout = &out
	err := oomscore.Run(cmd)
	return strings.TrimSpace(out.String()), err
}
