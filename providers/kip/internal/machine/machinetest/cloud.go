// SPDX-License-Identifier: Apache-2.0

// Package machinetest has a simulated cloud for tests of the provider. Tests set its delays, shortages and failures.
//
// The guarantee: with any fault, the cloud keeps the rules of machine.Driver. A machine has its tags from the beginning, and a token makes one machine
// while lists show that machine.
//
// Note: the test supplies the program in a machine.
package machinetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// Cloud is a simulated cloud.
type Cloud struct {
	boot func(id string, spec machine.Spec) (Booted, error)

	mu       sync.Mutex
	all      map[string]*simulated // guarded by mu
	made     int                   // guarded by mu; number of machines ever made
	faults   Faults                // guarded by mu
	requests map[string]int        // guarded by mu
}

// Booted is the program that runs in a machine.
type Booted struct {
	Address, IP string
	// End ends the program, and returns after it has ended.
	End func()
}

// Faults configure failures. The zero value has no failures.
type Faults struct {
	// Lag is the time until lists show a new machine.
	Lag time.Duration
	// Dark makes every request fail, as in an outage. With Lost, the cloud executes the request first.
	Dark, Lost bool
	// LoseStarts is the number of answers to Start that the cloud will lose.
	LoseStarts int
	// Throttled refuses every request.
	Throttled bool
	// Scarce are types without capacity. Quota is the maximum number of machines; 0 means no limit.
	Scarce []string
	Quota  int
	// Remains keeps a machine that has ended itself in lists until Stop, as a cloud does while it still charges for the machine.
	Remains bool
	// Before runs before a request has an effect, without a lock.
	Before func(operation string)
	// After runs after a request has had its effect, without a lock. Its error becomes the answer.
	After func(operation string) error
}

type simulated struct {
	machine.Machine
	token  string
	booted Booted
	ended  time.Time
	kept   bool // the machine remains until Stop
}

// goneFor is the time that lists show gone machines.
const goneFor = 2 * time.Second

// New returns a cloud that calls boot for each new machine, without a lock.
func New(boot func(id string, spec machine.Spec) (Booted, error)) *Cloud {
	return &Cloud{boot: boot, all: map[string]*simulated{}, requests: map[string]int{}}
}

// Set changes the faults.
func (c *Cloud) Set(change func(*Faults)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.faults)
}

// begin counts a request and applies the faults before its effect.
func (c *Cloud) begin(operation string) (Faults, error) {
	c.mu.Lock()
	f := c.faults
	c.requests[operation]++
	c.mu.Unlock()
	if f.Before != nil {
		f.Before(operation)
	}
	switch {
	case f.Dark && !f.Lost:
		return f, errors.New("the cloud does not answer")
	case f.Throttled:
		return f, machine.Refuse(machine.Throttled, errdefs.RetryAfter(errors.New("too many requests"), time.Second))
	}
	return f, nil
}

// end applies the faults after the effect of a request.
func (f Faults) end(operation string) error {
	if f.After != nil {
		if err := f.After(operation); err != nil {
			return err
		}
	}
	if f.Dark {
		return errors.New("the cloud does not answer")
	}
	return nil
}

