// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
)

// dropper is a service that removes some secrets and not others. Its tasks are none.
type dropper struct {
	service
	begin time.Time

	mu    sync.Mutex
	fails map[string]int             // guarded by mu; how often yet, by name; less than 0 hangs
	tried map[string][]time.Duration // guarded by mu; when, since begin
}

func (d *dropper) drop(ctx context.Context, name string) error {
	d.mu.Lock()
	d.tried[name] = append(d.tried[name], time.Since(d.begin))
	d.fails[name]--
	fails := d.fails[name]
	d.mu.Unlock()
	switch {
	case fails < -100:
		<-ctx.Done()
		return ctx.Err()
	case fails >= 0:
		return errors.New("denied")
	}
	return nil
}

func (d *dropper) ping(context.Context) error { return nil }

func (d *dropper) close() {}

func (d *dropper) started(context.Context, string) ([]string, error) { return nil, nil }
func (d *dropper) stopped(context.Context) ([]string, error)         { return nil, nil }

func (d *dropper) describe(context.Context, []string) ([]types.Task, []string, error) {
	return nil, nil, nil
}

// TestLeftoversHoldNothingUp: a secret that cannot be removed is tried again, ever later, and the others are removed meanwhile.
func TestLeftoversHoldNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dropper{begin: time.Now(), fails: map[string]int{"a": 4}, tried: map[string][]time.Duration{}}
		p := &provider{service: d, leftovers: leftovers{wake: make(chan struct{}, 1)}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.removeLeftovers(ctx) }()
		for _, name := range []string{"a", "b", "c"} {
			p.leftovers.add(name)
		}
		synctest.Wait()
		time.Sleep(5 * time.Second)
		p.leftovers.add("a")
		p.leftovers.add("d")
		time.Sleep(time.Hour)
		cancel()
		<-done
		s := time.Second
		for name, want := range map[string][]time.Duration{"a": {0, 2 * s, 6 * s, 14 * s, 30 * s}, "b": {0}, "c": {0}, "d": {5 * s}} {
			if !slices.Equal(d.tried[name], want) {
				t.Errorf("%s was tried after %v, want %v", name, d.tried[name], want)
			}
		}
		if len(p.leftovers.names) > 0 {
			t.Errorf("%v are left", p.leftovers.names)
		}
	})
}

// TestRoundsDoNotRemove: while a service hangs that is to remove a secret, ECS is asked about tasks.
func TestRoundsDoNotRemove(t *testing.T) {
	useKey(t)
	p, err := newProvider(t.Context(), cli.ProviderInput{NodeName: "node"}, testConfig(t, nil), quick)
	if err != nil {
		t.Fatal(err)
	}
	d := &dropper{begin: time.Now(), fails: map[string]int{"a": -100}, tried: map[string][]time.Duration{}}
	p.service = d
	p.leftovers.add("a")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.RunInBackground(ctx) }()
	tick := everyMoment(t)
	for !p.cache.Synced() {
		tick("the tasks are listed")
	}
	for tried := 0; tried == 0; {
		tick("the secret is being removed")
		d.mu.Lock()
		tried = len(d.tried["a"])
		d.mu.Unlock()
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
