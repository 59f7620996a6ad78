// SPDX-License-Identifier: Apache-2.0

package oldfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/oldfile"
)

type settings struct {
	Name  string
	List  []string
	On    bool
	Offer corev1.ResourceList
}

func read(text string) (settings, error) {
	s := settings{Offer: corev1.ResourceList{}}
	err := oldfile.Read("old.toml", []byte(text), map[string]oldfile.Setter{
		"Name": oldfile.Text(&s.Name), "List": oldfile.List(&s.List), "On": oldfile.Bool(&s.On), "CPU": oldfile.Resource(s.Offer, corev1.ResourceCPU),
		"OperatingSystem": oldfile.Linux, "Storage": oldfile.Ignore, "CIDR": oldfile.Gone("make it yourself"),
	})
	return s, err
}

func TestFilesAreRead(t *testing.T) {
	s, err := read("# before\r\nName = \"a # \\\"b\\\"\" # ours\r\n\nList=[ \"x\", # first\n  'y',\n]\nOn = true\nCPU = \"20\"\nOperatingSystem = \"Linux\"\nStorage = 4\n")
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != `a # "b"` || !s.On || s.Offer.Cpu().Value() != 20 || cmp.Diff([]string{"x", "y"}, s.List) != "" {
		t.Errorf("got %+v", s)
	}
	if s, err := read("List = \"x\"\nCPU = 3"); err != nil || len(s.List) != 1 || s.Offer.Cpu().Value() != 3 {
		t.Errorf("a list of one, and a number: got %+v, %v", s, err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"\nTitle = \"x\"":               "old.toml: Title: is not known; known are CIDR, CPU, List, Name, On, OperatingSystem, Storage",
		"Name = \"a\"\nName = \"b\"":    "line 2",
		"Name = \"a":                    "line 1",
		"Name = [\"a\"]":                "old.toml: Name: want a text, not a list",
		"List = [1]":                    "old.toml: List: want a list of texts",
		"Name =":                        "line 1",
		"On = \"maybe\"":                `old.toml: On: "maybe": want true or false`,
		"CPU = \"much\"":                `old.toml: CPU: "much": want an amount, such as 20 or 100Gi`,
		"OperatingSystem = \"Windows\"": `old.toml: OperatingSystem: "Windows": pods of this provider run on Linux`,
		"CIDR = \"10.0.0.0/8\"":         "old.toml: CIDR: make it yourself",
		"[section]":                     "old.toml: section: is not known",
		"[Name]":                        "old.toml: Name: want a text",
		"nonsense":                      "line 1",
		"region: a\nvSwitchIDs: [b]":    "old.toml: read as TOML, as it has neither apiVersion nor kind: ",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
}
