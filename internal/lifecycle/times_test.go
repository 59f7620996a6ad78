// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEveryTimeIsCutToSeconds changes each time alone, and checks that shared parts of the status are not modified.
func TestEveryTimeIsCutToSeconds(t *testing.T) {
	whole, times := filled(), 0
	given := whole.DeepCopy()
	leaves(reflect.ValueOf(given).Elem(), "status", func(path string, v reflect.Value) {
		at, is := v.Interface().(metav1.Time)
		if !is || strings.HasPrefix(path, "status.VolumeHealth") { // not in the oldest API, and not requested in reports
			return
		}
		times++
		v.Set(reflect.ValueOf(metav1.Time{Time: at.Add(999_999_999)}))
		before, got := given.DeepCopy(), *given
		truncateTimes(&got)
		if !reflect.DeepEqual(&got, whole) {
			t.Errorf("%s is not cut, or something else is", path)
		}
		if !reflect.DeepEqual(given, before) {
			t.Errorf("%s is cut in the status that others read", path)
		}
		v.Set(reflect.ValueOf(at))
	})
	if times < 15 {
		t.Errorf("%d times were tried", times)
	}
}

// TestNothingIsCopiedForWholeSeconds: most statuses need no truncation.
func TestNothingIsCopiedForWholeSeconds(t *testing.T) {
	given := filled()
	given.ContainerStatuses = append(given.ContainerStatuses, given.ContainerStatuses[0], container(waiting))
	given.Conditions = append(given.Conditions, corev1.PodCondition{})
	got := *given
	if n := testing.AllocsPerRun(10, func() { truncateTimes(&got) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	late := metav1.Time{Time: now.Add(time.Millisecond)}
	given.ContainerStatuses[0].State.Running.StartedAt = late
	ended := given.ContainerStatuses[0].State.Terminated
	got = *given
	truncateTimes(&got)
	if got.ContainerStatuses[0].State.Terminated != ended || got.ContainerStatuses[0].State.Running == given.ContainerStatuses[0].State.Running {
		t.Error("more or less than the state with a fraction is copied")
	}
	if !given.ContainerStatuses[0].State.Running.StartedAt.Equal(&late) {
		t.Error("what was given has changed")
	}
}
