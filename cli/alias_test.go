// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestProvidersHaveAliases(t *testing.T) {
	p := Program{Name: "vk", Providers: []Provider{{Name: "tensilekube", Aliases: []string{"k8s", "mock"}}, {Name: "mock"}}}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"providers", "k8s"}, 0, "# Provider tensilekube.\n"},
		{[]string{"providers", "mock"}, 0, "# Provider mock.\n"}, // the name of a provider takes precedence over an alias
		{[]string{"providers"}, 0, "mock\ntensilekube\n"},
		{[]string{"providers", "k9s"}, 1, "vk: no such provider \"k9s\": there are: mock, tensilekube (or k8s, mock); did you mean k8s?\n"},
		{[]string{"--disable-kubelet-api"}, 1, "vk: no provider chosen: set --provider to one of: mock, tensilekube (or k8s, mock)\n"},
		{[]string{"--help"}, 0, "mock, tensilekube"},
	} {
		var out bytes.Buffer
		if code := p.execute(t.Context(), tc.args, &out, &out); code != tc.code || !strings.Contains(out.String(), tc.want) {
			t.Errorf("%q: got %d and %q, want %d and %q", tc.args, code, &out, tc.code, tc.want)
		}
	}
}
