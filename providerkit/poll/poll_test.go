// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// instance is an instance of the tests' service.
type instance struct {
	id, uid, state   string
	created, changed time.Time
	deleted          bool
}

// service returns its instances or its error, and counts the calls. A running test changes it through edit.
type service struct {
	mu             sync.Mutex
	have           []instance
	err            error
	lists, changes int
	asked          []time.Time
	slow           time.Duration
}

func (s *service) list(ctx context.Context) ([]instance, error) {
	s.edit(func() { s.lists, s.asked = s.lists+1, append(s.asked, time.Now()) })
	return s.answer(ctx)
}

func (s *service) changed(ctx context.Context, since time.Time) ([]instance, error) {
	s.edit(func() { s.changes, s.asked = s.changes+1, append(s.asked, time.Now()) })
	all, err := s.answer(ctx)
	return slices.DeleteFunc(all, func(i instance) bool { return i.changed.Before(since) }), err
}

func (s *service) answer(ctx context.Context) ([]instance, error) {
	s.mu.Lock()
	have, err, slow := slices.Clone(s.have), s.err, s.slow
	s.mu.Unlock()
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return have, err
}

func (s *service) edit(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// has sets the instances of the service, all changed now.
func (s *service) has(all ...instance) {
	for i := range all {
		all[i].changed = time.Now()
	}
	s.edit(func() { s.have = all })
}

func (s *service) fail(err error) { s.edit(func() { s.err = err }) }

// run runs a cache of the service in a bubble. reports contains its reports, as uid=phase.
func (s *service) run(t *testing.T, change func(*Config[instance]), test func(t *testing.T, c *Cache[instance], reports *[]string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		config := Config[instance]{
			List: s.list,
			Identify: func(i instance) (Identity, bool) {
				return Identity{Namespace: "ns", Name: "pod-" + i.uid, UID: types.UID(i.uid), ID: i.id, CreatedAt: i.created}, i.uid != ""
			},
			Status: func(_ *corev1.Pod, i instance) corev1.PodStatus {
				return corev1.PodStatus{Phase: corev1.PodPhase(i.state)}
			},
			Ended: func(i instance) bool { return i.deleted },
		}
		if change != nil {
			change(&config)
		}
		c := New(config)
		var reports []string
		c.Notify(func(p *corev1.Pod) { reports = append(reports, fmt.Sprintf("%s=%s", p.UID, p.Status.Phase)) })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Run(ctx)
		}()
		synctest.Wait()
		test(t, c, &reports)
		cancel()
		<-done
	})
}

func after(d time.Duration) {
	time.Sleep(d) // in a bubble
	synctest.Wait()
}

func podOf(uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-" + uid, UID: types.UID(uid)}}
}

func (c *Cache[T]) has(uid string) bool {
	_, _, ok := c.Get(types.UID(uid))
	return ok
}

func TestPodsFromBeforeARestartAreFound(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Running"}, {id: "x"}}}
	full := podOf("a")
	full.Spec.NodeName = "n"
	s.run(t, func(c *Config[instance]) {
		c.Pod = func(id Identity) *corev1.Pod { return full }
	}, func(t *testing.T, c *Cache[instance], reports *[]string) {
		if err := c.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		pods := c.All()
		if len(pods) != 1 || pods[0].Spec.NodeName != "n" || pods[0].Status.Phase != "Running" {
			t.Fatalf("pods: got %+v", pods)
		}
		if !slices.Equal(*reports, []string{"a=Running"}) || s.lists != 1 {
			t.Errorf("got reports %v and %d lists", *reports, s.lists)
		}
	})
}

// TestRefresh: a status may also depend on facts outside the service. When such a fact changes, Refresh reports
// the new status without a request.
func TestRefresh(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Running"}}}
	reason := ""
	s.run(t, func(c *Config[instance]) {
		c.Status = func(_ *corev1.Pod, i instance) corev1.PodStatus {
			return corev1.PodStatus{Phase: corev1.PodPhase(i.state + reason)}
		}
	}, func(t *testing.T, c *Cache[instance], reports *[]string) {
		before := s.lists
		c.Refresh("a")
		reason = "-ready"
		c.Refresh("a")
		c.Refresh("b") // which is not there
		if !slices.Equal(*reports, []string{"a=Running", "a=Running-ready"}) || s.lists != before {
			t.Errorf("got reports %v and %d lists", *reports, s.lists-before)
		}
	})
}

