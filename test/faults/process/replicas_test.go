// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/internal/lease"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/faultrow"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

var (
	replicasFor    = flag.Duration("replicas", 0, "how long TestReplicasSoak kills daemons that share nodes")
	replicasReport = flag.String("replicas-report", "", "`file`, from the root of the module, to which TestReplicasSoak writes its result")
)

// shares is a world with several daemons that share its nodes.
type shares struct {
	*world
	group   string
	daemons []*replica
	leases  *leaseWatch

	kills        int
	silent, even durations // after a kill: until the last node was acted for elsewhere; after a change: until shares were even
	mostUneven   int       // most nodes of a daemon less the least, at the end of each wait
	rssMost      int       // bytes
}

// replica is one of the daemons.
type replica struct {
	*child
	member string
}

// newShares returns a world whose pods are on n nodes.
func newShares(t *testing.T, n int) *shares {
	w := newWorldIn(t, testapi.Start(t), quick)
	s := &shares{world: w, group: w.node}
	for i := range n {
		w.nodes = append(w.nodes, fmt.Sprintf("%s-%04d", w.node, i))
	}
	w.flags.Kubeconfig, w.flags.CertFile = w.api.KubeconfigPath, ""
	w.flags.Nodes, w.flags.Share = fmt.Sprintf("%s-[0000-%04d]", w.node, n-1), s.group
	s.leases = w.followLeases()
	return s
}

var memberField = regexp.MustCompile(`member=(\S+)`)

// add starts a daemon. As root, the daemon runs in a PID namespace of its own, so that the other daemons cannot
// see whether it has ended.
func (s *shares) add() *replica {
	s.Helper()
	s.isolate = os.Getuid() == 0
	c := s.launch()
	c.awaitReady()
	var found []string
	for end := time.Now().Add(patience); found == nil; pass(s.Context(), 20*time.Millisecond) { // its log and its report of readiness are read separately
		if found = memberField.FindStringSubmatch(c.said.String()); time.Now().After(end) {
			s.Fatalf("the daemon does not say its place in the group:\n%s", c.said.Tail())
		}
	}
	r := &replica{c, found[1]}
	s.daemons = append(s.daemons, r)
	return r
}

// members returns the group members of the living daemons.
func (s *shares) members() (names []string) {
	for _, d := range s.daemons {
		names = append(names, d.member)
	}
	return names
}

// awaitEven waits until a living daemon acts for each node and the shares differ by at most one node. It records
// the time that this took.
func (s *shares) awaitEven() {
	s.Helper()
	began := time.Now()
	s.leases.await(s.T, "the nodes are shared evenly", func(holders map[string]holding) bool {
		count := map[string]int{}
		for _, h := range holders {
			count[h.member]++
		}
		least, most := len(s.nodes), 0
		for _, m := range s.members() {
			least, most = min(least, count[m]), max(most, count[m])
			delete(count, m)
		}
		if len(count) > 0 || len(holders) < len(s.nodes) || most-least > 1 {
			return false
		}
		s.mostUneven = max(s.mostUneven, most-least)
		return true
	})
	s.even = append(s.even, time.Since(began))
}

// kill kills a daemon with SIGKILL, and waits until other daemons act for all of its nodes.
func (s *shares) kill(i int) {
	s.Helper()
	victim := s.daemons[i]
	s.rssMost = max(s.rssMost, victim.memory("VmHWM"))
	s.daemons = append(s.daemons[:i:i], s.daemons[i+1:]...)
	at := time.Now()
	victim.kill()
	victim.forget()
	s.kills++
	s.leases.await(s.T, "others act for the nodes of the daemon that was killed", func(holders map[string]holding) bool {
		last, late := at, ""
		for node, h := range holders {
			if h.member == victim.member {
				return false
			}
			if h.since.After(last) {
				last, late = h.since, node
			}
		}
		s.silent = append(s.silent, last.Sub(at))
		if last.Sub(at) > takeover {
			s.Logf("%s was killed at %s, and node %s acted for %v later; the daemons say of it:\n%s", victim.member, at.Format(time.TimeOnly), late, last.Sub(at), s.saidOf(late))
		}
		return true
	})
}

