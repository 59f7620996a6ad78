// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "testing"

// TestNewFieldsAreCompared holds that fields of a newer API are compared, and known fields are not compared twice.
func TestNewFieldsAreCompared(t *testing.T) {
	type newer struct {
		Known, Other string
		Count        *int
		List         []string
	}
	one, again, two := 1, 1, 2
	known, all := fieldsBeyond[newer]("Known\n\t\tOther"), fieldsBeyond[newer]("Known Other Count List")
	for _, tt := range []struct {
		name string
		a, b newer
		want bool
	}{
		{"nothing", newer{}, newer{}, true},
		{"what is known", newer{Known: "a"}, newer{Other: "b"}, true},
		{"what is known, beside the same", newer{Known: "a", Count: &one}, newer{Count: &again}, true},
		{"one has it", newer{Count: &one}, newer{}, false},
		{"the other has it", newer{}, newer{List: []string{"x"}}, false},
		{"another value", newer{Count: &one}, newer{Count: &two}, false},
		{"another value of the last one", newer{Count: &one, List: []string{"x"}}, newer{Count: &one, List: []string{"y"}}, false},
		{"none and an empty one", newer{List: []string{}}, newer{}, true},
	} {
		if got := known.same(&tt.a, &tt.b); got != tt.want {
			t.Errorf("%s: the same is %v, want %v", tt.name, got, tt.want)
		}
		if !all.same(&tt.a, &tt.b) {
			t.Errorf("%s: not the same, although all fields are known", tt.name)
		}
	}
}