// TestServiceThatNeverAnswersIsAway: a List that never returns does not leave the node Ready for ever.
func TestServiceThatNeverAnswersIsAway(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Running"}}}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], _ *[]string) {
		s.edit(func() { s.slow = 1000 * time.Hour })
		after(25 * time.Minute)
		if err := c.Away(); !errors.Is(err, context.DeadlineExceeded) || !c.has("a") {
			t.Errorf("away: %v, the pod is there: %t", err, c.has("a"))
		}
	})
}

// TestServiceThatFailsIsAskedAgainWithinSlowest: a failing service is asked at least once per Slowest, because
// users wait for its repair.
func TestServiceThatFailsIsAskedAgainWithinSlowest(t *testing.T) {
	s := &service{}
	s.run(t, func(c *Config[instance]) { c.Slowest = 10 * time.Second }, func(t *testing.T, _ *Cache[instance], _ *[]string) {
		s.fail(errors.New("503"))
		after(10 * time.Minute)
		var lists int
		s.edit(func() { lists = -s.lists })
		after(10 * time.Minute)
		s.edit(func() { lists += s.lists })
		if lists < 55 || lists > 65 {
			t.Errorf("%d lists in ten minutes of failures, want one in 10 s", lists)
		}
	})
}

func TestAnErrorIsNeverAnEmptyList(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Running"}}}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], _ *[]string) {
		s.has()
		s.fail(errors.New("503"))
		after(time.Hour)
		if !c.has("a") {
			t.Error("the pod is gone while the service fails")
		}
		if err, since := c.LastError(); err == nil || time.Since(since) < 59*time.Minute {
			t.Errorf("LastError: got %v since %v", err, since)
		}
		if s.lists > 70 {
			t.Errorf("%d lists in an hour that all failed", s.lists)
		}
		s.fail(nil)
		after(time.Minute)
		if err, _ := c.LastError(); err != nil {
			t.Errorf("LastError after the outage: %v", err)
		}
	})
}

// TestOneRoundThatFailsIsNoOutage: a single answer of 503 does not make the node unready.
func TestOneRoundThatFailsIsNoOutage(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Running"}}}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], _ *[]string) {
		s.fail(errors.New("503"))
		after(5 * time.Second) // the next round
		if err, _ := c.LastError(); err == nil || c.Away() != nil {
			t.Errorf("after one round that failed: LastError %v, Away %v", err, c.Away())
		}
		after(2 * time.Second) // it is asked again soon
		if err := c.Away(); !errors.Is(err, s.err) {
			t.Errorf("after two: Away %v", err)
		}
		s.fail(nil)
		after(5 * time.Second)
		if err := c.Away(); err != nil {
			t.Errorf("after the outage: Away %v", err)
		}
	})
}

// TestAPartialListLosesNothing: the instances in a partial list count; a missing instance means nothing.
func TestAPartialListLosesNothing(t *testing.T) {
	one, two := instance{id: "i1", uid: "a", state: "Running"}, instance{id: "i2", uid: "b", state: "Running"}
	s := &service{have: []instance{one, two}}
	var partial atomic.Bool
	s.run(t, func(c *Config[instance]) {
		c.List = func(ctx context.Context) ([]instance, error) {
			all, err := s.list(ctx)
			if partial.Load() {
				err = Partial
			}
			return all, err
		}
	}, func(t *testing.T, c *Cache[instance], reports *[]string) {
		partial.Store(true)
		s.has(instance{id: "i1", uid: "a", state: "Failed"})
		after(10 * time.Minute)
		if !c.has("b") || !slices.Contains(*reports, "a=Failed") {
			t.Errorf("b is there: %t, reports %v", c.has("b"), *reports)
		}
		if err, _ := c.LastError(); err != nil {
			t.Errorf("LastError: %v", err)
		}
		partial.Store(false)
		after(time.Minute)
		if c.has("b") {
			t.Error("not lost by complete lists")
		}
	})
}

