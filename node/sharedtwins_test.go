// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordclientset "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/replicas"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
)

// members stores the leases of the members of a group as an API server does.
type members struct {
	mu       sync.Mutex
	revision int                              // guarded by mu
	leases   map[string]*coordinationv1.Lease // guarded by mu
	dark     map[string]bool                  // guarded by mu: members whose requests for these leases fail
}

// disturb makes only the requests of a member for these leases fail.
func (m *members) disturb(member string, dark bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dark[member] = dark
}

// memberLeases is a client for the leases of the members behind a link.
type memberLeases struct {
	coordclientset.LeaseInterface // nil: other verbs are not used
	link                          *link
	all                           *members
}

func (l memberLeases) begin(ctx context.Context) error {
	if err := l.link.request(ctx); err != nil {
		return err
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if l.all.dark[l.link.name] {
		return apierrors.NewInternalError(errors.New("no leader"))
	}
	return nil
}

func (l memberLeases) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := l.begin(ctx); err != nil {
		return nil, err
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if found := l.all.leases[name]; found != nil {
		return found.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), name)
}

func (l memberLeases) List(ctx context.Context, _ metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	if err := l.begin(ctx); err != nil {
		return nil, err
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	list := &coordinationv1.LeaseList{}
	for _, name := range slices.Sorted(maps.Keys(l.all.leases)) {
		list.Items = append(list.Items, *l.all.leases[name].DeepCopy())
	}
	return list, nil
}

func (l memberLeases) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	if err := l.begin(ctx); err != nil {
		return nil, err
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	if l.all.leases[lease.Name] != nil {
		return nil, apierrors.NewAlreadyExists(coordinationv1.Resource("leases"), lease.Name)
	}
	return l.put(lease.DeepCopy()), nil
}

func (l memberLeases) Patch(ctx context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*coordinationv1.Lease, error) {
	if err := l.begin(ctx); err != nil {
		return nil, err
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	found := l.all.leases[name]
	if found == nil {
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), name)
	}
	changed := found.DeepCopy()
	if err := json.Unmarshal(patch, changed); err != nil {
		return nil, err
	}
	return l.put(changed), nil
}

// put is called with mu held.
func (l memberLeases) put(lease *coordinationv1.Lease) *coordinationv1.Lease {
	l.all.revision++
	lease.ResourceVersion = strconv.Itoa(l.all.revision)
	l.all.leases[lease.Name] = lease
	return lease.DeepCopy()
}

func (l memberLeases) Delete(ctx context.Context, name string, _ metav1.DeleteOptions) error {
	if err := l.begin(ctx); err != nil {
		return err
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	delete(l.all.leases, name)
	return nil
}

// share makes daemons that start from now on members of one group.
func (w *twins) share() *members {
	w.group = &members{leases: map[string]*coordinationv1.Lease{}, dark: map[string]bool{}}
	return w.group
}

// join makes the daemon a member until its end. It returns the option for its node.
func (d *daemon) join(ctx context.Context, running *sync.WaitGroup) NodeControllerOpt {
	group := replicas.New(memberLeases{link: d.link, all: d.w.group}, "g", d.name, d.name)
	running.Go(func() { _ = group.Run(ctx) })
	return WithNodeLeaseGroup(group)
}

// TestFault05MembersNeverActTogether makes a second member of a group wait for the node of the first, which is ended or disturbed. In some
// cases the first member cannot reach only the leases of the members, and recovers around the time when it counts as gone.
func TestFault05MembersNeverActTogether(t *testing.T) {
	rounds := 40
	if faultrow.Strict() {
		rounds = 200
	}
	ends := []string{"killed", "dark", "frozen", "cut off", "dark for some seconds"}
	slowest, creates := map[string]time.Duration{}, 0
	for round := range rounds {
		end := ends[round%len(ends)]
		t.Run(fmt.Sprint(round, end), func(t *testing.T) {
			inTwins(t, func(w *twins) {
				group := w.share()
				c := &twinChurn{Rand: rand.New(rand.NewPCG(uint64(round), 6)), w: w}
				first := w.start("first")
				c.run(time.Duration(1+c.IntN(20)) * time.Second)
				second := w.start("second")
				together := func() {
					if first.acts() && second.acts() {
						t.Error("both act")
					}
				}
				c.each = together
				c.run(time.Duration(12+c.IntN(20)) * time.Second)
				if !first.acts() || second.acts() {
					t.Fatalf("the first acts: %v, the second: %v; want the first to", first.acts(), second.acts())
				}
				switch end {
				case "killed":
					first.crash()
				case "dark":
					group.disturb("first", true)
				case "frozen":
					first.freeze()
				case "cut off":
					first.part()
				case "dark for some seconds":
					group.disturb("first", true)
					for range 80 + c.IntN(50) {
						w.pass(100 * time.Millisecond)
						together()
					}
					group.disturb("first", false)
					for range 300 {
						w.pass(20 * time.Millisecond)
						together()
					}
					c.run(30 * time.Second)
					if !first.acts() && !second.acts() {
						t.Error("none acts any more")
					}
					w.pass(2 * time.Minute)
					w.wantAgreement()
					return
				}
				slowest[end] = max(slowest[end], second.awaitActing(13*time.Second))
				c.run(time.Duration(c.IntN(40)) * time.Second)
				group.disturb("first", false)
				first.heal()
				c.run(time.Duration(10+c.IntN(20)) * time.Second)
				if first.acts() || !second.acts() {
					t.Errorf("the first acts: %v, the second: %v; want the second to", first.acts(), second.acts())
				}
				w.pass(2 * time.Minute)
				w.wantAgreement()
				creates += len(w.creates)
			})
		})
	}
	faultrow.Record(t, 5, fmt.Sprintf("%d times, of two members of a group that shares a node, the first is killed, frozen, cut off, or cannot renew its place in the group", rounds),
		"0 of %d pods created twice, never both at once; slowest takeover after a kill %v, a freeze %v, a cut %v, without a place %v",
		creates, slowest["killed"], slowest["frozen"], slowest["cut off"], slowest["dark"])
}
