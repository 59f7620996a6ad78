// SPDX-License-Identifier: Apache-2.0

package configfile_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli/configfile"
)

type settings struct {
	NodeName string              `json:"nodeName"`
	Workers  int                 `json:"workers,omitempty"`
	Wait     metav1.Duration     `json:"wait"`
	Capacity corev1.ResourceList `json:"capacity"`
	Tags     map[string]string   `json:"tags"`
	Names    []string            `json:"names"`
	Network  netip.Prefix        `json:"network"`
	Inner    *struct {
		On bool `json:"on"`
	} `json:"inner"`
}

func TestDecode(t *testing.T) {
	got := settings{Workers: 7}
	err := configfile.Decode("c.yaml", []byte(`
nodeName: n1
wait: 1m
capacity: {cpu: 2, memory: 1Gi}
tags:
  a: "1"
names: [x, y]
network: 10.1.0.0/16
inner:
  on: true
`), &got)
	if err != nil {
		t.Fatal(err)
	}
	if got.NodeName != "n1" || got.Workers != 7 || got.Wait.Duration != time.Minute || !got.Inner.On || got.Network.Bits() != 16 {
		t.Errorf("got %+v", got)
	}
	if q := got.Capacity[corev1.ResourceMemory]; q.Cmp(resource.MustParse("1Gi")) != 0 {
		t.Errorf("memory: got %s, want 1Gi", q.String())
	}
	if diff := cmp.Diff([]string{"x", "y"}, got.Names); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"swapped letters", "wait: 1s\n\nnodeNmae: x", `unknown field "nodeNmae" at c.yaml:3; did you mean nodeName?`},
		{"case", "nodename: x", `unknown field "nodename" at c.yaml:1; did you mean nodeName?`},
		{"nothing near", "zzz: x", `unknown field "zzz" at c.yaml:1; known are: capacity, inner, names, network, nodeName, tags, wait, workers`},
		{"nested", "inner:\n  off: true", `unknown field "inner.off" at c.yaml:2; did you mean on?`},
		{"twice", "workers: 1\nworkers: 2", `field "workers" is given twice at c.yaml:2`},
		{"type", "workers: many", `field "workers" must be a int, not "many" at c.yaml:1`},
		{"text", "network: 10.0.0.0", `field "network": netip.ParsePrefix("10.0.0.0"): no '/' at c.yaml:1`},
		{"no text", "network: [x]", `field "network" must be a mapping at c.yaml:1`},
		{"json", "wait: {}", `field "wait": json: cannot unmarshal object into Go value of type string at c.yaml:1`},
		{"list", "names: x", `field "names" must be a list at c.yaml:1`},
		{"no mapping", "- x", `the file must hold a mapping of fields at c.yaml:1`},
		{"two documents", "workers: 1\n---\nworkers: 2", `c.yaml:2: more than one document in the file`},
		{"two errors", "a_: 1\nworkers: x", "unknown field \"a_\" at c.yaml:1; known are: capacity, inner, names, network, nodeName, tags, wait, workers\nfield \"workers\" must be a int, not \"x\" at c.yaml:2"},
		{"syntax", "a: [", `c.yaml: line 1: did not find expected node content`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := configfile.Decode("c.yaml", []byte(tc.in), &settings{})
			if err == nil || err.Error() != tc.want {
				t.Errorf("decode %q:\n got %v\nwant %s", tc.in, err, tc.want)
			}
		})
	}
}

func TestEmptyFileKeepsDefaults(t *testing.T) {
	got := settings{Workers: 7}
	for _, in := range []string{"", "# nothing\n", "---\n"} {
		if err := configfile.Decode("c.yaml", []byte(in), &got); err != nil || got.Workers != 7 {
			t.Errorf("decode %q: got %v, %v", in, got, err)
		}
	}
}

func TestFields(t *testing.T) {
	fields, err := configfile.Fields("c.yaml", []byte("a: 1\n\nb:\n  c: 2\nd: [x, y]\ne: [[1]]\nf:\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range fields {
		values, err := f.Values()
		got[f.Name] = fmt.Sprint(f.Position, values)
		if err != nil {
			got[f.Name] = err.Error()
		}
	}
	want := map[string]string{
		"a": "c.yaml:1 [1]", "b": "c.yaml:3 [c=2]", "d": "c.yaml:5 [x y]",
		"e": `field "e" at c.yaml:6 must be a value, a list of values or a mapping of values`,
		"f": `field "f" at c.yaml:7 has no value`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRenameKeepsTheRest holds that Rename changes neither other occurrences of the name nor the position of the field.
func TestRenameKeepsTheRest(t *testing.T) {
	for in, want := range map[string]string{
		"a: old\nold: x # old\n":             "a: old\nnew: x # old\n",
		"{\"ä\": \"old\", \"old\": \"old\"}": "{\"ä\": \"old\", \"new\": \"old\"}",
		"# old\r\n\r\n'old': [old]\r\n":      "# old\r\n\r\n'new': [old]\r\n",
		"very.old: 1\nold:\n- old\nolder: 2": "very.old: 1\nnew:\n- old\nolder: 2",
	} {
		fields, err := configfile.Fields("f.yaml", []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			if f.Name == "old" {
				if got := string(f.Rename([]byte(in), "new")); got != want {
					t.Errorf("%q: got %q, want %q", in, got, want)
				}
			}
		}
	}
}
