// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/test/faults/internal/backend"
)

// allowedMemory is the limit for a daemon with a thousand pods. With the race detector, a daemon has several
// times as much.
const allowedMemory = 150 << 20

// TestFault08MemoryOfAThousandPods: a daemon with a thousand pods keeps to its memory limit, although the
// cluster is full of Secrets that no pod of the node names.
func TestFault08MemoryOfAThousandPods(t *testing.T) {
	t.Parallel()
	const pods = 1000
	secrets := 2000
	if faultrow.Long() {
		secrets = 50_000
	}
	w := newWorld(t, backend.Times{})
	w.fill(secrets)
	c := w.start()
	var group errgroup.Group
	group.SetLimit(20)
	for i := range pods {
		group.Go(func() error {
			a := &actor{world: w, name: fmt.Sprintf("pod-%d", i)}
			a.create(corev1.RestartPolicyAlways)
			return nil
		})
	}
	_ = group.Wait() // always nil: an actor that fails calls Fatal
	w.await(fmt.Sprintf("%d pods run", pods), func() bool { return len(w.instances()) == pods })
	w.awaitInStep()
	rss, most := c.memory("VmRSS"), c.memory("VmHWM")
	if most > allowedMemory && !faultrow.Race() {
		t.Errorf("the daemon has had %d MiB, want at most %d MiB", most>>20, allowedMemory>>20)
	}
	w.judged()
	faultrow.Record(t, 8, fmt.Sprintf("%d pods on the node, %d Secrets of others in the cluster, no memory limit set", pods, secrets),
		"RSS %d MiB, at most %d MiB; both sides agree on %d pods", rss>>20, most>>20, pods)
}

// fill creates n Secrets in another namespace.
func (w *world) fill(n int) {
	w.Helper()
	namespace := w.api.Namespace(w.T)
	group, ctx := errgroup.WithContext(w.Context())
	group.SetLimit(20)
	for i := range n {
		group.Go(func() error {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("foreign-%d", i)},
				StringData: map[string]string{"key": strings.Repeat("x", 1000)},
			}
			_, err := w.api.Client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		w.Fatalf("create Secrets: %v", err)
	}
}

// TestNothingIsLeftOfAStorm: after pods and sessions have come and gone, the daemon holds no more goroutines and
// files than before.
func TestNothingIsLeftOfAStorm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	c := w.start()
	a := &actor{world: w, name: "session"}
	a.create(corev1.RestartPolicyAlways)
	a.awaitPhase(corev1.PodRunning)
	w.wave(c) // afterwards, goroutines and files that are created only once exist
	goroutines, files := c.atRest(0, 0)
	for range 2 {
		w.wave(c)
	}
	after, open := c.atRest(goroutines, files)
	w.judged()
	t.Logf("goroutines %d, then %d; file descriptors %d, then %d", goroutines, after, files, open)
}

// wave runs some seconds of churn and some sessions.
func (w *world) wave(c *child) {
	w.Helper()
	churn := w.churnAt(10)
	for n := range 10 {
		ctx, cancel := context.WithCancel(w.Context())
		begun := make(chan struct{})
		ended := make(chan error, 1)
		go func() { ended <- w.run(ctx, n%2 == 0, "session", &firstWrite{begun: begun}, "wait") }()
		select {
		case <-begun:
		case err := <-ended:
			w.Fatalf("exec ended before it began: %v:\n%s", err, c.said.Tail())
		}
		cancel()
		<-ended //nolint:errcheck // it was cancelled
		pass(w.Context(), 100*time.Millisecond)
	}
	churn.stop()
	w.awaitInStep()
}

// slack is the allowed difference of goroutines and files, for connections that are used sometimes, and for the inspection itself.
const slack = 6

// atRest waits until the daemon holds no more goroutines and files than the arguments, and returns their
// numbers. With zero arguments, atRest waits until the numbers no longer change.
func (c *child) atRest(goroutines, files int) (int, int) {
	c.Helper()
	end := time.Now().Add(patience)
	before := [2]int{}
	same := 0
	for {
		n, err := strconv.Atoi(c.ask("goroutines"))
		if err != nil {
			c.Fatal(err)
		}
		now := [2]int{n, c.files()}
		if now == before {
			same++
		} else {
			same, before = 0, now
		}
		few := now[0] <= goroutines+goroutines/20+slack && now[1] <= files+files/20+slack
		if goroutines > 0 && few || goroutines == 0 && same >= 8 {
			return now[0], now[1]
		}
		if time.Now().After(end) {
			c.Fatalf("the daemon holds %d goroutines and %d files, want about %d and %d:\n%s", now[0], now[1], goroutines, files, c.ask("stacks"))
		}
		pass(c.Context(), 250*time.Millisecond)
	}
}
