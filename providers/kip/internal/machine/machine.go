// SPDX-License-Identifier: Apache-2.0

// Package machine is the seam between the provider and the clouds that it starts machines at: a driver of a cloud has requests, and no policy.
//
// The guarantee that each driver gives: a machine carries all its tags from the call that makes it, so that no machine costs money without saying
// whose it is; and two calls of Start with one token make one machine.
package machine

import (
	"context"
	"errors"
	"time"
)

// Driver has the requests of one cloud. Methods may be called from any goroutine. An error of the kind not-found says that the cloud does not have
// the machine.
type Driver interface {
	// Start makes a machine, and returns it as the answer tells of it: it may have no address yet. A second call with the same token returns the
	// first machine. The error says whether a machine may exist all the same: none does if the error is of the kind invalid-input or from Refuse.
	Start(ctx context.Context, spec Spec) (Machine, error)
	// Stop ends a machine and removes all that it costs. It may return before that is done. It is no error if the machine ends already.
	Stop(ctx context.Context, id string) error
	// List returns every machine that has all of these tags, of all pages. It is complete or an error. Machines that are gone may be in it for a while.
	List(ctx context.Context, tags map[string]string) ([]Machine, error)
	// Describe returns one machine. False says that the cloud does not show it, which new machines may see for a while.
	Describe(ctx context.Context, id string) (Machine, bool, error)
	// Tag adds tags to a machine, or replaces the values of those that it has.
	Tag(ctx context.Context, id string, tags map[string]string) error
	// Console returns what the machine wrote to its console, for people; empty if the cloud has nothing yet.
	Console(ctx context.Context, id string) (string, error)
}

// Spec is what a machine is made from.
type Spec struct {
	// Token is the same for each try to make the same machine, and for no other machine: at most 64 characters of ASCII.
	Token string
	// Type is the size of the machine.
	Type Type
	// Image is what the machine boots, as the cloud names it.
	Image string
	// UserData is read by the agent when it starts; at most 16 KiB.
	UserData []byte
	// Tags are those of the machine, and of each volume and network interface that is made with it.
	Tags map[string]string
	// VolumeGiB is the size of its disk; 0 is that of the image.
	VolumeGiB int64
	// Spot asks for a machine that the cloud may take away.
	Spot bool
	// PrivateOnly asks for a machine without a public address.
	PrivateOnly bool
	// SecurityGroups are added to those of the configuration.
	SecurityGroups []string
	// InstanceProfile gives the machine rights at the cloud; empty for none.
	InstanceProfile string
}

// Type is a size of machines.
type Type struct {
	Name     string
	MilliCPU int64
	Memory   int64 // bytes
	GPUs     int64
	// GPUResource is the name of the extended resource that pods ask for, such as nvidia.com/gpu.
	GPUResource string
	// Price and SpotPrice are what an hour costs, in millionths of the currency of the table; 0 is not known.
	Price, SpotPrice int64
}

// State is how far a machine is.
type State int

// The states. A machine in a state that this version does not know is Unknown, and stays what it was for the pod.
const (
	Unknown State = iota
	Starting
	Running
	Stopping
	Gone // it has ended, and costs nothing any more
)

// Machine is a machine as the cloud tells of it.
type Machine struct {
	ID   string
	Type string // name of the type
	Tags map[string]string
	// Address is the host and port where the node reaches the agent; empty while it is not known.
	Address string
	// IP is the address of the pod on the network of the machine; empty while it is not known.
	IP      string
	State   State
	Spot    bool
	Created time.Time
	// Reason says in a word why a machine stops or is gone, as far as the cloud tells: ReasonPreempted, or the cloud's own word. Message is for people.
	Reason, Message string
}

// ReasonPreempted is the reason of a spot machine that the cloud takes away.
const ReasonPreempted = "Preempted"

// Refusal is why a cloud makes no machine now. It may make one later, or of another type.
type Refusal int

// The refusals.
const (
	NoCapacity Refusal = iota + 1 // the cloud has no machine of this type now
	Quota                         // the account may have no more of them
	Throttled                     // the account asks too often
	Denied                        // the credentials may not do this
)

// Refuse marks the error of a request that the cloud refused, so nothing was made. errdefs.RetryAfter beside it says when to ask again.
func Refuse(why Refusal, err error) error { return &refused{err, why} }

type refused struct {
	error
	why Refusal
}

// Unwrap lets errors.As see the kinds of the error.
func (e *refused) Unwrap() error { return e.error }

// RefusalOf says why a cloud refused a request; 0 if the error is not from Refuse.
func RefusalOf(err error) Refusal {
	var r *refused
	if errors.As(err, &r) {
		return r.why
	}
	return 0
}
