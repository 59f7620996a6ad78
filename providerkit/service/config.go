// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/probing"
)

// Again is the behavior of a service if the kit sends the create of a pod's instance a second time.
type Again int

const (
	// AgainMakesAnother means that the service makes a second instance. The kit never asks again while a first instance
	// may still appear.
	AgainMakesAnother Again = iota
	// AgainReplaces means that the service knows the instance by its name and changes it. The kit asks again when the
	// service shows no instance.
	AgainReplaces
	// AgainReturnsFirst means that the service knows the request by a token and returns the instance that it made first.
	// The kit asks again at once. The service must remember the token for longer than its lists may lack the
	// instance.
	AgainReturnsFirst
)

// Request is a kind of user request to a running pod.
type Request string

// These are the optional requests of a service.
const (
	Logs        Request = "logs"
	Exec        Request = "exec"
	Attach      Request = "attach"
	PortForward Request = "port-forward"
)

// Config describes a provider to the kit, in addition to its driver. Service and Owner are required.
type Config struct {
	// Service is the name of the service in errors, such as ECI.
	Service string
	// Owner is the node and its cluster, as in tags and names at the service.
	Owner identity.Owner
	// Capabilities is the declaration of the provider.
	Capabilities capability.Declaration
	// Capacity is the capacity of the node. Nil: the driver configures the node.
	Capacity corev1.ResourceList
	// Runtime is the container runtime version of the node, such as eci://2018-08-08. Empty: the driver configures it.
	Runtime string
	// Allocatable returns the resources of a container without limits in the downward API. Nil: Capacity.
	Allocatable func() corev1.ResourceList
	// Pods lists the cluster's pods on this node. Listed reports whether Pods is complete. Nil: the pods are not
	// known.
	Pods   corev1listers.PodLister
	Listed func() bool
	// Instead has advice for users about missing requests of the service, such as "use exec or logs".
	Instead map[Request]string
	// LogsUnseen makes the kit ask the driver for the log of a container even if the container has not begun
	// according to the lists.
	LogsUnseen bool

	// Again is the effect of a second create of a pod.
	Again Again
	// SeenWithin is the longest time until lists and Find show a requested instance; 0 is 2 min.
	SeenWithin time.Duration
	// EarlierWithin is the longest time after the start until lists show every instance from an earlier process.
	// 0 is SeenWithin. Less than 0: the first list of the service is complete.
	EarlierWithin time.Duration
	// Brief is the time that a pod's state must last before it is reported, while the pod has not started. Shorter states cause no write to
	// the API. 0 is no delay.
	Brief time.Duration
	// Backoff is the wait before a Starter starts a container again for the second time; it doubles from there.
	// 0 is 10 s.
	Backoff time.Duration
	// Patience is the maximum time that a request waits for the first list; 0 is 10 s.
	Patience time.Duration
	// Probes makes the component for the probes of a Prober: Make of package podruntime/probe. A Prober requires
	// it.
	Probes func(probing.Config) probing.Prober
	// ProbesAtOnce is the maximum number of concurrent probes of a Prober; 0 is 32. ExecProbeEvery is the shortest period of a probe by
	// command, even if the pod asks for a shorter period: the service may limit the requests for such probes. 0: the period of the pod.
	ProbesAtOnce   int
	ExecProbeEvery time.Duration
	// Recorder records the events of probes. Nil: the events are dropped.
	Recorder record.EventRecorder
	// Busy, Rest, Idle, Soon, Slowest, ListEvery and LostFor are the timings of the lists; see poll.Config.
	Busy, Rest, Idle, Soon, Slowest, ListEvery, LostFor time.Duration
	// Unlisted means that the service has no list, so its driver asks about the pods of poll.Cache.Known and of the cluster. No list shows
	// an unknown instance. When a pod is deleted, the kit therefore calls Find for an unknown instance, and once more at the time when such
	// an instance must be visible. The provider is given to the node as an Unlisted.
	Unlisted bool

	// Objects replaces the reader of API objects, for services with another view of the cluster. Nil: objects
	// are used as they are.
	Objects func(node.PodObjects) node.PodObjects
	// NoLogins means that the service pulls images with its own credentials, so the kit does not read the pull secrets of
	// pods.
	NoLogins bool
	// Claims makes the kit find the PersistentVolumes of pods, for Inputs.Claimed.
	Claims bool
	// Skips reports whether to skip the files of a volume. Nil: no volume is skipped.
	Skips func(*corev1.Volume) bool
}

func (c Config) complete() Config {
	c.SeenWithin = cmp.Or(c.SeenWithin, 2*time.Minute)
	c.EarlierWithin = cmp.Or(c.EarlierWithin, c.SeenWithin)
	c.Backoff = cmp.Or(c.Backoff, 10*time.Second)
	c.Patience = cmp.Or(c.Patience, 10*time.Second)
	c.ProbesAtOnce = cmp.Or(c.ProbesAtOnce, 32)
	if c.Allocatable == nil {
		capacity := c.Capacity
		c.Allocatable = func() corev1.ResourceList { return capacity }
	}
	if c.Listed == nil {
		c.Listed = func() bool { return true }
	}
	return c
}
