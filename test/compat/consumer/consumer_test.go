// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// minor is the minor version of Kubernetes that the program requires, two before the newest.
const minor = "v0.35."

// TestLibraryDoesNotRaiseKubernetes: the program is built with the versions that it requires. The libraries of
// streams exist only from v0.36 on, and need none of the others.
func TestLibraryDoesNotRaiseKubernetes(t *testing.T) {
	of := map[string]string{}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the program does not know what it was built from")
	}
	for _, module := range build.Deps {
		of[module.Path] = module.Version
	}
	for _, name := range []string{"api", "apimachinery", "apiserver", "client-go", "component-base", "component-helpers", "kubelet"} {
		if v := of["k8s.io/"+name]; !strings.HasPrefix(v, minor) {
			t.Errorf("built with k8s.io/%s %q, want %sx: something that the library requires asks for more", name, v, minor)
		}
	}
}

func TestNodeIsAssembled(t *testing.T) {
	if _, err := newNode("consumer", nodeutil.WithClient(fake.NewClientset())); err != nil {
		t.Fatal(err)
	}
}