// Start implements machine.Driver.
func (c *Cloud) Start(_ context.Context, spec machine.Spec) (machine.Machine, error) {
	f, err := c.begin("Start")
	if err != nil {
		return machine.Machine{}, err
	}
	if len(spec.UserData) > 16<<10 || len(spec.Token) > 64 {
		return machine.Machine{}, errdefs.InvalidInput("the user data or the token is too long")
	}
	c.mu.Lock()
	s, err := c.add(spec, f)
	first := err == nil && s.booted.End == nil
	if first {
		s.booted.End = func() {}
	}
	c.mu.Unlock()
	if err != nil {
		return machine.Machine{}, err
	}
	if first {
		b, err := c.boot(s.ID, spec)
		c.mu.Lock()
		s.Address, s.IP = b.Address, b.IP
		if b.End != nil {
			s.booted = b
		}
		s.State = machine.Running
		c.mu.Unlock()
		if err != nil {
			c.gone(s.ID, "BootFailed", err.Error())
		}
	}
	if err := f.end("Start"); err != nil {
		return machine.Machine{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.faults.LoseStarts > 0 {
		c.faults.LoseStarts--
		return machine.Machine{}, errors.New("the answer was lost")
	}
	return s.copy(), nil
}

// add adds a machine, or returns the existing machine of the token. The caller holds c.mu.
func (c *Cloud) add(spec machine.Spec, f Faults) (*simulated, error) {
	running := 0
	for _, s := range c.all {
		if s.token == spec.Token {
			return s, nil
		}
		if s.State != machine.Gone {
			running++
		}
	}
	if slices.Contains(f.Scarce, spec.Type.Name) {
		return nil, machine.Refuse(machine.NoCapacity, fmt.Errorf("there is no capacity for %s", spec.Type.Name))
	}
	if f.Quota > 0 && running >= f.Quota {
		return nil, machine.Refuse(machine.Quota, errors.New("the quota is used up"))
	}
	c.made++
	s := &simulated{token: spec.Token, Machine: machine.Machine{
		ID: fmt.Sprintf("m-%04d", c.made), Type: spec.Type.Name, Tags: maps.Clone(spec.Tags), State: machine.Starting, Spot: spec.Spot, Created: time.Now(),
	}}
	c.all[s.ID] = s
	return s, nil
}

func (s *simulated) copy() machine.Machine {
	m := s.Machine
	m.Tags = maps.Clone(m.Tags)
	return m
}

// Stop implements machine.Driver.
func (c *Cloud) Stop(_ context.Context, id string) error {
	f, err := c.begin("Stop")
	if err != nil {
		return err
	}
	c.mu.Lock()
	s := c.all[id]
	c.mu.Unlock()
	if s == nil {
		return errdefs.NotFoundf("there is no machine %s", id)
	}
	c.gone(id, "Stopped", "")
	c.mu.Lock()
	s.kept = false
	c.mu.Unlock()
	return f.end("Stop")
}

// gone ends a machine.
func (c *Cloud) gone(id, reason, message string) {
	c.mu.Lock()
	s := c.all[id]
	if s == nil || s.State == machine.Gone {
		c.mu.Unlock()
		return
	}
	s.State, s.Reason, s.Message, s.ended, s.kept = machine.Gone, reason, message, time.Now(), c.faults.Remains
	end := s.booted.End
	c.mu.Unlock()
	if end != nil {
		end()
	}
}

// List implements machine.Driver.
func (c *Cloud) List(_ context.Context, tags map[string]string) ([]machine.Machine, error) {
	f, err := c.begin("List")
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	var all []machine.Machine
	for id, s := range c.all {
		if s.State == machine.Gone && !s.kept && time.Since(s.ended) > goneFor {
			delete(c.all, id)
			continue
		}
		if time.Since(s.Created) < f.Lag || !has(s.Tags, tags) {
			continue
		}
		all = append(all, s.copy())
	}
	c.mu.Unlock()
	slices.SortFunc(all, func(a, b machine.Machine) int { return strings.Compare(a.ID, b.ID) })
	return all, f.end("List")
}

func has(tags, want map[string]string) bool {
	for k, v := range want {
		if have, is := tags[k]; !is || have != v {
			return false
		}
	}
	return true
}

// Describe implements machine.Driver.
func (c *Cloud) Describe(_ context.Context, id string) (machine.Machine, bool, error) {
	f, err := c.begin("Describe")
	if err != nil {
		return machine.Machine{}, false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.all[id]
	if s == nil || time.Since(s.Created) < f.Lag {
		return machine.Machine{}, false, f.end("Describe")
	}
	return s.copy(), true, f.end("Describe")
}

// Tag implements machine.Driver.
func (c *Cloud) Tag(_ context.Context, id string, tags map[string]string) error {
	f, err := c.begin("Tag")
	if err != nil {
		return err
	}
	c.mu.Lock()
	s := c.all[id]
	if s != nil {
		maps.Copy(s.Tags, tags)
	}
	c.mu.Unlock()
	if s == nil {
		return errdefs.NotFoundf("there is no machine %s", id)
	}
	return f.end("Tag")
}

// Console implements machine.Driver.
func (c *Cloud) Console(context.Context, string) (string, error) { return "simulated: no console", nil }

// Running returns the machines that cost money.
func (c *Cloud) Running() (all []machine.Machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.all {
		if s.State != machine.Gone {
			all = append(all, s.copy())
		}
	}
	slices.SortFunc(all, func(a, b machine.Machine) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Requests returns the number of requests of an operation.
func (c *Cloud) Requests(operation string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[operation]
}

// Terminate ends a machine without a request of its node.
func (c *Cloud) Terminate(id, reason string) { c.gone(id, reason, "") }

// Close ends all machines.
func (c *Cloud) Close() {
	for _, m := range c.Running() {
		c.gone(m.ID, "Closed", "")
	}
}

var _ machine.Driver = (*Cloud)(nil)
