// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"os"
	"testing"

	"k8s.io/klog/v2"
)

// TestMain silences what the Kubernetes libraries say when something breaks, which
// these tests see to all the time.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.New(nil))
	os.Exit(m.Run())
}