func TestAFirstListThatFails(t *testing.T) {
	s := &service{err: errors.New("503")}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], _ *[]string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Wait(ctx); !errors.Is(err, s.err) {
			t.Errorf("Wait: got %v, want the error of the list", err)
		}
		if c.Synced() {
			t.Error("Synced without a list")
		}
		s.fail(nil)
		after(time.Minute)
		if !c.Synced() {
			t.Error("not Synced a minute after the outage")
		}
	})
}

func TestLostOnlyBySeveralCompleteLists(t *testing.T) {
	one := instance{id: "i1", uid: "a", state: "Running"}
	s := &service{have: []instance{one}}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], _ *[]string) {
		for range 5 { // a list that lacks it now and then proves nothing
			s.has()
			after(9 * time.Second)
			s.has(one)
			after(6 * time.Second)
		}
		if !c.has("a") {
			t.Fatal("lost by lists that did not follow on each other")
		}
		s.has()
		after(time.Minute)
		if c.has("a") {
			t.Error("there after a minute of lists without it")
		}
	})
}

func TestANewPodMayBeShownLate(t *testing.T) {
	s := &service{}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], _ *[]string) {
		c.Accepted(podOf("a"), instance{id: "i1", uid: "a", state: "Pending"})
		after(110 * time.Second)
		if !c.has("a") {
			t.Fatal("lost before the time that the service may take to show it")
		}
		after(time.Minute)
		if c.has("a") {
			t.Error("there though the service never showed it")
		}
	})
}

func TestADeletionIsConfirmedByLists(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Running"}}}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], _ *[]string) {
		c.Stopping("a")
		after(time.Minute)
		if !c.has("a") {
			t.Fatal("gone while the service has it")
		}
		s.has()
		after(2 * time.Second)
		if !c.has("a") {
			t.Fatal("gone by one list")
		}
		after(2 * time.Second)
		if c.has("a") {
			t.Error("there after lists that lack it")
		}
	})
}

func TestWhatHasEndedDoesNotComeBack(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Running"}}}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], reports *[]string) {
		c.Stopping("a")
		s.has(instance{id: "i1", uid: "a", state: "Failed", deleted: true})
		after(5 * time.Second)
		if c.has("a") || (*reports)[len(*reports)-1] != "a=Failed" {
			t.Fatalf("there: %t, reports %v", c.has("a"), *reports)
		}
		told := len(*reports)
		after(time.Hour)
		if c.has("a") || len(*reports) != told {
			t.Errorf("a pod that is gone came back: %v", *reports)
		}
	})
}

func TestAnOldAnswerIsNotBelieved(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Pending"}}}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], reports *[]string) {
		s.edit(func() { s.slow = 10 * time.Second }) // this list is under way when the push comes
		after(3 * time.Second)
		c.Take(t.Context(), time.Now(), instance{id: "i1", uid: "a", state: "Succeeded"})
		s.has(instance{id: "i1", uid: "a", state: "Succeeded"})
		after(30 * time.Second)
		if want := []string{"a=Pending", "a=Succeeded"}; !slices.Equal(*reports, want) {
			t.Errorf("reports: got %v, want %v", *reports, want)
		}
	})
}

func TestTheFirstInstanceIsThePod(t *testing.T) {
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &service{have: []instance{{id: "i2", uid: "a", state: "Pending", created: t0.Add(time.Second)}, {id: "i1", uid: "a", state: "Running", created: t0}}}
	doubles := map[string]int{}
	s.run(t, func(c *Config[instance]) {
		c.Double = func(_ context.Context, i instance) { doubles[i.id]++ }
	}, func(t *testing.T, c *Cache[instance], _ *[]string) {
		if _, i, _ := c.Get("a"); i.id != "i1" || doubles["i2"] != 1 || doubles["i1"] != 0 {
			t.Errorf("the pod is %s, doubles %v", i.id, doubles)
		}
	})
}