// saidOf returns the log lines of the living daemons about a node and about their shares.
func (s *shares) saidOf(node string) (text string) {
	for _, d := range s.daemons {
		for line := range strings.Lines(d.said.String()) {
			if strings.Contains(line, "node="+node) || strings.Contains(line, "its share of the nodes") || !strings.Contains(line, "level=DEBUG") && !strings.Contains(line, "node=") {
				text += d.member + ": " + line
			}
		}
	}
	return text
}

// rounds kills one daemon after the other, and starts a new daemon for each. A round lasts for the time every.
func (s *shares) rounds(every time.Duration, more func() bool) {
	s.Helper()
	for i := 0; more(); i++ {
		due := time.After(every)
		s.kill(i % len(s.daemons))
		s.awaitEven()
		s.add()
		s.awaitEven()
		s.records.retire()
		select {
		case <-due:
		case <-s.Context().Done():
		}
	}
}

// steadyPods makes n pods on each node, waits until they run, and returns their instances.
func (s *shares) steadyPods(n int) map[types.UID]string {
	s.Helper()
	slots := make(chan struct{}, 16)
	var wg sync.WaitGroup
	total := n * len(s.nodes)
	for i := range total {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			a := &actor{world: s.world, name: fmt.Sprintf("steady-%d", i), on: s.nodeOf(i)}
			a.create(corev1.RestartPolicyAlways)
		})
	}
	wg.Wait()
	s.await(fmt.Sprintf("%d pods run", total), func() bool { return len(s.instances()) == total })
	s.awaitInStep()
	return s.instances()
}

// holding names the holder of a node's lease.
type holding struct {
	member string
	since  time.Time // when that was first seen
}

// leaseWatch follows the leases of the nodes of a world.
type leaseWatch struct {
	mu      sync.Mutex
	holders map[string]holding // guarded by mu
	changed chan struct{}      // guarded by mu; closed at the next change
}

func (w *world) followLeases() *leaseWatch {
	w.Helper()
	l := &leaseWatch{holders: map[string]holding{}, changed: make(chan struct{})}
	ours := map[string]bool{}
	for _, n := range w.nodes {
		ours[n] = true
	}
	ctx, cancel := context.WithCancel(w.Context())
	var following sync.WaitGroup
	following.Go(func() {
		client := w.api.Client.CoordinationV1().Leases("kube-node-lease")
		for version := ""; ctx.Err() == nil; pass(ctx, 100*time.Millisecond) {
			events, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
			if err != nil {
				version = "" // a list from now on shows all nodes
				continue
			}
			for e := range events.ResultChan() {
				found, ok := e.Object.(*coordinationv1.Lease)
				if !ok {
					version = ""
					break
				}
				if version = found.ResourceVersion; ours[found.Name] {
					l.see(found)
				}
			}
			events.Stop()
		}
	})
	w.Cleanup(func() {
		cancel()
		following.Wait()
	})
	return l
}

func (l *leaseWatch) see(found *coordinationv1.Lease) {
	text := found.Annotations[lease.HolderAnnotation]
	if text == "" {
		return // it was given up: the next holder is the news
	}
	member := lease.ParseMark(text).Member
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders[found.Name].member == member {
		return
	}
	l.holders[found.Name] = holding{member, time.Now()}
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *leaseWatch) await(t *testing.T, what string, done func(map[string]holding) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		l.mu.Lock()
		changed, holders := l.changed, maps.Clone(l.holders)
		l.mu.Unlock()
		if done(holders) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			count := map[string]int{}
			for _, h := range holders {
				count[h.member]++
			}
			t.Fatalf("wait until %s: %v; the nodes of members: %v", what, context.Cause(ctx), count)
		}
	}
}

