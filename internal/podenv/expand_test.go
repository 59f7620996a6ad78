// SPDX-License-Identifier: Apache-2.0

package podenv

import "testing"

func TestExpand(t *testing.T) {
	values := map[string]string{"A": "a", "EMPTY": "", "REF": "$(A)", "DOLLAR": "$$", "a b": "spaced", "ä": "umlaut"}
	lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	for in, want := range map[string]string{
		"":                "",
		"plain":           "plain",
		"$(A)":            "a",
		"x$(A)y$(A)z":     "xayaz",
		"$(EMPTY)":        "",
		"$(REF)":          "$(A)", // values are not expanded
		"$(DOLLAR)":       "$$",
		"$(MISSING)":      "$(MISSING)",
		"$()":             "$()",
		"$$":              "$",
		"$$(A)":           "$(A)",
		"$$$(A)":          "$a",
		"$$$$(A)":         "$$(A)",
		"$A":              "$A",
		"${A}":            "${A}",
		"$":               "$",
		"a$":              "a$",
		"$(":              "$(",
		"$(A":             "$(A",
		"$(A $(A)":        "$(A $(A)",
		"$($(A))":         "$($(A))",
		"$(A$$":           "$(A$",
		"$(a b)":          "spaced",
		"$(ä)$ä":          "umlaut$ä",
		"$(MISSING)$(A)":  "$(MISSING)a",
		"$\xff$(A)":       "$\xffa",
		"--flag=$(A),$$1": "--flag=a,$1",
	} {
		if got := Expand(in, lookup); got != want {
			t.Errorf("Expand(%q) = %q, want %q", in, got, want)
		}
	}
}
