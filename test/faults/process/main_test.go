// SPDX-License-Identifier: Apache-2.0

package process

import (
	"flag"
	"os"
	"testing"

	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/test/faults/internal/daemon"
)

// TestMain is also the daemon's main function: the tests start their own binary again. They spend
// most of their time waiting, so more of them run at once than there are processors, unless -parallel says otherwise.
func TestMain(m *testing.M) {
	daemon.Main()
	klog.SetLogger(klog.New(nil))
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
