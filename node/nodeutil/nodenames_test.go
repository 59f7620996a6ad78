// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"slices"
	"strings"
	"testing"
)

func TestNodeNames(t *testing.T) {
	for _, tc := range []struct {
		patterns []string
		want     []string
	}{
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"vk-[8-11]"}, []string{"vk-8", "vk-9", "vk-10", "vk-11"}},
		{[]string{"vk-[08-11]", "x"}, []string{"vk-08", "vk-09", "vk-10", "vk-11", "x"}},
		{[]string{"vk-[007-007].zone"}, []string{"vk-007.zone"}},
		{[]string{"r[1-2]-n[0-1]"}, []string{"r1-n0", "r1-n1", "r2-n0", "r2-n1"}},
	} {
		got, err := NodeNames(tc.patterns...)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%q: got %q (%v), want %q", tc.patterns, got, err, tc.want)
		}
	}
	thousand, err := NodeNames("vk-[000-999]")
	if err != nil || len(thousand) != 1000 || thousand[42] != "vk-042" {
		t.Errorf("vk-[000-999] stands for %d names (%v)", len(thousand), err)
	}
	if most, err := NodeNames("vk-[0-9999]"); err != nil || len(most) != 10000 {
		t.Errorf("10,000 names: got %d (%v)", len(most), err)
	}
}

func TestNodeNamesErrors(t *testing.T) {
	for _, tc := range []struct {
		patterns []string
		want     string
	}{
		{nil, "no node names"},
		{[]string{""}, `node name "": `},
		{[]string{"A"}, `node name "A": `},
		{[]string{"a", "b", "a"}, `node name "a" comes twice`},
		{[]string{"a-1", "a-[0-2]"}, `node name "a-1" comes twice`},
		{[]string{"a-[0-2"}, "a [ has no ] after it"},
		{[]string{"a-0]"}, "a ] has no [ before it"},
		{[]string{"a-[2-0]"}, "the smaller one first"},
		{[]string{"a-[x-9]"}, "want two numbers"},
		{[]string{"a-[5]"}, "want two numbers"},
		{[]string{"a-[-5]"}, "want two numbers"},
		{[]string{"a-[0-10000]"}, "at most 10000 nodes"},
		{[]string{"a-[0-99]-[0-999]"}, "at most 10000 nodes"},
		{[]string{"a-[0-9998]", "b-[0-1]"}, "at most 10000 nodes"},
		{[]string{"a-[0-99999999999999]"}, "want two numbers"},
		{[]string{"a[0-1]]"}, "a ] has no [ before it"},
	} {
		if _, err := NodeNames(tc.patterns...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: got %v, want an error with %q", tc.patterns, err, tc.want)
		}
	}
}
