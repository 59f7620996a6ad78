// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"testing"

	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/test/faults/internal/daemon"
)

// TestMain is also the daemon's main function: the tests start their own binary again.
func TestMain(m *testing.M) {
	daemon.Main()
	klog.SetLogger(klog.New(nil))
	os.Exit(m.Run())
}
