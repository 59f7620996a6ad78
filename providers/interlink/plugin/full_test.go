// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"net/http"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// TestDeleteOnAFullDisk checks that a record that cannot be written does not keep a pod alive. The delete fails,
// because a restart would not know of it, but the pod is stopped. Its record is removed once the pod is gone.
func TestDeleteOnAFullDisk(t *testing.T) {
	s := newServer(t, nil)
	if code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: longPod("u1")}); code != http.StatusOK {
		t.Fatal(code, body)
	}
	s.untilRuns(t)
	kept := s.pods.store
	s.pods.store = store(os.DevNull) // no file can be written there, by any user
	if code, body := s.send(t, http.MethodPost, "/delete", longPod("u1")); code != http.StatusInternalServerError {
		t.Errorf("a delete that is not on disk: %d %s", code, body)
	}
	gone := func() bool {
		s.pods.mu.Lock()
		defer s.pods.mu.Unlock()
		return !s.pods.all["u1"].gone.IsZero()
	}
	until(t, gone)
	s.pods.working.Wait()
	if list, err := s.pods.provider.GetPods(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("the provider has %v, %v", list, err)
	}
	s.pods.store = kept
	if code, body := s.send(t, http.MethodPost, "/delete", longPod("u1")); code != http.StatusOK {
		t.Errorf("again: %d %s", code, body)
	}
	if left, _ := os.ReadDir(string(kept)); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: longPod("u2")}); code != http.StatusOK {
		t.Errorf("the next pod of the name: %d %s", code, body)
	}
}

// TestRecordOfAPodThatIsGone checks that a delete during the removal of a pod does not bring its record back.
func TestRecordOfAPodThatIsGone(t *testing.T) {
	s := newServer(t, nil)
	if code, body := s.send(t, http.MethodPost, "/create", wire.Retrieved{Pod: aPod("u1")}); code != http.StatusOK {
		t.Fatal(code, body)
	}
	k := s.pods.get("u1")
	for range 20 {
		if code, body := s.send(t, http.MethodPost, "/delete", aPod("u1")); code != http.StatusOK {
			t.Fatal(code, body)
		}
	}
	s.pods.working.Wait()
	k.Deleted = &corev1.Pod{}
	if err := s.pods.keepDeleted(k, k.record); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(string(s.pods.store)); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
