// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	coordclientset "k8s.io/client-go/kubernetes/typed/coordination/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/internal/sleep"
)

func names(prefix string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%s%03d", prefix, i))
	}
	return out
}

// owners returns the member of each node.
func owners(shares map[string][]string) map[string]string {
	all := map[string]string{}
	for member, nodes := range shares {
		for _, n := range nodes {
			all[n] = member
		}
	}
	return all
}

func TestSharesAreEvenAndStable(t *testing.T) {
	if Assign(names("n", 3), nil) != nil {
		t.Error("nobody has a share")
	}
	for _, nodes := range []int{0, 1, 5, 100, 1000} {
		for members := 1; members <= 7; members++ {
			all, group := names("vk-", nodes), names("m-", members)
			shares := Assign(all, group)
			most, least := 0, nodes
			for _, m := range group {
				most, least = max(most, len(shares[m])), min(least, len(shares[m]))
			}
			if most-least > 1 || len(owners(shares)) != nodes {
				t.Errorf("%d nodes, %d members: from %d to %d nodes each, %d in all", nodes, members, least, most, len(owners(shares)))
			}
			backwards := slices.Clone(group)
			slices.Reverse(backwards)
			for node, owner := range owners(Assign(all, backwards)) {
				if owners(shares)[node] != owner {
					t.Fatalf("%d nodes, %d members: the order of the members decides", nodes, members)
				}
			}
			if nodes < 100 {
				continue
			}
			// With one more member, only little more than its share moves.
			moved := 0
			for node, owner := range owners(Assign(all, append(names("m-", members), "m-new"))) {
				if owners(shares)[node] != owner {
					moved++
				}
			}
			if fair := nodes/(members+1) + 1; moved > fair*13/10 {
				t.Errorf("%d nodes, %d members and one more: %d move, its share is %d", nodes, members, moved, fair)
			}
		}
	}
}

// member returns the lease of a member at its nth renewal.
func member(name string, n int) coordinationv1.Lease {
	at := metav1.NewMicroTime(time.Unix(int64(n), 0))
	return coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}, Spec: coordinationv1.LeaseSpec{RenewTime: &at, HolderIdentity: ptr.To("host")}}
}

// TestWhoIsGone: a member is gone if its lease has not been renewed for long enough. The process reads leases every second, except for pauses in the
// case.
func TestWhoIsGone(t *testing.T) {
	a1, a2, left, b := member("a", 1), member("a", 2), member("a", 1), member("b", 1)
	left.Spec.HolderIdentity = ptr.To("")
	same := func(l coordinationv1.Lease, n int) []coordinationv1.Lease {
		return slices.Repeat([]coordinationv1.Lease{l}, n)
	}
	none := coordinationv1.Lease{}
	for name, tc := range map[string]struct {
		looks []coordinationv1.Lease // the lease of a in each list; without a name, there is no lease
		pause map[int]time.Duration  // before the look
		read  coordinationv1.Lease
		gone  bool
		live  string
	}{
		"it renews":                             {looks: []coordinationv1.Lease{a1, a2}, read: a2, live: "a b"},
		"no renewal for eight seconds":          {looks: same(a1, 9), read: a1, live: "a b"},
		"no renewal for nine seconds":           {looks: same(a1, 10), read: a1, gone: true, live: "b"},
		"it has renewed right now":              {looks: same(a1, 11), read: a2, live: "b"},
		"its lease was deleted just now":        {looks: []coordinationv1.Lease{a1, none}, read: a1, live: "a b"},
		"its lease was deleted long since":      {looks: append(same(a1, 1), same(none, 9)...), read: a1, live: "b"},
		"its lease comes and goes":              {looks: []coordinationv1.Lease{a1, none, none, a2, none, none, a1}, read: a1, live: "a b"},
		"it has left":                           {looks: append(same(a1, 2), left), read: left, live: "b"},
		"it has left, long since":               {looks: append(same(a1, 2), same(left, 9)...), read: left, gone: true, live: "b"},
		"nobody has ever seen it":               {looks: same(none, 12), read: a1, live: "b"},
		"nobody looked for a while":             {looks: same(a1, 11), pause: map[int]time.Duration{6: 10 * time.Second}, read: a1, live: "a b"},
		"it was gone before nobody looked":      {looks: same(a1, 12), pause: map[int]time.Duration{11: 10 * time.Second}, read: a1, gone: true, live: "b"},
		"it came back while nobody looked":      {looks: append(same(a1, 11), a2), pause: map[int]time.Duration{11: 10 * time.Second}, read: a2, live: "a b"},
		"the last look is long since":           {looks: same(a1, 11), pause: map[int]time.Duration{11: 6 * time.Second}, read: a1, live: "b"},
		"somebody else's lease with its name":   {looks: same(a2, 11), read: a1, live: "b"},
		"its lease is back as it was, and soon": {looks: append(append(same(a1, 3), same(none, 2)...), same(a1, 5)...), read: a1, gone: true, live: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			v, now := &view{}, time.Unix(1e9, 0)
			for i, look := range tc.looks {
				if i > 0 {
					now = now.Add(max(time.Second, tc.pause[i]))
				}
				b.Spec.RenewTime = &metav1.MicroTime{Time: now}
				all := []coordinationv1.Lease{*b.DeepCopy()}
				if look.Name != "" {
					all = append(all, look)
				}
				v.recordLeases(all, now)
			}
			live := strings.Join(v.liveMembers(now), " ")
			now = now.Add(tc.pause[len(tc.looks)])
			if gone := v.isGone("a", &tc.read, now); gone != tc.gone || live != tc.live {
				t.Errorf("gone is %t, and %q live; want %t, %q", gone, live, tc.gone, tc.live)
			}
		})
	}
}

