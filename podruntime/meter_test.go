// SPDX-License-Identifier: Apache-2.0

package podruntime

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/podruntime/internal/volumes"
)

// measuring is a meter in a bubble. Each walk takes the time in takes and finds the bytes in finds.
type measuring struct {
	*meter
	t        *testing.T
	takes    atomic.Int64
	finds    atomic.Int64
	walks    atomic.Int64
	at, most atomic.Int64
	fails    atomic.Bool
	ctx      context.Context // of the node
}

func inMeter(t *testing.T, test func(t *testing.T, m *measuring)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		m := &measuring{t: t, ctx: ctx}
		m.meter = newMeter(m.walk, func(work func(context.Context)) bool {
			wg.Go(func() { work(ctx) })
			return ctx.Err() == nil
		})
		test(t, m)
		cancel()
		wg.Wait()
	})
}

func (m *measuring) walk(ctx context.Context, _ *corev1.Pod) (map[string]volumes.Use, error) {
	m.walks.Add(1)
	m.most.Store(max(m.most.Load(), m.at.Add(1)))
	defer m.at.Add(-1)
	use := volumes.Use{Bytes: m.finds.Load()}
	if m.fails.Load() {
		return nil, errors.New("permission denied")
	}
	select {
	case <-time.After(time.Duration(m.takes.Load())):
	case <-ctx.Done():
		use.AtLeast = true
	}
	return map[string]volumes.Use{"e": use}, nil
}

// want requests the figures of a pod, checks them, and returns the duration of the request.
func (m *measuring) want(pod *corev1.Pod, bytes int64, err error) time.Duration {
	m.t.Helper()
	begin := time.Now()
	patience, cancel := context.WithTimeout(m.t.Context(), usagePatience)
	defer cancel()
	use, got := m.volumeUse(patience, pod, usageFresh)
	if use["e"].Bytes != bytes || !errors.Is(got, err) {
		m.t.Errorf("got %+v, %v; want %d bytes, %v", use, got, bytes, err)
	}
	return time.Since(begin)
}

func TestWhoAsksForUsageDoesNotWaitForAWalk(t *testing.T) {
	inMeter(t, func(t *testing.T, m *measuring) {
		pod := podOf("web")
		m.takes.Store(int64(30 * time.Second))
		m.finds.Store(7)
		if took := m.want(pod, 0, errNotMeasured); took > usagePatience {
			t.Errorf("the first one waited %v", took)
		}
		time.Sleep(31 * time.Second)
		m.want(pod, 7, nil)
		m.finds.Store(9)
		time.Sleep(10 * time.Minute)
		if took := m.want(pod, 7, nil); took > usagePatience { // old figures; a new walk begins
			t.Errorf("one who asked when it was time waited %v", took)
		}
		if took := m.want(pod, 7, nil); took != 0 {
			t.Errorf("one who asked while it was measured waited %v", took)
		}
		time.Sleep(31 * time.Second)
		m.want(pod, 9, nil)
		if n := m.walks.Load(); n != 2 {
			t.Errorf("got %d walks, want 2", n)
		}
	})
}

// TestPodThatTakesLongToMeasureKeepsNobodyWaiting: a pod whose measurement is slow is measured less often, and
// delays no other pod.
func TestPodThatTakesLongToMeasureKeepsNobodyWaiting(t *testing.T) {
	inMeter(t, func(t *testing.T, m *measuring) {
		pod := podOf("web")
		m.takes.Store(int64(time.Hour)) // it is broken off
		m.finds.Store(5)
		m.want(pod, 0, errNotMeasured)
		time.Sleep(meterTime + time.Second)
		m.want(pod, 5, nil)
		time.Sleep(usageFresh)
		m.want(pod, 5, nil)
		if n := m.walks.Load(); n != 1 {
			t.Errorf("got %d walks, want 1: it took a minute, so it rests", n)
		}
		m.finds.Store(3) // less than before: there may be more
		time.Sleep(meterRest * meterTime)
		m.want(pod, 5, nil)
		time.Sleep(meterTime + time.Second)
		m.want(pod, 5, nil)
		if n := m.walks.Load(); n != 2 {
			t.Errorf("got %d walks, want 2", n)
		}
	})
}

func TestFewPodsAreMeasuredAtOnce(t *testing.T) {
	inMeter(t, func(t *testing.T, m *measuring) {
		m.takes.Store(int64(time.Second))
		m.finds.Store(1)
		for i := range 10 {
			m.want(podOf("web-"+strconv.Itoa(i)), 0, errNotMeasured)
		}
		time.Sleep(time.Minute)
		if most, n := m.most.Load(), m.walks.Load(); most != meterTurns || n != 10 {
			t.Errorf("got %d walks, %d at once; want 10, %d", n, most, meterTurns)
		}
		m.forgetPod("uid-web-0")
		if n := len(m.pods); n != 9 {
			t.Errorf("got figures of %d pods after one was forgotten, want 9", n)
		}
	})
}

func TestWalkThatFailsIsNotTakenForNothing(t *testing.T) {
	inMeter(t, func(t *testing.T, m *measuring) {
		pod := podOf("web")
		m.fails.Store(true)
		patience, cancel := context.WithTimeout(t.Context(), usagePatience)
		defer cancel()
		if use, err := m.volumeUse(patience, pod, usageFresh); err == nil || use != nil {
			t.Errorf("got %v, %v; want the error", use, err)
		}
	})
}
