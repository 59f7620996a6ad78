// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"testing"

	"k8s.io/klog/v2"
)

// TestMain runs the tests in a network namespace of their own, where that is allowed. It also silences the
// Kubernetes libraries, which complain when a node ends in the middle of its work: these tests do that all the
// time. The log of a node is shown when its test fails.
func TestMain(m *testing.M) {
	enterNamespace()
	klog.SetLogger(klog.New(nil))
	os.Exit(m.Run())
}
