// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// TestEventsAreAggregatedAsAKubelets: events of one pod are limited as a kubelet limits them. The node sends 25
// events at once, and then one every 5 minutes. From the tenth event that differs only in its message, one event
// counts the others.
func TestEventsAreAggregatedAsAKubelets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		objects, hub := fake.NewClientset(), &eventHub{}
		stop := hub.run(ctx, objects.CoreV1())
		defer func() { cancel(); stop() }()
		recorder := hub.recorder("virtual-kubelet", "n")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "a"}}
		say := func(n int) {
			for i := range n {
				recorder.Event(pod, corev1.EventTypeWarning, "ProviderCreateFailed", fmt.Sprintf("request %v %d", time.Now(), i))
				time.Sleep(time.Millisecond) // events of the same moment have the same name
				synctest.Wait()
			}
		}
		sent := func(want int, when string) {
			if got := len(objects.Actions()); got != want {
				t.Errorf("%s: %d requests, want %d", when, got, want)
			}
		}
		say(100)
		sent(25, "100 events at once")
		list, err := objects.CoreV1().Events("d").List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 10 {
			t.Errorf("%d events (%v), want 9 and one that counts the others", len(list.Items), err)
		}
		objects.ClearActions()
		time.Sleep(time.Hour)
		say(100)
		sent(12, "100 an hour later")
	})
}

// TestLastEventsAreSentBeforeTheEnd: events that are recorded right before the end are sent, too.
func TestLastEventsAreSentBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		objects, hub := fake.NewClientset(), &eventHub{}
		stop := hub.run(ctx, objects.CoreV1())
		recorder := hub.recorder("virtual-kubelet", "n")
		for i := range 20 {
			recorder.Event(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint(i))}}, corev1.EventTypeNormal, "Stopped", "it has")
		}
		cancel()
		stop()
		if got := len(objects.Actions()); got != 20 {
			t.Errorf("%d requests, want 20", got)
		}
	})
}

// TestLostEventsAreOneShortLine: an API server that does not answer delays the end by about a second. One line
// in the log names the events that were not sent.
func TestLostEventsAreOneShortLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := &lineLogger{}
		ctx, cancel := context.WithCancel(lines.into(t.Context()))
		objects, hub := fake.NewClientset(), &eventHub{}
		objects.PrependReactor("*", "events", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("dark") })
		stop := hub.run(ctx, objects.CoreV1())
		recorder := hub.recorder("virtual-kubelet", "n")
		for i := range 20 {
			recorder.Event(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint(i))}}, corev1.EventTypeNormal, "Stopped", "it has")
		}
		synctest.Wait()
		begin := time.Now()
		cancel()
		stop()
		if took := time.Since(begin); took > 2*flushTime {
			t.Errorf("the end took %v", took)
		}
		got := lines.text()
		if want := "warn 20 events were not sent before the end: Stopped of d/p0, Stopped of d/p1, Stopped of d/p2, Stopped of d/p3, Stopped of d/p4, ..."; strings.Count(got, "\n") != 1 || !strings.Contains(got, want) || !strings.Contains(got, "warn events wait") {
			t.Errorf("log: got %s", got)
		}
	})
}

// latePod is a pod whose event is recorded after the node has begun to stop.
type latePod struct {
	*corev1.Pod
	begun, goOn chan struct{}
}

func (p *latePod) GetObjectKind() schema.ObjectKind {
	select {
	case <-p.begun:
	default:
		close(p.begun)
	}
	<-p.goOn
	return p.Pod.GetObjectKind()
}

// TestEventThatIsRecordedDuringTheEndIsNotSent: an event is not sent if it is recorded after the stopping node has collected the last
// events.
func TestEventThatIsRecordedDuringTheEndIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		objects, hub := fake.NewClientset(), &eventHub{}
		answer := make(chan struct{})
		objects.PrependReactor("*", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			<-answer
			return false, nil, nil
		})
		stop := hub.run(ctx, objects.CoreV1())
		recorder := hub.recorder("virtual-kubelet", "n")
		pod := func(name string) *corev1.Pod {
			return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: types.UID(name)}}
		}
		recorder.Event(pod("early"), corev1.EventTypeNormal, "Stopped", "it has")
		late := &latePod{pod("late"), make(chan struct{}), make(chan struct{})}
		recorded := make(chan struct{})
		go func() {
			defer close(recorded)
			recorder.Event(late, corev1.EventTypeNormal, "Stopped", "it has")
		}()
		<-late.begun
		cancel()
		stopped := make(chan struct{})
		go func() { defer close(stopped); stop() }()
		synctest.Wait()
		close(late.goOn)
		<-recorded
		close(answer)
		<-stopped
		synctest.Wait()
		if got := len(objects.Actions()); got != 1 {
			t.Errorf("%d requests, want the one about the early pod", got)
		}
	})
}

// TestMalformedEventIsDroppedAtOnce: a malformed event is not retried. It would fail again, and the events
// behind it wait.
func TestMalformedEventIsDroppedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		objects, hub := fake.NewClientset(), &eventHub{}
		objects.PrependReactor("*", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, fmt.Errorf("events: %w", &rest.RequestConstructionError{Err: errors.New("bad name")})
		})
		stop := hub.run(ctx, objects.CoreV1())
		defer func() { cancel(); stop() }()
		hub.recorder("virtual-kubelet", "n").Event(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "a"}}, corev1.EventTypeNormal, "Stopped", "it has")
		time.Sleep(time.Hour)
		if got := len(objects.Actions()); got != 1 {
			t.Errorf("%d requests, want 1", got)
		}
	})
}
