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

// Freshness is the maximum age of a cached sample.
const Freshness = time.Second

// Config is the configuration of the measurements.
type Config struct {
	Runtime cri.RuntimeService
	Images  cri.ImageManagerService
	// Node is the name of the node; sandboxes and containers of the node have Labels.
	Node   string
	Labels map[string]string
	// Root is a directory on the file system of the pods' ephemeral storage.
	Root string
	// Logs returns the directory with the logs of a container. Nil: logs are not measured.
	Logs func(pod statsv1alpha1.PodReference, container string) string
	// Volumes returns the usage of a pod's volumes. Nil: volumes are not measured.
	Volumes func(ctx context.Context, pod statsv1alpha1.PodReference) ([]Volume, error)
	// Proc is the kernel's directory of processes; "" is /proc.
	Proc string
}

// Volume is the usage of a volume.
type Volume struct {
	Name          string
	Bytes, Inodes uint64
	// Claim is the name of the volume's claim, or "" for a volume of the pod itself.
	Claim string
	// Ephemeral means that the volume is part of the pod's ephemeral storage: on the disk, and gone with the
	// pod.
	Ephemeral bool
}

// Stats measures resource usage. It is safe for concurrent use.
type Stats struct {
	config  Config
	machine machine
	started metav1.Time

	turn chan struct{} // has room for one value, which the measuring goroutine puts in
	// The measuring goroutine owns these fields.
	last  *sample
	taken time.Time
	rates rates
	whole bool                 // the runtime has measured whole sandboxes
	pods  map[string]*podTotal // by UID
	pids  map[string]int       // by sandbox; -1: no process shows the network of the sandbox
}

// sample has the measurements of one point in time.
type sample struct {
	summary *statsv1alpha1.Summary
	err     error // error of the runtime; if set, the sample has no pods
}

// New returns the Stats of a node.
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

// Summary returns the usage of the node and its pods. Callers must not change it.
func (s *Stats) Summary(ctx context.Context) (*statsv1alpha1.Summary, error) {
	got, err := s.measureAll(ctx)
	if err != nil {
		return nil, err
	}
	return got.summary, got.err
}

// measureAll returns a fresh sample.
func (s *Stats) measureAll(ctx context.Context) (*sample, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.last != nil && time.Since(s.taken) < Freshness {
		return s.last, nil
	}
	s.rates.beginRound()
	got := &sample{summary: &statsv1alpha1.Summary{Node: s.measureNode(ctx), Pods: []statsv1alpha1.PodStats{}}}
	pods, err := s.podStats(ctx, got.summary.Node.Fs)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // this caller has gone; the next caller measures itself
	}
	if err == nil {
		got.summary.Pods = pods
		s.rates.forgetUnseen()
	}
	got.err = err
	s.last, s.taken = got, time.Now()
	return got, nil
}

// measureNode returns the known usage of the machine.
func (s *Stats) measureNode(ctx context.Context) statsv1alpha1.NodeStats {
	now := metav1.Now()
	node := statsv1alpha1.NodeStats{
		NodeName: s.config.Node, StartTime: s.machine.bootTime(s.started), CPU: s.machine.cpuTime(now), Memory: s.machine.memoryUse(now), Swap: s.machine.swapUse(now),
		Network: s.machine.networkTraffic(now, "self"), Fs: s.machine.fileSystem(now, s.config.Root), Rlimit: s.machine.threadCount(now),
	}
	s.rates.addRate("node", node.CPU)
	if s.config.Images == nil {
		return node
	}
	info, err := s.config.Images.ImageFsInfo(ctx)
	if err != nil {
		return node // the runtime has no images on disk
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

// ImageFs returns the size and the free space of the file system of images.
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

// Machine returns the available memory of the machine, and the available space on the file system of a
// directory.
func Machine(root string) *statsv1alpha1.NodeStats {
	m, now := machine{proc: "/proc", root: "/"}, metav1.Now()
	return &statsv1alpha1.NodeStats{Memory: m.memoryUse(now), Fs: m.fileSystem(now, root)}
}

// Capacity returns the machine's capacity for pods: processors, memory, huge pages, and the storage of root's
// file system.
func Capacity(root string, pods int64) corev1.ResourceList {
	return machine{proc: "/proc", root: "/"}.nodeCapacity(root, pods)
}

// MaxPID returns the machine's limit of processes and threads, or 0 if it is unknown.
func MaxPID() int64 {
	if limits := (machine{proc: "/proc", root: "/"}).threadCount(metav1.Now()); limits != nil {
		return *limits.MaxPID
	}
	return 0
}

// NodeInfo returns the system information of the machine.
func NodeInfo() corev1.NodeSystemInfo { return machine{proc: "/proc", root: "/"}.systemInfo() }
