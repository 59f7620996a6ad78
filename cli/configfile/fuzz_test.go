// SPDX-License-Identifier: Apache-2.0

package configfile_test

import (
	"strings"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/cli/configfile"
)

// FuzzDecode holds that every file is either refused with the name of the file, or decoded twice with the same result.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		"", "nodeName: n1\nworkers: 3\nwait: 1m\ncapacity: {cpu: 2, memory: 1Gi}\ntags: {a: b}\nnames: [x, y]\ninner: {on: true}\n",
		`{"nodeName": "n1", "names": ["x"]}`, "nodeName: n1\nnodeName: n2\n", "nodeNmae: n1\n", "names: {a: b}\n", "tags: [a]\n", "inner: 1\n", "capacity: {cpu: many}\n",
		"a: 1\n---\nb: 2\n", "- 1\n", "x", "null", "? {a: b}\n: c\n", "names: &a [*a]\n", "tags: &a {b: *a}\n", "tags: &a {k: v}\nnames: *a\n", "<<: {nodeName: n1}\n",
		"nodeName: !!binary aGk=\n", "workers: 1e400\n", "wait: !!float .nan\n", "\t", "\x00", "nodeName: \"\\xff\"\n", "names: [[[[[[[[[]]]]]]]]]\n", "inner: *none\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second settings
		err := configfile.Decode("c.yaml", data, &first)
		if err != nil && !strings.Contains(err.Error(), "c.yaml") {
			t.Fatalf("%v does not name the file", err)
		}
		again := configfile.Decode("c.yaml", data, &second)
		if (err == nil) != (again == nil) || first.NodeName != second.NodeName || first.Workers != second.Workers {
			t.Fatalf("a second time is different: %v and %v, %+v and %+v", err, again, first, second)
		}
		fields, err := configfile.Fields("c.yaml", data)
		if err != nil && !strings.Contains(err.Error(), "c.yaml") {
			t.Fatalf("%v does not name the file", err)
		}
		for _, field := range fields {
			if _, err := field.Values(); err != nil && !strings.Contains(err.Error(), "c.yaml") {
				t.Fatalf("%v does not name the file", err)
			}
		}
	})
}
