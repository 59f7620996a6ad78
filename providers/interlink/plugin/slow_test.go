// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// slow is a provider that refuses a create once the test sends the error.
type slow struct {
	nodeutil.Provider
	asked chan struct{}
	words chan error
}

func (s slow) CreatePod(ctx context.Context, _ *corev1.Pod) error {
	s.asked <- struct{}{}
	select {
	case err := <-s.words:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (slow) DeletePod(context.Context, *corev1.Pod) error { return errdefs.NotFound("no such pod") }

// TestPodThatIsNotAcceptedYet checks that a pod is not reported before the provider has accepted it. A second
// create of the pod waits, and gets the error of the refusal.
func TestPodThatIsNotAcceptedYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := slow{asked: make(chan struct{}), words: make(chan error)}
		s := newServer(t, func(nodeutil.Provider) nodeutil.Provider { return runner })
		answers := make(chan string, 2)
		create := func() {
			_, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: aPod("u1")})
			answers <- body
		}
		go create()
		<-runner.asked
		if told := s.pods.statuses([]*corev1.Pod{aPod("u1")}); len(told) != 0 {
			t.Errorf("told of a pod that may be refused: %+v", told)
		}
		go create()
		synctest.Wait()
		runner.words <- errors.New("invalid partition")
		<-runner.asked
		runner.words <- errors.New("invalid partition")
		for range 2 {
			if body := <-answers; !strings.Contains(body, "invalid partition") {
				t.Errorf("got %q", body)
			}
		}
		begin := time.Now()
		go create()
		<-runner.asked
		if body := <-answers; !strings.Contains(body, "deadline") || time.Since(begin) > createTimeout {
			t.Errorf("after %s: %q", time.Since(begin), body)
		}
	})
}
