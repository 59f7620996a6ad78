// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
)

// FuzzSettings holds that a file and an environment are either refused, or yield settings that the program would print as the same file.
func FuzzSettings(f *testing.F) {
	for _, seed := range [][2]string{
		{"", ""}, {fileHead + "disableKubeletAPI: true\n", "node-1"}, {fileHead + "port: many\nnodeNmae: x\n", "A_b"},
		{fileHead + "tlsCertFile: c\ntlsPrivateKeyFile: k\nport: 0\ntraceTags: {a: b, c: \"1,2\"}\nfullResyncPeriod: 90s\n", ""},
		{fileHead + "disableKubeletAPI: true\nnodes: [a, 'b-[0-3]', \"c\"]\n", ""}, {fileHead + "nodes: ['[0-99999999999]']\n", ""},
		{fileHead + "disableKubeletAPI: true\ntraceTags: {\"a=b\": \"c\\nd\"}\nkubeAPIQPS: .inf\n", ""},
		{fileHead + "disableKubeletAPI: true\nnodeName: {a: b}\ntraceTags: x\nnodes: {a: b}\n", ""},
		{fileHead + "disableKubeletAPI: true\nlogLevel: &a debug\nlogFormat: *a\n", ""},
	} {
		f.Add(seed[0], seed[1])
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, file, name string) {
		path := filepath.Join(dir, "config.yaml")
		read := func(text string) (*resolved, error) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			o := &options{}
			fs := pflag.NewFlagSet("fuzz", pflag.ContinueOnError)
			o.define(fs)
			o.ConfigFile = path
			return o.resolve(fs, func(v string) string { return map[string]string{"DEFAULT_NODE_NAME": name}[v] })
		}
		r, err := read(file)
		if err != nil {
			return
		}
		text, err := r.print()
		if err != nil {
			t.Fatal(err)
		}
		again, err := read(string(text))
		if err != nil {
			t.Fatalf("what was printed is refused: %v\n%s", err, text)
		}
		if back, err := again.print(); err != nil || withoutComments(back) != withoutComments(text) {
			t.Fatalf("%v: got\n%s\nwant\n%s", err, back, text)
		}
	})
}
