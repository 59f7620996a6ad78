// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	first = `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: u}}], clusters: [{name: a, cluster: {server: "https://a.example"}}]}`
	last  = `{apiVersion: v1, kind: Config, current-context: b, contexts: [{name: b, context: {cluster: b, user: u}}], clusters: [{name: b, cluster: {server: "https://b.example"}}], users: [{name: u, user: {tokenFile: token}}]}`
)

// TestLoadReadsListsAsKubectlDoes: the files of a list are merged, the first file has priority, and missing
// files are ignored.
func TestLoadReadsListsAsKubectlDoes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b, none, broken := write("a", first), write("b", last), filepath.Join(dir, "none"), write("broken", "{")
	write("token", "secret")
	list := func(paths ...string) string { return strings.Join(paths, string(os.PathListSeparator)) }
	for _, tc := range []struct{ list, context, want, fails string }{
		{a, "", "https://a.example", ""},
		{list(a, b), "", "https://a.example", ""},
		{list(none, b, a), "", "https://b.example", ""},
		{list(a, b), "b", "https://b.example", ""},
		{list(a, b), "c", "", `"c" does not exist`},
		{list(a, broken), "", "", broken},
		{list(none, none), "", "", ""},
		{"", "", "", ""},
	} {
		config, err := Load(tc.list, tc.context)
		if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
			t.Errorf("%q, context %q: got %v, want %q", tc.list, tc.context, err, tc.fails)
		}
		if (config != nil) != (tc.want != "") || config != nil && config.Host != tc.want {
			t.Errorf("%q, context %q: got %v, want %q", tc.list, tc.context, config, tc.want)
		}
	}
	config, err := Load(list(a, b), "b")
	if err != nil || config.BearerTokenFile != filepath.Join(dir, "token") {
		t.Errorf("a path of the file: got %+v, %v", config, err)
	}
}
