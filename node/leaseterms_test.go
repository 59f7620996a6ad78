// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestPodsThatComeWhileALeaseTermBeginsAreCreated: the pods that were read past the cache do
// not have them, and the cache does.
func TestPodsThatComeWhileALeaseTermBeginsAreCreated(t *testing.T) {
	inTwins(t, func(w *twins) {
		w.listTakes = 2 * time.Second
		d := w.start("first")
		for i := range 20 {
			w.api.Create(bound(twinPod(i), types.UID(fmt.Sprint("u", i))))
			w.pass(300 * time.Millisecond)
		}
		w.pass(time.Minute)
		w.wantAgreement()
		d.stop()
	})
}
