// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Run starts the control plane, calls o.Ready, and runs it until ctx is done. It returns nil if ctx ended it,
// even during the start, and otherwise why the control plane could not go on.
func Run(ctx context.Context, o Options) error {
	defer func() { _ = o.Listener.Close() }() // still open only if the API server never got the listener
	whole, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	p := &plane{Options: o, fail: fail}
	if err := p.start(whole); err != nil {
		fail(err)
	}
	<-whole.Done()
	p.stop()
	// The first cause stays: later ends are consequences.
	if cause := context.Cause(whole); !errors.Is(cause, context.Cause(ctx)) {
		return cause
	}
	return nil
}

// plane is a control plane in the order in which its components were started.
type plane struct {
	Options
	fail       context.CancelCauseFunc
	components []*component
}

func (p *plane) add(name string, run func(context.Context) error) {
	p.components = append(p.components, start(name, run, p.fail))
}

// stop ends the components in reverse order, so that each component has its dependencies until its end.
func (p *plane) stop() {
	for _, c := range slices.Backward(p.components) {
		c.stop()
	}
}

func (p *plane) start(ctx context.Context) error {
	etcd, err := startEtcd(ctx, p.Options)
	if err != nil {
		return err
	}
	p.add("etcd", etcd.run)
	p.Step("etcd")

	// All flags are parsed before any of them is used, the API server's first: it sets the feature gates that
	// the others read.
	runAPIServer, err := apiServer(p.Options, etcd.url)
	if err != nil {
		return err
	}
	runControllerManager, err := controllerManager(p.Options)
	if err != nil {
		return err
	}
	runScheduler, err := scheduler(p.Options)
	if err != nil {
		return err
	}

	p.add("kube-apiserver", runAPIServer)
	client, err := adminClient(p.Dir.Kubeconfig())
	if err != nil {
		return err
	}
	if err := awaitReady(ctx, client); err != nil {
		return err
	}
	if err := allowKubeletAPI(ctx, client); err != nil {
		return err
	}
	p.Step(fmt.Sprintf("kube-apiserver at https://%s", p.Listener.Addr()))

	if p.Scheduler {
		p.add("kube-scheduler", runScheduler)
		p.Step("kube-scheduler")
	}
	if p.ControllerManager {
		p.add("kube-controller-manager", runControllerManager)
		if err := awaitServiceAccount(ctx, client); err != nil {
			return err
		}
		p.Step("kube-controller-manager")
	}
	return p.Ready()
}
