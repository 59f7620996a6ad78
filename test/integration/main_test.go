// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"testing"

	"k8s.io/klog/v2"
)

// TestMain puts the tests into a network namespace of their own, where that is allowed, and silences what the Kubernetes libraries say when a node ends in the middle of something, which
// these tests let it do all the time. What the node says is shown when its test fails.
func TestMain(m *testing.M) {
	enterNamespace()
	klog.SetLogger(klog.New(nil))
	os.Exit(m.Run())
}
