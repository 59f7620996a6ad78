// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Freshness is how long an answer is given again.
const Freshness = time.Second

// Config is what is measured.
type Config struct {
	Runtime cri.RuntimeService
	Images  cri.ImageManagerService
	// Node is the name of the node; Labels are those of its sandboxes and containers.
	Node   string
	Labels map[string]string
	// Root is a directory on the file system that pods have their ephemeral storage on.
	Root string
	// Logs returns the directory that has the logs of a container. Nil: they are not measured.
	Logs func(pod statsv1alpha1.PodReference, container string) string
	// Volumes returns what the volumes of a pod use. Nil: they are not measured.
	Volumes func(ctx context.Context, pod statsv1alpha1.PodReference) ([]Volume, error)
	// Proc is where the kernel tells of processes; "" is /proc.
	Proc string
}

// Volume is what a volume uses.
type Volume struct {
	Name          string
	Bytes, Inodes uint64
	// Claim is the name of the claim that the volume is of, "" for a volume of the pod itself.
	Claim string
	// Ephemeral says that it is part of the pod's ephemeral storage: on the disk, and gone with the pod.
	Ephemeral bool
}

// Stats measures. All methods can be called from several goroutines.
type Stats struct {
	config  Config
	machine machine
	started metav1.Time

	turn chan struct{} // has room for one: who measures
	// Owned by who has the turn.
	last  *sample
	taken time.Time
	rates rates
	whole bool                 // the runtime has measured whole sandboxes
	pods  map[string]*podTotal // by UID
	pids  map[string]int       // by sandbox; -1: it has no process that tells of its network
}

// sample is what was measured at one time.
type sample struct {
	summary *statsv1alpha1.Summary
	err     error // of the runtime: there is nothing about pods then
}

// New returns what measures.
func New(config Config) *Stats {
	m := machine{proc: config.Proc, root: "/"}
	if m.proc == "" {
		m.proc = "/proc"
	}
	return &Stats{
		config: config, machine: m, started: metav1.Now(), turn: make(chan struct{}, 1),
		rates: rates{}, pods: map[string]*podTotal{}, pids: map[string]int{},
	}
}

// Summary returns what the node and its pods use. Callers must not change it.
func (s *Stats) Summary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	got, err := s.measure(ctx)
	if err != nil {
		return nil, err
	}
	return got.summary, got.err
}

// measure returns a sample that is fresh.
func (s *Stats) measure(ctx context.Context) (*sample, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.last != nil && time.Since(s.taken) < Freshness {
		return s.last, nil
	}
	s.rates.begin()
	got := &sample{summary: &statsv1alpha1.Summary{Node: s.node(ctx), Pods: []statsv1alpha1.PodStats{}}}
	pods, err := s.podStats(ctx, got.summary.Node.Fs)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // this caller has left; the next one asks for itself
	}
	if err == nil {
		got.summary.Pods = pods
		s.rates.forget()
	}
	got.err = err
	s.last, s.taken = got, time.Now()
	return got, nil
}

// node returns what the machine uses, as far as it can be known.
func (s *Stats) node(ctx context.Context) statsv1alpha1.NodeStats {
	now := metav1.Now()
	node := statsv1alpha1.NodeStats{
		NodeName: s.config.Node, StartTime: s.machine.booted(s.started), CPU: s.machine.cpu(now), Memory: s.machine.memory(now), Swap: s.machine.swap(now),
		Network: s.machine.network(now, "self"), Fs: s.machine.filesystem(now, s.config.Root), Rlimit: s.machine.processes(now),
	}
	s.rates.rate("node", node.CPU)
	if s.config.Images == nil {
		return node
	}
	info, err := s.config.Images.ImageFsInfo(ctx)
	if err != nil {
		return node // a runtime that has no images on disk
	}
	node.Runtime = &statsv1alpha1.RuntimeStats{}
	if list := info.GetImageFilesystems(); len(list) > 0 {
		node.Runtime.ImageFs = s.machine.usedOf(list[0])
		node.Runtime.ContainerFs = node.Runtime.ImageFs
	}
	if list := info.GetContainerFilesystems(); len(list) > 0 {
		node.Runtime.ContainerFs = s.machine.usedOf(list[0])
	}
	return node
}

// ImageFs returns how large the file system that has the images is, and what is free of it.
func (s *Stats) ImageFs(ctx context.Context) (*statsv1alpha1.FsStats, error) {
	info, err := s.config.Images.ImageFsInfo(ctx)
	if err != nil {
		return nil, err
	}
	for _, used := range info.GetImageFilesystems() {
		if fs := s.machine.usedOf(used); fs.CapacityBytes != nil && fs.AvailableBytes != nil {
			return fs, nil
		}
	}
	return nil, errors.New("the container runtime does not tell on which file system of this machine its images are")
}

// Machine returns what is available now of the memory of the machine and of the file system of a directory.
func Machine(root string) *statsv1alpha1.NodeStats {
	m, now := machine{proc: "/proc", root: "/"}, metav1.Now()
	return &statsv1alpha1.NodeStats{Memory: m.memory(now), Fs: m.filesystem(now, root)}
}

// Capacity returns what the machine has for pods: processors, memory, huge pages, and the storage of
// the file system that has root.
func Capacity(root string, pods int64) corev1.ResourceList {
	return machine{proc: "/proc", root: "/"}.capacity(root, pods)
}

// MaxPID returns how many processes and threads the machine can have, 0 if that is not known.
func MaxPID() int64 {
	if limits := (machine{proc: "/proc", root: "/"}).processes(metav1.Now()); limits != nil {
		return *limits.MaxPID
	}
	return 0
}

// NodeInfo returns what the machine is.
func NodeInfo() corev1.NodeSystemInfo { return machine{proc: "/proc", root: "/"}.info() }
