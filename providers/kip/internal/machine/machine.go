// SPDX-License-Identifier: Apache-2.0

// Package machine is the interface between the provider and its clouds. A driver of a cloud sends requests and has no policy.
//
// Each driver guarantees: a machine has all its tags from the call that makes it, so every machine that costs money shows its owner. Two calls of Start
// with the same token make one machine.
package machine

import (
	"context"
	"errors"
	"time"
)

// Driver sends requests to one cloud. All methods are safe for concurrent use. A not-found error means that the cloud does not have the machine.
type Driver interface {
	// Start makes a machine and returns it. The machine may have no address yet. A second call with the same token returns the first machine. After an
	// error, the machine may exist, except if the error is of the kind invalid-input or from Refuse.
	Start(ctx context.Context, spec Spec) (Machine, error)
	// Stop ends a machine and removes everything that costs money for it. Stop may return earlier. Stopping an ending machine is no error.
	Stop(ctx context.Context, id string) error
	// List returns all machines with all of these tags, from all pages, or an error. Gone machines may stay in the list for a while.
	List(ctx context.Context, tags map[string]string) ([]Machine, error)
	// Describe returns one machine. False means that the cloud does not show the machine, for example because the machine is new.
	Describe(ctx context.Context, id string) (Machine, bool, error)
	// Tag adds tags to a machine, or replaces their values.
	Tag(ctx context.Context, id string, tags map[string]string) error
	// Console returns the machine's console output, for users. It is empty if the cloud has no output yet.
	Console(ctx context.Context, id string) (string, error)
}

// Spec specifies a machine.
type Spec struct {
	// Token is the same for each attempt to make the same machine, and unique to the machine. It has at most 64 ASCII characters.
	Token string
	// Type is the size of the machine.
	Type Type
	// Image is the boot image of the machine, by its name at the cloud.
	Image string
	// UserData is the input of the agent, at most 16 KiB.
	UserData []byte
	// Tags are the tags of the machine, and of the volumes and network interfaces that the cloud makes with it.
	Tags map[string]string
	// VolumeGiB is the disk size. 0 means the size of the image.
	VolumeGiB int64
	// Spot requests a machine that the cloud may take away.
	Spot bool
	// PrivateOnly requests a machine without a public address.
	PrivateOnly bool
	// SecurityGroups are added to the groups of the configuration.
	SecurityGroups []string
	// InstanceProfile gives the machine rights at the cloud. Default: none.
	InstanceProfile string
}

// Type is a size of machines.
type Type struct {
	Name     string
	MilliCPU int64
	Memory   int64 // bytes for the pod
	GPUs     int64
	// GPUResource is the extended resource that pods request, such as nvidia.com/gpu.
	GPUResource string
	// Price and SpotPrice are the prices for an hour, in millionths of the table's currency. 0 means unknown.
	Price, SpotPrice int64
}

// Reserve returns the memory of a machine that its pod cannot use: with QEMU and 400 MiB, the kernel keeps 44 MiB, and
// 59 MiB are in use while a shell runs. The kernel's tables take 1.6 % of the memory. EC2 keeps 2 to 5 % for itself.
func Reserve(memory int64) int64 { return 128<<20 + memory/16 }

// State is the lifecycle state of a machine.
type State int

// States of a machine. A machine in a state unknown to this version is Unknown, and the pod keeps its last state.
const (
	Unknown State = iota
	Starting
	Running
	Stopping
	Gone // the machine has ended and costs nothing
)

// Machine is a machine as reported by the cloud.
type Machine struct {
	ID   string
	Type string // name of the type
	Tags map[string]string
	// Address is the agent's host and port for the node, or empty if unknown.
	Address string
	// IP is the address of the pod on the machine's network, or empty if unknown.
	IP      string
	State   State
	Spot    bool
	Created time.Time
	// Reason is the reason code of a machine that stops or is gone, if the cloud reports one: ReasonPreempted, or the cloud's own code. Message is
	// the text for users.
	Reason, Message string
}

// ReasonPreempted is the reason of a spot machine that the cloud takes away.
const ReasonPreempted = "Preempted"

// Refusal is the reason why a cloud makes no machine now. The cloud may make one later, or of another type.
type Refusal int

// Refusals.
const (
	NoCapacity Refusal = iota + 1 // the cloud has no machine of this type now
	Quota                         // the account has reached a limit
	Throttled                     // the account sends too many requests
	Denied                        // the credentials do not permit the request
)

// Refuse marks the error of a refused request, so no machine was made. Wrap err with errdefs.RetryAfter to set the time of the next attempt.
func Refuse(why Refusal, err error) error { return &refused{err, why} }

type refused struct {
	error
	why Refusal
}

// Unwrap lets errors.As find the kinds of the error.
func (e *refused) Unwrap() error { return e.error }

// RefusalOf returns the reason of a refusal, or 0 if the error is not from Refuse.
func RefusalOf(err error) Refusal {
	var r *refused
	if errors.As(err, &r) {
		return r.why
	}
	return 0
}
