// SPDX-License-Identifier: Apache-2.0

package kip

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine/machinetest"
)

// world is a cluster and a cloud without a network, for a synctest bubble. Its machines follow the rules of the agent.
type world struct {
	t        *testing.T
	cloud    *machinetest.Cloud
	config   Config
	indexer  cache.Indexer
	services cache.Indexer
	events   *record.FakeRecorder

	mu    sync.Mutex
	cells map[string]*simulated // guarded by mu; keyed by token
	given map[types.UID]int     // guarded by mu; number of machines that received the pod
	boots time.Duration         // guarded by mu; boot time of a machine
	taken bool                  // guarded by mu; machines boot with a notice that the cloud takes them
	old   bool                  // guarded by mu; agents are too old for Services
}

// simulated is a machine with its agent.
type simulated struct {
	id, token string
	boots     time.Time // end of the boot
	told      cell.UserData
	gone      chan struct{}
	changed   chan struct{} // closed at the next change
	joined    bool
	state     cell.State
	heard     time.Time
	watched   int
	lies      types.UID // the pod that the machine falsely reports
	silent    bool      // the machine no longer answers
	stops     []time.Duration
	services  []cell.Services // all Services that the machine got
	refuses   error           // the machine's answer to Services
	bundle    podjob.Bundle
}

func newWorld(t *testing.T, change func(*Config)) *world {
	t.Helper()
	config := testConfig("home")
	if change != nil {
		change(&config)
	}
	config, err := config.complete()
	if err != nil {
		t.Fatal(err)
	}
	w := newCluster(config)
	w.t, w.cells, w.given, w.boots = t, map[string]*simulated{}, map[types.UID]int{}, 5*time.Second
	w.cloud = machinetest.New(w.boot)
	return w
}

// newCluster returns a cluster without a cloud.
func newCluster(config Config) *world {
	return &world{
		config: config, events: record.NewFakeRecorder(1000),
		indexer:  cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		services: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
	}
}

// boot starts a machine. Without a running pod, it ends itself when no node has contacted it for too long.
func (w *world) boot(id string, spec machine.Spec) (machinetest.Booted, error) {
	data := spec.UserData
	if text, is := bytes.CutPrefix(data, []byte("#cloud-config\n")); is {
		var config struct {
			Files []struct{ Content []byte } `json:"write_files"`
		}
		if err := json.Unmarshal(text, &config); err != nil {
			return machinetest.Booted{}, err
		}
		data = config.Files[0].Content
	}
	told, err := cell.ParseUserData(data)
	if err != nil {
		return machinetest.Booted{}, err
	}
	w.mu.Lock()
	s := &simulated{id: id, token: spec.Token, told: told, boots: time.Now().Add(w.boots), gone: make(chan struct{}), changed: make(chan struct{}), heard: time.Now()}
	if w.taken {
		s.interrupt()
	}
	w.cells[spec.Token] = s
	w.mu.Unlock()
	go func() {
		ticker := time.NewTicker(time.Minute)
		defer ticker.Stop()
		for {
			select {
			case <-s.gone:
				return
			case <-ticker.C:
			}
			w.mu.Lock()
			idle := s.state.Pod == "" || s.state.Status != nil && s.state.Status.Ended
			over := s.watched == 0 && idle && time.Since(s.heard) > time.Duration(told.OrphanAfter)*time.Second
			w.mu.Unlock()
			if over {
				w.cloud.Terminate(id, "PoweredOff")
				return
			}
		}
	}()
	return machinetest.Booted{Address: "10.0.0.1:6421", IP: "10.0.0.1", End: sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		close(s.gone)
		s.change()
	})}, nil
}

func (s *simulated) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// do changes the machine of a pod.
func (w *world) do(uid types.UID, change func(*simulated)) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.cells {
		if s.state.Pod == uid {
			change(s)
			s.change()
			return
		}
	}
	w.t.Fatalf("no machine has pod %s", uid)
}

// end ends the pod of a machine.
func (s *simulated) end(phase corev1.PodPhase) {
	next := *s.state.Status
	next.Ended, next.Pod.Phase = true, phase
	s.state.Status = &next
}

