// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSnapshotIsWhatAFreshOneWouldBe looks at pods of many plans all the time. A remembered snapshot must never
// differ from a fresh one.
func TestSnapshotIsWhatAFreshOneWouldBe(t *testing.T) {
	second := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }
	for name, behavior := range map[string]Behavior{
		"simple":   {},
		"slow":     {StartDelay: second(3), ReadyDelay: second(4)},
		"ends":     {StartDelay: second(1), RunFor: second(5)},
		"fails":    {RunFor: second(2), ReadyDelay: second(1), ExitCode: 3},
		"lingers":  {DeleteDelay: second(6)},
		"restarts": {RunFor: second(3), RestartDelay: second(2)},
	} {
		t.Run(name, func(t *testing.T) {
			p := &provider{}
			begin := time.Now()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
			s := &simulated{pod: pod, life: life{created: begin, behavior: behavior, policy: corev1.RestartPolicyAlways}}
			for step := range 120 {
				now := begin.Add(time.Duration(step) * 250 * time.Millisecond)
				switch step {
				case 40:
					changed := pod.DeepCopy()
					changed.Spec.Containers[0].Image = "other"
					s.pod = changed
				case 60:
					s.life.stopContainers(now, 20*time.Second)
				case 70:
					s.life.stopContainers(now, 0)
				}
				got := p.podAt(s, now)
				fresh := p.podAt(&simulated{pod: s.pod, life: s.life}, now)
				if !reflect.DeepEqual(got, fresh) {
					t.Fatalf("after %v: got %+v, want %+v", now.Sub(begin), got.Status, fresh.Status)
				}
			}
		})
	}
}

func BenchmarkSnapshotAtRest(b *testing.B) {
	p := &provider{}
	s := &simulated{pod: &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}, life: life{created: time.Now()}}
	now := time.Now().Add(time.Minute)
	b.ReportAllocs()
	for b.Loop() {
		p.podAt(s, now)
	}
}
