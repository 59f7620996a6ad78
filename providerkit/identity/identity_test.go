// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"maps"
	"regexp"
	"testing"
)

func TestNamesAreOfOnePod(t *testing.T) {
	pod := Pod{"ns", "web-0", "6f2d8e1c-0000-4000-8000-000000000001"}
	seen := map[string]string{}
	for what, name := range map[string]string{
		"the pod":                    Owner{"home", "node"}.Name(pod),
		"of another cluster":         Owner{"home2", "node"}.Name(pod),
		"of another node":            Owner{"home", "node2"}.Name(pod),
		"of names that are one text": Owner{"homen", "ode"}.Name(pod),
		"its successor":              Owner{"home", "node"}.Name(Pod{"ns", "web-0", "6f2d8e1c-0000-4000-8000-000000000002"}),
	} {
		if other, has := seen[name]; has {
			t.Errorf("%s and %s are both %s", what, other, name)
		}
		seen[name] = what
		if !regexp.MustCompile(`^vk-[a-z2-7]{26}$`).MatchString(name) {
			t.Errorf("%s: the name %q", what, name)
		}
	}
	if got := (Owner{"home", "node"}).Name(Pod{"ns", "renamed", pod.UID}); seen[got] != "the pod" {
		t.Error("the name is not the UID's")
	}
	if got, want := Hash("a", "b"), "7lg546v7d2wfwmasoovs4kbppe"; got != want {
		t.Errorf("the hash is %s, and was %s: instances of before would not be found", got, want)
	}
}

func TestOwned(t *testing.T) {
	owner, pod := Owner{"home", "node"}, Pod{"ns", "web-0", "u1"}
	if got, ok := owner.Owned(owner.Tags(pod)); !ok || got != pod {
		t.Errorf("got %+v, %t", got, ok)
	}
	for _, tag := range []string{TagCluster, TagNode, TagNamespace, TagName, TagUID} {
		tags := maps.Clone(owner.Tags(pod))
		if delete(tags, tag); ownedBy(owner, tags) {
			t.Errorf("owned without %s", tag)
		}
	}
	for _, other := range []Owner{{"home2", "node"}, {"home", "node2"}, {}} {
		if ownedBy(other, owner.Tags(pod)) {
			t.Errorf("what is %+v's is %+v's", owner, other)
		}
	}
	if ownedBy(Owner{}, Owner{}.Tags(pod)) {
		t.Error("an owner without a name owns")
	}
}

func ownedBy(o Owner, tags map[string]string) bool {
	_, ok := o.Owned(tags)
	return ok
}