// process is a node that runs until the test kills it. Afterwards, its actions have no effect.
type process struct {
	w      *world
	driver *driver
	dead   atomic.Bool
	steps  atomic.Int32
	dieAt  int32 // the step of the kill; 0: no kill
	after  bool  // kill after the step's effect
	kill   context.CancelFunc
	ended  chan struct{}
	told   []corev1.PodStatus
	news   chan struct{} // holds a value after a status; nil: no caller waits
	mu     sync.Mutex
}

var errKilled = errors.New("the process was killed")

// step runs one external effect of a process.
func (p *process) step(effect func() error) error {
	if p.dead.Load() {
		return errKilled
	}
	if n := p.steps.Add(1); n == p.dieAt {
		if p.after {
			_ = effect()
		}
		p.dead.Store(true)
		p.kill()
		return errKilled
	}
	return effect()
}

// start starts a node.
func (w *world) start(authority *cell.Authority, dieAt int32, after bool) *process {
	p := w.open(authority, dieAt, after)
	p.begin()
	return p
}

// open makes a node that begin starts.
func (w *world) open(authority *cell.Authority, dieAt int32, after bool) *process {
	p := &process{w: w, dieAt: dieAt, after: after, ended: make(chan struct{})}
	p.driver = newDriver(w.input(), w.config, killable{w.cloud, p}, authority, usual)
	p.driver.dial = func(token, _ string, _ func(string) bool) agent { return &simulatedAgent{p: p, token: token} }
	return p
}

// begin starts a node in a synctest bubble.
func (p *process) begin() {
	var ctx context.Context
	ctx, p.kill = context.WithCancel(p.w.t.Context())
	p.run(ctx)
	synctest.Wait() // pods made from now on do not belong to an earlier process
}

// input returns the input of a provider whose cluster is w.
func (w *world) input() cli.ProviderInput {
	return cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{
		Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, Pods: corev1listers.NewPodLister(w.indexer), Services: corev1listers.NewServiceLister(w.services), Recorder: w.events,
	}, NodeName: "node"}
}

// run runs the provider until ctx ends. The cluster gets the statuses that it reports.
func (p *process) run(ctx context.Context) {
	p.driver.kit.UsePodObjects(&emulator.Objects{})
	p.driver.kit.NotifyPods(ctx, func(pod *corev1.Pod) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told = append(p.told, pod.Status)
		if item, is, _ := p.w.indexer.Get(pod); is && !p.dead.Load() {
			next := item.(*corev1.Pod).DeepCopy()
			next.Status = pod.Status
			_ = p.w.indexer.Update(next)
		}
		select {
		case p.news <- struct{}{}:
		default:
		}
	})
	go func() {
		defer close(p.ended)
		_ = p.driver.kit.RunInBackground(ctx)
	}()
}

// await waits for a condition, and checks it again after each status.
func (p *process) await(ctx context.Context, want func() bool) error {
	for !want() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.news:
		}
	}
	return nil
}

// stop ends a node and waits for its end.
func (p *process) stop() {
	p.kill()
	<-p.ended
}

// killable is the cloud for a process that the test may kill.
type killable struct {
	cloud machine.Driver
	p     *process
}

func (k killable) Start(ctx context.Context, s machine.Spec) (m machine.Machine, err error) {
	err = k.p.step(func() (err error) { m, err = k.cloud.Start(ctx, s); return err })
	return m, err
}

func (k killable) Stop(ctx context.Context, id string) error {
	return k.p.step(func() error { return k.cloud.Stop(ctx, id) })
}

func (k killable) Tag(ctx context.Context, id string, tags map[string]string) error {
	return k.p.step(func() error { return k.cloud.Tag(ctx, id, tags) })
}

func (k killable) List(ctx context.Context, tags map[string]string) ([]machine.Machine, error) {
	if k.p.dead.Load() {
		return nil, errKilled
	}
	return k.cloud.List(ctx, tags)
}

