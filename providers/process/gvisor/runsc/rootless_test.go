// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestWithoutRoot checks that --rootless is left out only for a user that gVisor refuses it to: root of another
// namespace.
func TestWithoutRoot(t *testing.T) {
	for _, test := range []struct {
		args string
		root bool
	}{
		{"--root /r --log /l --rootless --network=sandbox run --detach --bundle /b id", true},
		{"--root /r --network sandbox --rootless create --bundle /b id", true},
		{"--rootless run --bundle /b id", true}, // sandbox is the default
		{"--rootless --network=host run --bundle /b id", false},
		{"--rootless --network=none run --bundle /b id", false},
		{"--root run --rootless --network=sandbox exec id run", false},
		{"--rootless --network=sandbox delete --force run", false},
		{"--network=sandbox run --bundle /b id", false},
		{"--rootless --unknown run id", false},
		{"--rootless", false},
	} {
		args, asRoot := append([]string{"runsc"}, strings.Fields(test.args)...), false
		got, err := withoutRoot(args, func() error { asRoot = true; return nil })
		want := args
		if test.root {
			want = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == rootless })
		}
		if err != nil || asRoot != test.root || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, as root: %v", test.args, got, err, asRoot)
		}
	}
	failed := errors.New("no namespaces")
	if _, err := withoutRoot([]string{"runsc", rootless, "run", "id"}, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

// TestVersion checks that gVisor reports the version of its module.
func TestVersion(t *testing.T) {
	if !strings.HasPrefix(gvisorVersion, "v") {
		t.Errorf("the version of gVisor is %q", gvisorVersion)
	}
}
