// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ids returns the IDs of the open vulnerabilities.
func ids(t *testing.T, program, said string) string {
	t.Helper()
	open, known := FindVulnerabilities(t.Context(), program, said)
	if !known {
		return "unknown"
	}
	var list []string
	for _, v := range open {
		list = append(list, strings.TrimPrefix(v.ID, "CVE-"))
	}
	return strings.Join(list, " ")
}

func TestSecurityJ10OpenVulnerabilitiesAreNamed(t *testing.T) {
	const three = "2025-31133 2025-52565 2025-52881"
	for said, want := range map[string]string{
		"runc version 1.1.5+ds1":                "2024-21626 " + three + " 2026-41579",
		"runc version 1.1.12":                   three + " 2026-41579",
		"runc version 1.2.7":                    three + " 2026-41579",
		"runc version 1.2.8":                    "2026-41579",
		"runc version 1.3.2":                    three + " 2026-41579",
		"runc version 1.3.3-0ubuntu1~24.04.3":   "2026-41579",
		"runc version 1.3.6":                    "",
		"runc version 1.4.0-rc.2":               three + " 2026-41579",
		"runc version 1.4.0-rc.3":               "2026-41579",
		"runc version 1.4.3":                    "",
		"runc version 1.5.0-rc.2":               "2026-41579",
		"runc version 1.5.0":                    "",
		"runc version 1.6.0-rc.2+dev":           "",
		"runc version 2.0.0":                    "",
		"runc version 1.0.0-rc93":               "2024-21626 " + three + " 2026-41579",
		"crun version 1.14.1":                   "2026-88264 2026-115521",
		"crun version 1.30":                     "2026-115521",
		"crun version 1.31":                     "",
		"runsc version release-20260905.0":      "",
		"runsc version VERSION_MISSING":         "",
		"runc version unknown":                  "unknown",
		"youki version 0.5.0":                   "unknown",
		"a runtime that says nothing like that": "unknown",
	} {
		if got := ids(t, "/nonexistent/runc", said); got != want {
			t.Errorf("%s: got %q, want %q", said, got, want)
		}
	}
}

// TestSecurityJ10APatchedPackageIsKnown checks that a runtime that a distribution has patched without a new
// version counts as patched.
func TestSecurityJ10APatchedPackageIsKnown(t *testing.T) {
	for version, patched := range map[string]bool{
		"1.1.5+ds1-1+deb12u1": true, "1.1.5+ds1-1+deb12u2": true, "1.1.5+ds1-1": false, "1.1.5+ds1-1+b1": false, "": false,
	} {
		dir := t.TempDir()
		query := "#!/bin/sh\ncase $1 in --search) echo runc: $2;; --show) echo '" + version + "';; esac\n"
		if version == "" {
			query = "#!/bin/sh\nexit 1\n"
		}
		compare := "#!/bin/sh\n[ \"$1\" = --compare-versions ] && [ \"$2\" \\> \"$4\" -o \"$2\" = \"$4\" ]\n"
		for name, script := range map[string]string{"dpkg-query": query, "dpkg": compare} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", dir+":/usr/bin:/bin")
		got := ids(t, "/usr/sbin/runc", "runc version 1.1.5+ds1")
		if strings.Contains(got, "2024-21626") == patched || !strings.Contains(got, "2025-31133") {
			t.Errorf("package %q: got %q; what it is patched for is open: %v", version, got, !patched)
		}
	}
}