func (k killable) Describe(ctx context.Context, id string) (machine.Machine, bool, error) {
	return k.cloud.Describe(ctx, id)
}

func (k killable) Console(ctx context.Context, id string) (string, error) {
	return k.cloud.Console(ctx, id)
}

// simulatedAgent is the agent of a machine, for a process.
type simulatedAgent struct {
	p     *process
	token string
}

// ask runs f on a booted machine that exists.
func (a *simulatedAgent) ask(f func(*simulated) error) error {
	w := a.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.cells[a.token]
	if s == nil || time.Now().Before(s.boots) || s.silent {
		return errors.New("connection refused")
	}
	select {
	case <-s.gone:
		return errors.New("no route to host")
	default:
	}
	s.heard = time.Now()
	return f(s)
}

func (a *simulatedAgent) Join(ctx context.Context, before string, record func(context.Context, string) error) error {
	joined := false
	if err := a.ask(func(s *simulated) error { joined = s.joined; return nil }); err != nil || joined {
		return err
	}
	if before == "" {
		if err := record(ctx, "key of "+a.token); err != nil {
			return err
		}
	}
	return a.p.step(func() error { return a.ask(func(s *simulated) error { s.joined = true; return nil }) })
}

func (a *simulatedAgent) Give(_ context.Context, b podjob.Bundle) error {
	return a.p.step(func() error {
		return a.ask(func(s *simulated) error {
			switch {
			case !s.joined:
				return errors.New("not joined")
			case s.state.Pod == b.Pod.UID:
				return nil
			case s.state.Pod != "" || s.told.Pod != "" && s.told.Pod != b.Pod.UID:
				return cell.ErrTaken
			}
			for _, m := range a.p.w.cloud.Running() {
				if m.ID == s.id && m.Tags[identity.TagUID] != string(b.Pod.UID) {
					a.p.w.t.Errorf("machine %s is given pod %s, and its tags say %q", m.ID, b.Pod.UID, m.Tags[identity.TagUID])
				}
			}
			a.p.w.given[b.Pod.UID]++
			s.state.Pod, s.bundle = b.Pod.UID, b
			s.state.Status = &podjob.Status{Pod: runningStatus(b.Pod)}
			s.change()
			return nil
		})
	})
}

func runningStatus(pod *corev1.Pod) corev1.PodStatus {
	s := corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.9.9.9"}
	for _, c := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}})
	}
	return s
}

func (a *simulatedAgent) SetServices(_ context.Context, services cell.Services) error {
	return a.ask(func(s *simulated) error {
		if a.p.w.old || s.refuses != nil {
			return cmp.Or(s.refuses, errdefs.NotFound("404 page not found"))
		}
		s.services = append(s.services, services)
		return nil
	})
}

func (a *simulatedAgent) Renew(context.Context, podjob.Bundle) error { return nil }

func (a *simulatedAgent) Stop(_ context.Context, grace time.Duration) error {
	return a.p.step(func() error {
		return a.ask(func(s *simulated) error {
			if s.state.Pod == "" {
				return cell.ErrNoPod
			}
			s.stops = append(s.stops, grace)
			if !s.state.Status.Ended {
				s.end(corev1.PodSucceeded)
				s.state.Status.Stopped = true
				s.change()
			}
			return nil
		})
	})
}

func (a *simulatedAgent) Watch(ctx context.Context, tell func(cell.State)) error {
	w := a.p.w
	if err := a.ask(func(s *simulated) error { s.watched++; return nil }); err != nil {
		return err
	}
	w.mu.Lock()
	s := w.cells[a.token]
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		s.watched--
		s.heard = time.Now()
	}()
	for {
		w.mu.Lock()
		state, changed, silent := s.state, s.changed, s.silent
		if s.lies != "" {
			state.Pod = s.lies
		}
		w.mu.Unlock()
		if a.p.dead.Load() {
			return errKilled
		}
		if silent {
			return errors.New("it has said nothing for too long")
		}
		tell(state)
		select {
		case <-ctx.Done():
			return nil
		case <-s.gone:
			return io.EOF
		case <-changed:
		}
	}
}

