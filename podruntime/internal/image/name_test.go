// SPDX-License-Identifier: Apache-2.0

package image

import "testing"

func TestNormalize(t *testing.T) {
	for _, test := range []struct{ image, want, err string }{
		{"busybox", "busybox:latest", ""},
		{"busybox:1.36", "busybox:1.36", ""},
		{"localhost:5000/team/app", "localhost:5000/team/app:latest", ""},
		{"registry.example:5000/app@sha256:0123456789012345678901234567890123456789012345678901234567890123", "registry.example:5000/app@sha256:0123456789012345678901234567890123456789012345678901234567890123", ""},
		{"[::1]:5000/app:1", "[::1]:5000/app:1", ""},
		{"Busybox", "", `couldn't parse image name "Busybox": invalid reference format: repository name (Busybox) must be lowercase`},
		{"FAILED_IMAGE", "", `couldn't parse image name "FAILED_IMAGE": invalid reference format: repository name (FAILED_IMAGE) must be lowercase`},
		{"app:", "", `couldn't parse image name "app:": invalid reference format`},
		{"", "", `couldn't parse image name "": invalid reference format`},
		{"app@sha256:1", "", `couldn't parse image name "app@sha256:1": invalid reference format`},
		{"../app", "", `couldn't parse image name "../app": invalid reference format`},
	} {
		got, err := Normalize(test.image)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if got != test.want || said != test.err {
			t.Errorf("%q: got %q, %q; want %q, %q", test.image, got, said, test.want, test.err)
		}
	}
}
