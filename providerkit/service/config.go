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

// Again is what a service does when it is asked to create the instance of a pod a second time.
type Again int

const (
	// AgainMakesAnother is a service that makes a second instance. The kit never asks it again while a first one may still appear.
	AgainMakesAnother Again = iota
	// AgainReplaces is a service that knows the instance by its name, and changes it. The kit asks it again when it shows none.
	AgainReplaces
	// AgainReturnsFirst is a service that knows the request by a token, and gives the instance that it has made. The kit asks it again at once. The
	// service knows the token for longer than its lists may lack the instance.
	AgainReturnsFirst
)

// Request is what users ask of a pod that runs.
type Request string

// The requests that a service may not have.
const (
	Logs        Request = "logs"
	Exec        Request = "exec"
	Attach      Request = "attach"
	PortForward Request = "port-forward"
)

// Config is what the kit needs to know of a provider besides its driver. Service and Owner are required.
type Config struct {
	// Service is the name of the service in errors, such as ECI.
	Service string
	// Owner is the node and its cluster, as tags and names at the service have them.
	Owner identity.Owner
	// Capabilities is what the provider declares.
	Capabilities capability.Declaration
	// Capacity is what the node offers. Nil: the driver configures the node.
	Capacity corev1.ResourceList
	// Allocatable is what a container without limits may use, as the downward API tells it. Nil: Capacity.
	Allocatable func() corev1.ResourceList
	// Pods are those that the cluster has on this node, and Listed reports whether Pods has all of them. Nil: they are not known.
	Pods   corev1listers.PodLister
	Listed func() bool
	// Instead says of the requests that the service does not have what users do instead, such as "use exec or logs".
	Instead map[Request]string
	// LogsUnseen lets the driver be asked for the log of a container that has not begun as far as lists tell.
	LogsUnseen bool

	// Again is what a second create of a pod does.
	Again Again
	// SeenWithin is how long the service may take until lists and Find show an instance that it was asked to make; 0 is 2 min.
	SeenWithin time.Duration
	// EarlierWithin is how long after the start an instance may be unseen that an earlier process made; 0 is SeenWithin, and less than 0 is a
	// service whose first list has them all.
	EarlierWithin time.Duration
	// Brief is how long the state of a pod that has not begun must last until it is reported: what passes sooner is no write at the API. 0 is no time.
	Brief time.Duration
	// Backoff is how long a container waits that a Starter starts again for the second time; it doubles from there. 0 is 10 s.
	Backoff time.Duration
	// Patience is how long a request waits for the first list; 0 is 10 s.
	Patience time.Duration
	// Probes makes what does the probes of a Prober: it is Make of package podruntime/probe. A Prober requires it.
	Probes func(probing.Config) probing.Prober
	// ProbesAtOnce is how many probes of a Prober are under way at most; 0 is 32. ExecProbeEvery is the shortest period of one by command, whatever the pod
	// says, where each costs a request that the service limits; 0 is that of the pod.
	ProbesAtOnce   int
	ExecProbeEvery time.Duration
	// Recorder gets the events of probes. Nil: nobody reads them.
	Recorder record.EventRecorder
	// Busy, Rest, Idle, Soon, Slowest, ListEvery and LostFor are the times of the lists; see poll.Config.
	Busy, Rest, Idle, Soon, Slowest, ListEvery, LostFor time.Duration
	// Unlisted is a service without a list: its driver asks it about the pods of poll.Cache.Known and of the cluster. No list has an instance that nobody
	// asks for, so a pod that is deleted is looked for if it is not known, and one whose instance may appear once more when it must have appeared.
	// Its provider is given to the node as Unlisted.
	Unlisted bool

	// Objects replaces what is read of the API, for services that see the cluster from elsewhere. Nil: it is taken as it is.
	Objects func(node.PodObjects) node.PodObjects
	// NoLogins is a service that pulls images with credentials of its own: the pull secrets of pods are not read.
	NoLogins bool
	// Claims lets the PersistentVolumes of pods be found, for Inputs.Claimed.
	Claims bool
	// Skips reports whether the files of a volume are not wanted. Nil: all are.
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
