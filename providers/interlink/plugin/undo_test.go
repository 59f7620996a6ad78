// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// halves is a provider that creates pods and reports an error, and whose deletes may fail.
type halves struct {
	nodeutil.Provider
	creates, deletes *atomic.Bool // whether they fail
}

func (h halves) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	err := h.Provider.CreatePod(ctx, pod)
	if h.creates.Load() {
		return errors.Join(err, errors.New("no answer in time"))
	}
	return err
}

func (h halves) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	if h.deletes.Load() {
		return errors.New("busy")
	}
	return h.Provider.DeletePod(ctx, pod)
}

// TestRefusedPodIsStopped checks that the plugin keeps a pod that the provider refused but has nevertheless
// created, until the pod has stopped.
func TestRefusedPodIsStopped(t *testing.T) {
	h := halves{creates: &atomic.Bool{}, deletes: &atomic.Bool{}}
	s := newServer(t, func(p nodeutil.Provider) nodeutil.Provider { h.Provider = p; return h })
	h.creates.Store(true)
	h.deletes.Store(true)
	stays := aPod("u1")
	stays.Spec.Containers[0].Args = program.Program{Stay: time.Hour}.Args()
	if code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: stays}); code == http.StatusOK {
		t.Fatal(code, body)
	}
	records := func() int { left, _ := os.ReadDir(string(s.pods.store)); return len(left) }
	if records() != 1 || s.pods.get("u1") == nil {
		t.Errorf("while it runs: %d records, want 1", records())
	}
	if told := s.pods.statuses([]*corev1.Pod{stays}); len(told) != 0 {
		t.Errorf("told of a pod that was refused: %+v", told)
	}
	if code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: stays}); code == http.StatusOK || !strings.Contains(body, "was deleted") {
		t.Errorf("again, while it stops: %d %s", code, body)
	}
	h.deletes.Store(false)
	until(t, func() bool { return s.pods.get("u1") == nil && records() == 0 })
	if list, err := h.GetPods(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("the provider has %v, %v", list, err)
	}
	h.creates.Store(false)
	if code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: stays}); code != http.StatusOK {
		t.Errorf("again, when it is gone: %d %s", code, body)
	}
}

// until waits until ok returns true.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatal("it did not come")
		}
	}
}