// TestRequestsAtRest tests the promise of the package: the number of requests at rest does not grow with the
// pods.
func TestRequestsAtRest(t *testing.T) {
	s := &service{}
	for i := range 1000 {
		s.have = append(s.have, instance{id: fmt.Sprint(i), uid: fmt.Sprint(i), state: "Running"})
	}
	s.run(t, func(c *Config[instance]) { c.Changed = s.changed }, func(t *testing.T, c *Cache[instance], _ *[]string) {
		after(time.Hour)
		if s.lists > 13 || s.changes > 720 {
			t.Errorf("in an hour %d lists and %d requests for changes", s.lists, s.changes)
		}
		for i := 1; i < len(s.asked); i++ {
			if gap := s.asked[i].Sub(s.asked[i-1]); gap > 5*time.Second {
				t.Fatalf("nobody asked in the %v before %v", gap, s.asked[i])
			}
		}
	})
}

func TestFastWhilePodsStart(t *testing.T) {
	s := &service{}
	s.run(t, func(c *Config[instance]) { c.Changed = s.changed }, func(t *testing.T, c *Cache[instance], _ *[]string) {
		after(10 * time.Minute)
		if rounds := s.lists + s.changes; rounds > 11 {
			t.Errorf("%d rounds in ten minutes without a pod", rounds)
		}
		before := s.lists + s.changes
		starting := instance{id: "i1", uid: "a", state: "Pending"}
		s.has(starting)
		c.Accepted(podOf("a"), starting)
		after(20 * time.Second)
		if rounds := s.lists + s.changes - before; rounds < 8 || rounds > 12 {
			t.Errorf("%d rounds in 20 s while a pod starts", rounds)
		}
	})
}

func TestManyCreatesDoNotPutTheRoundOff(t *testing.T) {
	s := &service{}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], _ *[]string) {
		for range 100 {
			c.Hurry()
			after(100 * time.Millisecond)
		}
		if s.lists < 5 {
			t.Errorf("%d lists in 10 s of creates", s.lists)
		}
	})
}

func TestTheServiceSaysWhenToAskAgain(t *testing.T) {
	s := &service{err: errdefs.RetryAfter(errors.New("429"), 10*time.Minute)}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], _ *[]string) {
		for range 90 {
			c.Hurry()
			after(6 * time.Second)
		}
		if s.lists != 1 {
			t.Errorf("%d lists in the nine minutes after the service asked for ten", s.lists)
		}
	})
}

func TestAPodOfANameIsTheOneThatDoesNotStop(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Running"}}}
	s.run(t, func(c *Config[instance]) {
		c.Identify = func(i instance) (Identity, bool) {
			return Identity{Namespace: "ns", Name: "web", UID: types.UID(i.uid), ID: i.id}, true
		}
	}, func(t *testing.T, c *Cache[instance], _ *[]string) {
		c.Stopping("a")
		next := podOf("b")
		next.Name = "web"
		c.Accepted(next, instance{id: "i2", uid: "b", state: "Pending"})
		if p, _, err := c.Find("ns", "web"); err != nil || p.UID != "b" {
			t.Errorf("Find: got %v, %v", p, err)
		}
		if _, _, err := c.Find("ns", "other"); !errdefs.IsNotFound(err) {
			t.Errorf("Find of none: got %v", err)
		}
	})
}

func TestPodsThatAreHandedOutDoNotChange(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Pending"}}}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], _ *[]string) {
		before, _, _ := c.Get("a")
		full := podOf("a")
		full.Labels = map[string]string{"k": "v"}
		if !c.Update(full) || c.Update(podOf("z")) {
			t.Error("Update does not say what the service has")
		}
		s.has(instance{id: "i1", uid: "a", state: "Running"})
		after(10 * time.Second)
		now, _, _ := c.Get("a")
		if before.Status.Phase != "Pending" || before.Labels != nil || now.Status.Phase != "Running" || now.Labels["k"] != "v" {
			t.Errorf("before %+v\nnow %+v", before, now)
		}
	})
}

