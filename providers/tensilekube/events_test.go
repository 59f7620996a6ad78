// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

var _ record.EventRecorder = (*recorded)(nil)

// recorded holds the events that were reported at home.
type recorded struct {
	mu  sync.Mutex
	all []string // guarded by mu; UID of the pod, reason and message
}

// Event implements record.EventRecorder.
func (r *recorded) Event(o runtime.Object, _, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, fmt.Sprintf("%s %s %s", o.(*corev1.ObjectReference).UID, reason, message))
}

// Eventf implements record.EventRecorder.
func (r *recorded) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	r.Event(o, kind, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements record.EventRecorder.
func (r *recorded) AnnotatedEventf(o runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	r.Eventf(o, kind, reason, format, args...)
}

// eventsOf returns the events about a pod with a reason.
func (u *upper) eventsOf(pod *corev1.Pod, reason string) []string {
	u.events.mu.Lock()
	defer u.events.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(u.events.all), func(e string) bool { return !strings.HasPrefix(e, string(pod.UID)+" "+reason+" ") })
}

// say creates an event about the remote pod in the lower cluster.
func (u *upper) say(pod *corev1.Pod, reason string) {
	u.Helper()
	remote := u.remote(pod)
	_, err := u.worker.API.Client.CoreV1().Events(remote.Namespace).Create(u.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "said-"}, Type: "Warning", Reason: reason, Message: "of " + reason, Count: 1,
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: remote.Namespace, Name: remote.Name, UID: remote.UID},
	}, metav1.CreateOptions{})
	if err != nil {
		u.Fatal(err)
	}
}

// untilSaid waits until an event is at home, and fails the test if it is there twice.
func (u *upper) untilSaid(pod *corev1.Pod, reason string) {
	u.Helper()
	u.Until("the event "+reason+" at home", func() (bool, string) { got := u.eventsOf(pod, reason); return len(got) > 0, fmt.Sprint(got) })
	if got := u.eventsOf(pod, reason); len(got) != 1 {
		u.Errorf("the event %s was told as %q, want it once", reason, got)
	}
}

// TestEventsOfTheRemotePod checks that events of the lower cluster's scheduler and node appear on the pod at
// home, once each, also over a restart of the node and an outage.
func TestEventsOfTheRemotePod(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "events", "vk-0")
	p, stop := u.start()
	pod := u.Pod("default", "web", stays())
	u.Create(p, pod)
	u.UntilRuns(p, pod)
	u.untilSaid(pod, "Scheduled")
	if got := u.eventsOf(pod, "Scheduled")[0]; !strings.Contains(got, "in the remote cluster: ") {
		t.Errorf("the event is %q, want it to say where", got)
	}
	u.say(pod, "First")
	u.untilSaid(pod, "First")

	stop()
	_, _ = u.start()
	u.Until("an event after the restart", func() (bool, string) {
		u.say(pod, "Probe") // one such event may be in the first list of the new process
		return len(u.eventsOf(pod, "Probe")) > 0, ""
	})
	for _, reason := range []string{"Scheduled", "First"} {
		if got := u.eventsOf(pod, reason); len(got) != 1 {
			t.Errorf("after the restart the event %s was told %d times, want once", reason, len(got))
		}
	}

	u.line.Outage(true)
	u.say(pod, "Meanwhile")
	u.line.Outage(false)
	u.untilSaid(pod, "Meanwhile")
}