// inGroup runs a test in a bubble, with a client of its own API server.
func inGroup(t *testing.T, test func(t *testing.T, client *fake.Clientset, start func(name string) (*Group, func()))) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		test(t, client, func(name string) (*Group, func()) {
			g := New(client.CoordinationV1().Leases("kube-node-lease"), "g", name, "host")
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); _ = g.Run(ctx) }()
			end := func() { stop(); <-done }
			t.Cleanup(end)
			return g, end
		})
	})
}

func TestMembersSeeEachOther(t *testing.T) {
	inGroup(t, func(t *testing.T, client *fake.Clientset, start func(string) (*Group, func())) {
		shows := func(want string, groups ...*Group) {
			t.Helper()
			synctest.Wait()
			for _, g := range groups {
				if got := strings.Join(g.Live(), " "); got != want {
					t.Errorf("%s sees %q, want %q", g.Member(), got, want)
				}
			}
		}
		a, _ := start("a")
		time.Sleep(2 * time.Second)
		shows("a", a)
		b, stopB := start("b")
		c, killC := start("c")
		time.Sleep(3 * time.Second)
		shows("a b c", a, b, c)
		if !a.Holds(time.Now()) || a.Holds(time.Now().Add(-time.Minute)) {
			t.Error("a holds what it took before it was there, or does not hold what it takes now")
		}
		stopB()
		b.Leave(t.Context())
		time.Sleep(2 * time.Second)
		shows("a c", a, c)
		killC()
		began := time.Now()
		for !a.Gone(t.Context(), "c") {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took < maxAge-renewEvery || took > goneAfter+lookEvery {
			t.Errorf("c was gone after %v", took)
		}
		time.Sleep(lookEvery)
		shows("a", a)
		if a.Gone(t.Context(), "a") || a.Gone(t.Context(), "") {
			t.Error("a is gone for itself")
		}
		time.Sleep(2 * time.Minute)
		if left, err := client.CoordinationV1().Leases("kube-node-lease").List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) != 1 {
			t.Errorf("%d leases are left (%v), want that of a", len(left.Items), err)
		}
	})
}

// TestNobodyIsGoneWhileTheAPIServerIsSilent: during and after an outage no member counts as gone. After the outage, a member does not count as a
// member without a gap, until its next renewal.
func TestNobodyIsGoneWhileTheAPIServerIsSilent(t *testing.T) {
	inGroup(t, func(t *testing.T, client *fake.Clientset, start func(string) (*Group, func())) {
		var silent atomic.Bool
		client.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return silent.Load(), nil, apierrors.NewServiceUnavailable("no")
		})
		a, _ := start("a")
		_, _ = start("b")
		time.Sleep(3 * time.Second)
		before := time.Now()
		silent.Store(true)
		time.Sleep(time.Minute)
		if a.Gone(t.Context(), "b") || a.Holds(before) || len(a.Live()) != 2 {
			t.Errorf("in the outage: b is gone: %t, a holds: %t, live: %v", a.Gone(t.Context(), "b"), a.Holds(before), a.Live())
		}
		silent.Store(false)
		time.Sleep(4 * time.Second)
		if a.Gone(t.Context(), "b") || a.Holds(before) || !a.Holds(time.Now()) || len(a.Live()) != 2 {
			t.Errorf("after the outage: b is gone: %t, a holds what it held: %t, live: %v", a.Gone(t.Context(), "b"), a.Holds(before), a.Live())
		}
	})
}

