// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"flag"
	"os"
	"testing"

	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// together is the number of tests that run at a time. Most tests wait most of the time.
const together = "8"

// TestMain silences the Kubernetes libraries, which complain when something breaks: these tests break things all
// the time.
func TestMain(m *testing.M) {
	childMain()
	klog.SetLogger(klog.New(nil))
	flag.Parse()
	if !faultrow.Strict() {
		if err := flag.Set("test.parallel", together); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