// TestFault05ReplicasShareNodes kills three daemons in turn, while pods come and go on the nodes that they
// share.
func TestFault05ReplicasShareNodes(t *testing.T) {
	t.Parallel()
	s := newShares(t, 12)
	for range 3 {
		s.add()
	}
	s.awaitEven()
	steady := s.steadyPods(2)
	churn := s.churnAt(5)
	rounds := 2
	if faultrow.Long() {
		rounds = 12
	}
	s.rounds(0, func() bool { return s.kills < rounds })
	churn.stop()
	s.awaitInStep()
	s.kept(steady)
	s.judged()
	if longest := s.silent.p(100); longest > faultrow.Budget(takeover) {
		t.Errorf("a node was acted for %v after the kill of its daemon, want at most %v: %v", longest, takeover, s.silent)
	}
	faultrow.Record(t, 5, fmt.Sprintf("%d kills -9 in turn of one of three daemons that share %d nodes, with 5 pods/s of churn", s.kills, len(s.nodes)),
		"violations 0 in %d pods; instance IDs of %d steady pods unchanged; every node was acted for elsewhere within %v, and shares were even within %v",
		s.records.pods, len(steady), s.silent.p(100).Round(time.Millisecond), s.even.p(100).Round(time.Millisecond))
}

// TestReplicasSoak does the same as TestFault05ReplicasShareNodes with a thousand nodes and ten thousand pods,
// and one kill every thirty seconds.
func TestReplicasSoak(t *testing.T) {
	if *replicasFor == 0 {
		t.Skip("this test lasts for as long as it is told to: make soak-replicas, or -replicas=15m and a longer -timeout")
	}
	s := newShares(t, 1000)
	// A pod may be deleted while it starts and be unknown to the backend. Such a pod is gone when one daemon has
	// known this for half a minute. In this test, few nodes stay with one daemon for that long.
	s.longest = 15 * time.Minute
	for range 3 {
		s.add()
	}
	s.awaitEven()
	steady := s.steadyPods(10)
	s.even = nil
	churn := s.churnAt(5)
	began := time.Now()
	s.rounds(30*time.Second, func() bool { return time.Since(began) < *replicasFor })
	length := time.Since(began)
	churn.stop()
	s.awaitInStep()
	kept := 0
	for uid, id := range s.instances() {
		if steady[uid] == id {
			kept++
		}
	}
	if kept != len(steady) {
		t.Errorf("%d of %d pods that nobody touched have the instance that they had", kept, len(steady))
	}
	s.judged()
	if longest := s.silent.p(100); longest > takeover {
		t.Errorf("a node was acted for %v after the kill of its daemon, want at most %v: %v", longest, takeover, s.silent)
	}
	violations := len(s.records.failure())
	s.records.mu.Lock()
	pods, calls := s.records.pods, s.records.calls
	s.records.mu.Unlock()
	var b strings.Builder
	b.WriteString("# Replicas\n\nThree daemons share nodes by their leases. One of them, in turn, is killed with SIGKILL every 30 s, and another one started, while pods\n" +
		"come, change, end and are deleted beside those that nobody touches. Each daemon is in a PID namespace of its own, so that none can see that another one\n" +
		"has ended. Every pod is judged by the safety invariants S1 to S8 of [the fault matrix](faults.md). `make soak-replicas` writes this page.\n\n| What | Result |\n|---|---|\n")
	for _, row := range [][2]string{
		{"Length", length.Round(time.Second).String()},
		{"Nodes, and pods that nobody touches", fmt.Sprintf("%d, %d", len(s.nodes), len(steady))},
		{"Kills", fmt.Sprint(s.kills)},
		{"Pods in all", fmt.Sprint(pods)},
		{"Calls of the provider that change something", fmt.Sprint(calls)},
		{"Violations of safety (lost, doubled, ...)", fmt.Sprint(violations)},
		{"Pods that nobody touched, with their first instance at the end", fmt.Sprintf("%d of %d", kept, len(steady))},
		{"Kill to the last of its nodes acted for elsewhere, p50 / most", fmt.Sprintf("%v / %v", s.silent.p(50).Round(time.Millisecond), s.silent.p(100).Round(time.Millisecond))},
		{"Change of the daemons to even shares, p50 / most", fmt.Sprintf("%v / %v", s.even.p(50).Round(time.Millisecond), s.even.p(100).Round(time.Millisecond))},
		{"Nodes of the daemon with most, less those of the one with least", fmt.Sprint(s.mostUneven)},
		{"RSS of a daemon, at most", fmt.Sprintf("%d MiB", s.rssMost>>20)},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	t.Log("\n" + b.String())
	if *replicasReport != "" {
		if err := os.WriteFile(filepath.Join("..", "..", "..", *replicasReport), []byte(b.String()), 0o644); err != nil {
			t.Errorf("write the report: %v", err)
		}
	}
}
