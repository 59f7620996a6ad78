// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// TestMain silences the Kubernetes libraries, and disables their wait of one millisecond after an error: the clock of a bubble is decades
// behind that of the process, so this wait would never end.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.New(nil))
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}