// TestListsBetweenChanges: with a service that lists changes, complete lists are made only for the facts that no
// list of changes shows, and not in each round.
func TestListsBetweenChanges(t *testing.T) {
	running := instance{id: "i1", uid: "a", state: "Running"}
	for _, c := range []struct {
		name   string
		begin  func(s *service, c *Cache[instance])
		within time.Duration // until the pod is not there any more
		not    time.Duration // until when it is
		lists  int           // at most
	}{
		{name: "it is lost", begin: func(s *service, _ *Cache[instance]) { s.has() }, not: 4 * time.Minute, within: 5*time.Minute + 25*time.Second, lists: 3},
		{name: "it stops", begin: func(s *service, c *Cache[instance]) { c.Stopping("a"); s.has() }, not: time.Second, within: 25 * time.Second, lists: 2},
		{name: "it stops slowly, and is asked for again", begin: func(s *service, c *Cache[instance]) {
			c.Stopping("a")
			after(5 * time.Minute)
			s.has()
			for range 20 {
				after(time.Second)
				c.Stopping("a")
			}
		}, within: 10 * time.Second, lists: 32},
		{name: "it never was there", begin: func(s *service, c *Cache[instance]) {
			s.has(running)
			c.Accepted(podOf("b"), instance{id: "i2", uid: "b", state: "Running"})
			after(time.Minute)
			c.Forget("a")
			s.has()
		}, not: 30 * time.Second, within: 2 * time.Minute, lists: 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &service{have: []instance{running}}
			s.run(t, func(c *Config[instance]) { c.Changed = s.changed }, func(t *testing.T, cache *Cache[instance], _ *[]string) {
				after(2 * time.Minute) // instances of an earlier process are known
				before := s.lists
				c.begin(s, cache)
				after(c.not)
				if len(cache.All()) != 1 && c.not > 0 {
					t.Errorf("gone after %v", c.not)
				}
				after(c.within - c.not)
				if len(cache.All()) != 0 {
					t.Errorf("there after %v", c.within)
				}
				if n := s.lists - before; n > c.lists {
					t.Errorf("%d lists", n)
				}
			})
		})
	}
}

func TestWhatWasToldIsNotChanged(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Pending"}}}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], _ *[]string) {
		before, _, _ := c.Get("a")
		s.has(instance{id: "i1", uid: "a", state: "Running"})
		after(10 * time.Second)
		if before.Status.Phase != "Pending" {
			t.Error("a pod that was handed out changed")
		}
	})
}

func TestAListThatBeganBeforeTheCreateProvesNothing(t *testing.T) {
	s := &service{slow: 9 * time.Minute}
	s.run(t, func(c *Config[instance]) { c.SeenWithin = time.Nanosecond }, func(t *testing.T, c *Cache[instance], _ *[]string) {
		c.Accepted(podOf("a"), instance{id: "i1", uid: "a", state: "Running"})
		after(2*9*time.Minute + time.Minute)
		for _, e := range c.pods {
			if e.missing != 1 {
				t.Errorf("lists that lack it: %d of 2, of which one began before it was there", e.missing)
			}
		}
	})
}

// TestAPodWithoutASpecIsAskedForAgain: a pod's spec may arrive after the first list. The cache asks for it again
// and reports the new status.
func TestAPodWithoutASpecIsAskedForAgain(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Running"}}}
	var of *corev1.Pod
	s.run(t, func(c *Config[instance]) {
		c.Pod = func(Identity) *corev1.Pod { return of }
		c.Status = func(pod *corev1.Pod, i instance) corev1.PodStatus {
			return corev1.PodStatus{Phase: corev1.PodPhase(fmt.Sprint(i.state, len(pod.Spec.Containers)))}
		}
	}, func(t *testing.T, c *Cache[instance], reports *[]string) {
		full := podOf("a")
		full.Spec.Containers = []corev1.Container{{Name: "main"}}
		c.mu.Lock()
		of = full
		c.mu.Unlock()
		after(6 * time.Second)
		if pod, _, _ := c.Get("a"); len(pod.Spec.Containers) != 1 || pod.Status.Phase != "Running1" {
			t.Errorf("the pod is %+v", pod)
		}
		if want := []string{"a=Running0", "a=Running1"}; !slices.Equal(*reports, want) {
			t.Errorf("reports: got %v, want %v", *reports, want)
		}
	})
}