func (a *simulatedAgent) Logs(context.Context, string, api.ContainerLogOpts) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}
func (a *simulatedAgent) Stream(context.Context, podjob.Request, podjob.Ends) error {
	return errors.ErrUnsupported
}
func (a *simulatedAgent) Stats(context.Context) (statsv1alpha1.PodStats, error) {
	return statsv1alpha1.PodStats{}, errors.ErrUnsupported
}
func (a *simulatedAgent) Close() {}

// pod adds a pod to the cluster.
func (w *world) pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.Now()},
		Spec: corev1.PodSpec{NodeName: "node", TerminationGracePeriodSeconds: new(int64(10)), Containers: []corev1.Container{{Name: "main", Image: "i", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("512Mi")},
		}}}},
	}
	if change != nil {
		change(pod)
	}
	_ = w.indexer.Add(pod)
	return pod
}

// reconcile runs one round of a node: it creates the pods of the cluster, and deletes pods that the cluster does not have.
func (p *process) reconcile(ctx context.Context) (errs []error) {
	for _, item := range p.w.indexer.List() {
		pod := item.(*corev1.Pod)
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || p.dead.Load() {
			continue
		}
		if err := p.driver.kit.CreatePod(ctx, pod.DeepCopy()); err != nil {
			errs = append(errs, err)
		}
	}
	pods, err := p.driver.kit.GetPods(ctx)
	if err != nil {
		return append(errs, err)
	}
	for _, pod := range pods {
		if item, is, _ := p.w.indexer.Get(pod); is && item.(*corev1.Pod).UID == pod.UID {
			continue
		}
		if err := p.driver.kit.DeletePod(ctx, pod.DeepCopy()); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errs
}

// keep reconciles every second for a duration, while the process lives.
func (p *process) keep(d time.Duration) (last []error) {
	ctx, cancel := context.WithCancel(p.w.t.Context())
	defer cancel()
	for end := time.Now().Add(d); time.Now().Before(end) && !p.dead.Load(); time.Sleep(time.Second) {
		last = p.reconcile(ctx)
	}
	return last
}

// machinesOf returns the running machines by the pod in their tags.
func (w *world) machinesOf() map[types.UID][]string {
	all := map[types.UID][]string{}
	for _, m := range w.cloud.Running() {
		uid := types.UID(m.Tags[identity.TagUID])
		all[uid] = append(all[uid], m.ID)
	}
	return all
}

// status returns the pod's status in the cluster.
func (w *world) status(pod *corev1.Pod) corev1.PodStatus {
	item, is, _ := w.indexer.Get(pod)
	if !is {
		return corev1.PodStatus{}
	}
	return item.(*corev1.Pod).Status
}

// wants fails the test unless each of these pods runs on one machine, and the given number of machines waits.
func (w *world) wants(what string, waiting int, pods ...*corev1.Pod) {
	w.t.Helper()
	got := w.machinesOf()
	want := map[types.UID]int{}
	if waiting > 0 {
		want[""] = waiting
	}
	for _, pod := range pods {
		want[pod.UID] = 1
		if s := w.status(pod); s.Phase != corev1.PodRunning {
			w.t.Errorf("%s: pod %s is %s %s: %s", what, pod.Name, s.Phase, s.Reason, s.Message)
		}
	}
	counts := map[types.UID]int{}
	for uid, ids := range got {
		counts[uid] = len(ids)
	}
	if !maps.Equal(counts, want) {
		w.t.Errorf("%s: machines by pod are %v, want %v", what, got, want)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, uid := range slices.Sorted(maps.Keys(w.given)) {
		if w.given[uid] > 1 {
			w.t.Errorf("%s: pod %s was given to %d machines", what, uid, w.given[uid])
		}
	}
}

func newAuthority(t *testing.T) *cell.Authority {
	t.Helper()
	a, err := cell.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// finish ends the processes and machines of a bubble.
func (w *world) finish(all ...*process) {
	for _, p := range all {
		p.stop()
	}
	w.cloud.Close()
}