// TestALeaseThatSomebodyDeletes: a lease that is deleted again and again comes back each time, and no member counts as gone in the meantime.
func TestALeaseThatSomebodyDeletes(t *testing.T) {
	inGroup(t, func(t *testing.T, client *fake.Clientset, start func(string) (*Group, func())) {
		a, _ := start("a")
		b, _ := start("b")
		time.Sleep(3*time.Second + 50*time.Millisecond) // not at the time of a check
		since := time.Now()
		for i := range 300 {
			if i%20 == 0 {
				if err := client.CoordinationV1().Leases("kube-node-lease").Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
			}
			if a.Gone(t.Context(), "b") || !b.Holds(since) {
				t.Fatalf("after %v b is gone, or it holds no more", time.Since(since))
			}
			time.Sleep(100 * time.Millisecond)
		}
		if got := strings.Join(a.Live(), " "); got != "a b" {
			t.Errorf("a sees %q at last", got)
		}
	})
}

// lateLeases is a client whose responses arrive late, as if the process had been stopped in the meantime.
type lateLeases struct{ coordclientset.LeaseInterface }

func (l lateLeases) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	got, err := l.LeaseInterface.Get(ctx, name, o)
	time.Sleep(3 * time.Second)
	return got, err
}

// TestAnAnswerThatIsLate: a late response counts from the time of its request, not from its arrival.
func TestAnAnswerThatIsLate(t *testing.T) {
	inGroup(t, func(t *testing.T, client *fake.Clientset, start func(string) (*Group, func())) {
		a := New(lateLeases{client.CoordinationV1().Leases("kube-node-lease")}, "g", "a", "host")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = a.Run(ctx) }()
		defer func() { stop(); <-done }()
		_, kill := start("b")
		time.Sleep(3 * time.Second)
		kill()
		time.Sleep(goneAfter - 4*time.Second)
		seen := map[bool]bool{}
		for range 3 {
			began := time.Now()
			gone := a.Gone(t.Context(), "b")
			a.mu.Lock()
			since := began.Sub(a.view.members["b"].at)
			a.mu.Unlock()
			if seen[gone] = true; gone != (since >= goneAfter) {
				t.Errorf("asked %v after the last sign, it is gone: %t", since, gone)
			}
		}
		if len(seen) != 2 {
			t.Errorf("it was gone: %v, want both", seen)
		}
	})
}

// slowLeases is a client of an API server that needs seconds for a write, before or after it carries out the
// write.
type slowLeases struct {
	coordclientset.LeaseInterface
	before, after time.Duration
	requests      *atomic.Int32 // number of unanswered requests
	most          *atomic.Int32
}

func (l slowLeases) Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, o metav1.PatchOptions, sub ...string) (*coordinationv1.Lease, error) {
	if now := l.requests.Add(1); now > l.most.Load() {
		l.most.Store(now)
	}
	defer l.requests.Add(-1)
	if !sleep.For(ctx, l.before) {
		return nil, ctx.Err()
	}
	patched, err := l.LeaseInterface.Patch(ctx, name, kind, patch, o, sub...)
	if !sleep.For(ctx, l.after) {
		return nil, ctx.Err()
	}
	return patched, err
}

// TestASlowAPIServer: a member stays in the group while the API server is slow, whether requests or responses are slow.
func TestASlowAPIServer(t *testing.T) {
	for name, slow := range map[string]slowLeases{
		"requests": {before: 5 * time.Second, after: time.Millisecond},
		"answers":  {before: time.Millisecond, after: 5 * time.Second},
		"for ever": {before: time.Hour, after: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inGroup(t, func(t *testing.T, client *fake.Clientset, start func(string) (*Group, func())) {
				b, _ := start("b")
				slow.LeaseInterface, slow.requests, slow.most = client.CoordinationV1().Leases("kube-node-lease"), new(atomic.Int32), new(atomic.Int32)
				a := New(slow, "g", "a", "host")
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); _ = a.Run(ctx) }()
				defer func() { stop(); <-done }()
				time.Sleep(30 * time.Second)
				since, never := time.Now(), name == "for ever"
				for range 600 {
					if a.Holds(since) == never || b.Gone(t.Context(), "a") {
						t.Fatalf("after %v it holds: %t, and is gone: %t", time.Since(since), !never, b.Gone(t.Context(), "a"))
					}
					time.Sleep(100 * time.Millisecond)
				}
				if most := slow.most.Load(); most < 5 || most > 8 {
					t.Errorf("%d renewals waited for their answers, want one for each second", most)
				}
			})
		})
	}
}

func TestRightsAreMissing(t *testing.T) {
	for verb, want := range map[string]string{"list": "list leases", "create": "write the lease a"} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor(verb, "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), "a", nil)
			})
			began := time.Now()
			err := New(client.CoordinationV1().Leases("kube-node-lease"), "g", "a", "host").Run(t.Context())
			if took := time.Since(began); took < forbiddenFor || took > forbiddenFor+renewEvery {
				t.Errorf("%s: it ended after %v", verb, took)
			}
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", verb, err, want)
			}
		})
	}
}
