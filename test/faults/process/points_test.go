// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/test/faults/internal/failpoint"
)

// TestFault01KilledAtEveryPoint kills the daemon once before and after each kind of call and request, while pods come and go.
func TestFault01KilledAtEveryPoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.gently = true
	w.start().kill() // so that the node exists
	churn := w.churnAt(5)
	for i, point := range failpoint.Names() {
		asked := strings.HasSuffix(point, "GetPodStatus") // for pods without a report
		w.backend.Replay(i%4 == 0 && !asked)
		c := w.startToDieAt(point, 1)
		w.nudge(c, strings.HasSuffix(point, "patch node"))
		if !c.cmd.ProcessState.Exited() && c.cmd.ProcessState.ExitCode() == -1 {
			continue // killed by its own signal
		}
		t.Errorf("%s: the daemon ended with %v, want it killed:\n%s", point, c.err, c.said.Tail())
	}
	w.start()
	churn.stop()
	w.awaitInStep()
	w.judged()
	n := len(failpoint.Names())
	faultrow.Record(t, 1, fmt.Sprintf("death at each of %d points before and after calls and requests", n),
		"violations 0 in %d pods and %d provider calls", w.records.pods, w.records.calls)
}

// nudge waits until the daemon has died. The daemon patches its node only after another writer has changed the
// node. So if patch is true, nudge changes the node.
func (w *world) nudge(c *child, patch bool) {
	w.Helper()
	if !patch {
		c.awaitEnd()
		return
	}
	for n := 0; ; n++ {
		body := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"Unknown","reason":"Nudged%d"}]}}`, corev1.NodeReady, n)
		_, err := w.api.Client.CoreV1().Nodes().Patch(w.Context(), w.node, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "status")
		if err != nil {
			w.Fatalf("change the node: %v", err)
		}
		select {
		case <-c.done:
			return
		case <-time.After(200 * time.Millisecond):
		}
		if n > int(patience/(200*time.Millisecond)) {
			w.Fatalf("the daemon does not patch its node:\n%s", c.said.Tail())
		}
	}
}

// TestFault02KilledAfterTheProviderCreated: the daemon dies again and again right after CreatePod returned,
// before it could remember the new instance. In the end all pods run, and each has one instance.
func TestFault02KilledAfterTheProviderCreated(t *testing.T) {
	t.Parallel()
	pods, group := 20, 2
	if faultrow.Long() {
		pods, group = 1000, 10
	}
	w := newWorld(t, quick)
	deaths := 0
	for i := range pods {
		a := &actor{world: w, name: fmt.Sprintf("pod-%d", i)}
		a.create(corev1.RestartPolicyAlways)
		for i%group == group-1 && w.waiting() > 0 {
			c := w.startToDieAt("after CreatePod", 1)
			// A call of the earlier process may arrive after its death. Then this process has nothing to create.
			w.awaitUnless(c.done, "all pods are in step", w.areInStep)
			select {
			case <-c.done:
				deaths++
			default:
				c.kill()
			}
		}
	}
	w.start()
	w.await(fmt.Sprintf("%d pods run", pods), func() bool { return len(w.instances()) == pods })
	w.awaitInStep()
	w.judged()
	faultrow.Record(t, 2, fmt.Sprintf("death after CreatePod returned, %d times for %d pods", deaths, pods),
		"duplicate creates 0/%d; every pod has one instance", pods)
}

// waiting returns the number of pods that have no instance at the backend yet.
func (w *world) waiting() (n int) {
	w.records.mu.Lock()
	defer w.records.mu.Unlock()
	for _, l := range w.records.names {
		for _, p := range l.pods {
			if p.started == 0 {
				n++
			}
		}
	}
	return n
}
