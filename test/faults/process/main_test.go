// SPDX-License-Identifier: Apache-2.0

package process

import (
	"flag"
	"os"
	"testing"

	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/test/faults/internal/daemon"
)

// TestMain is also the daemon's main function, because the tests start their own binary again. The tests spend
// most of their time waiting. So more of them run at once than there are processors, unless -parallel is set.
func TestMain(m *testing.M) {
	daemon.Main()
	klog.SetLogger(klog.New(nil))
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
