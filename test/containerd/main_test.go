// SPDX-License-Identifier: Apache-2.0

//go:build linux

package containerd

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/containerdtest"
)

// busybox is the image of all pods in these tests. It is imported, not pulled from a registry.
const busybox = "docker.io/library/busybox:1.36"

// shared is the containerd of all tests. The first test that needs it starts it.
var shared struct {
	once sync.Once
	*containerdtest.Containerd
	err error
}

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // the tests mostly wait; an error would leave the default
	klog.SetLogger(klog.New(nil))      // client-go logs watches that end with a test's cluster
	code := m.Run()
	if shared.Containerd != nil {
		if err := shared.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// runtimeOf returns the containerd of all tests, with busybox in it, or ends the test.
func runtimeOf(t *testing.T) *containerdtest.Containerd {
	t.Helper()
	if err := containerdtest.Missing(); err != nil {
		if os.Getenv(containerdtest.RequireVariable) == "1" {
			t.Fatalf("this test needs a containerd of its own: %v", err)
		}
		t.Skipf("this test needs a containerd of its own: %v", err)
	}
	shared.once.Do(func() {
		// containerd outlives the test that starts it.
		if shared.Containerd, shared.err = containerdtest.New(context.Background(), containerdtest.Options{}); shared.err != nil {
			return
		}
		image, err := containerdtest.BusyboxImage(busybox)
		if err == nil {
			err = shared.Import(context.Background(), image)
		}
		shared.err = err
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.Containerd
}