// TestStatusIsMadeFromTheStatusThatWasTold: after a restart, the status is computed from the pod's status in the
// cluster, and later from the last report.
func TestStatusIsMadeFromTheStatusThatWasTold(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Running"}}}
	s.run(t, func(c *Config[instance]) {
		of := podOf("a")
		of.Spec.Containers = []corev1.Container{{Name: "main"}}
		of.Status.Phase = "Told"
		c.Pod = func(Identity) *corev1.Pod { return of }
		c.Status = func(pod *corev1.Pod, i instance) corev1.PodStatus {
			if pod.Status.Phase == "Told" {
				return corev1.PodStatus{Phase: "ToldOnce"}
			}
			return corev1.PodStatus{Phase: pod.Status.Phase + corev1.PodPhase(i.state)}
		}
	}, func(t *testing.T, c *Cache[instance], reports *[]string) {
		c.Refresh("a")
		if want := []string{"a=ToldOnce", "a=ToldOnceRunning"}; !slices.Equal(*reports, want) {
			t.Errorf("reports: got %v, want %v", *reports, want)
		}
	})
}

// TestTheOlderInstanceIsThePod: the older of two instances is the pod, even if the creation time of the accepted
// instance was not known at first.
func TestTheOlderInstanceIsThePod(t *testing.T) {
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	older, younger := instance{id: "i1", uid: "a", state: "Running", created: t0}, instance{id: "i2", uid: "a", state: "Running", created: t0.Add(time.Second)}
	for name, c := range map[string]struct {
		accepted string
		lists    []instance
	}{
		"the younger is accepted, the older comes first": {"i2", []instance{older, younger}},
		"the younger is accepted, the older comes last":  {"i2", []instance{younger, older}},
		"the younger is accepted, and not in lists":      {"i2", []instance{older}},
		"the older is accepted, and comes first":         {"i1", []instance{older, younger}},
		"the older is accepted, and comes last":          {"i1", []instance{younger, older}},
	} {
		t.Run(name, func(t *testing.T) {
			s, doubles := &service{}, map[string]int{}
			s.run(t, func(config *Config[instance]) {
				config.Double = func(_ context.Context, i instance) { doubles[i.id]++ }
			}, func(t *testing.T, cache *Cache[instance], _ *[]string) {
				cache.Accepted(podOf("a"), instance{id: c.accepted, uid: "a", state: "Pending"})
				s.has(c.lists...)
				after(5 * time.Second)
				if _, i, _ := cache.Get("a"); i.id != "i1" || doubles["i1"] > 0 || doubles["i2"] == 0 {
					t.Errorf("the pod is %s, doubles %v", i.id, doubles)
				}
			})
		})
	}
}

// TestWhatHasEndedDoesNotComeBackStopping: while a service removes an ended instance, it may report another
// state for it. The pod stays gone.
func TestWhatHasEndedDoesNotComeBackStopping(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Succeeded", deleted: true}}}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], reports *[]string) {
		c.Stopping("a")
		told := len(*reports)
		s.has(instance{id: "i1", uid: "a", state: "Running"})
		after(time.Hour)
		if c.has("a") || len(*reports) != told {
			t.Errorf("a pod that is gone came back: %v", *reports)
		}
		s.has(instance{id: "i1", uid: "a", state: "Running"}, instance{id: "i2", uid: "a", state: "Running"})
		after(2 * time.Minute)
		if _, i, _ := c.Get("a"); i.id != "i2" {
			t.Errorf("another instance of the pod is not seen: got %q", i.id)
		}
	})
}

// TestAcceptedKeepsWhatAListSaid: the answer to a create may arrive after a list. The state from the list stays.
func TestAcceptedKeepsWhatAListSaid(t *testing.T) {
	s := &service{have: []instance{{id: "i1", uid: "a", state: "Running"}}}
	s.run(t, nil, func(t *testing.T, c *Cache[instance], reports *[]string) {
		c.Accepted(podOf("a"), instance{id: "i1", uid: "a", state: "Pending"})
		if want := []string{"a=Running"}; !slices.Equal(*reports, want) {
			t.Errorf("reports: got %v, want %v", *reports, want)
		}
		c.Accepted(podOf("a"), instance{id: "i2", uid: "a", state: "Pending"})
		if pod, i, _ := c.Get("a"); i.id != "i2" || pod.Status.Phase != "Pending" {
			t.Errorf("another instance: got %s, %s", i.id, pod.Status.Phase)
		}
	})
}
