// SPDX-License-Identifier: Apache-2.0

// Package plugin is the half of the InterLink protocol that runs pods; an interLink API server calls it its
// sidecar. The plugin hands pods to any provider, as a node does. Its command is interlink-plugin.
//
// The guarantees: the UID identifies a pod, so a repeated create makes one pod and gives the same answer. The
// plugin reports an accepted pod until the pod is deleted, also after a restart. If the provider loses track of
// a pod, the plugin reports an unknown end, never exit code 0. Records of pods contain secrets; only the user of
// the plugin can read them.
//
// Note: the plugin answers both forms of the protocol: the form of its description (POST), and the form
// of the programs (GET and DELETE with bodies). The plugin also answers the requests of a virtual node to an API
// server, so a virtual node can connect to it directly.
package plugin

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	kuberecord "k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
)

// refreshEvery is the interval for listing all pods of the provider. The provider does not report lost pods.
const refreshEvery = time.Second

// Options configure the provider of a plugin and its listener.
type Options struct {
	// Runner is the provider. RunnerConfig is its configuration file, or "".
	Runner       cli.Provider
	RunnerConfig string
	// StateDir is the directory with the records of pods. The records have secrets.
	StateDir string
	// Listen is unix:///path, or http://address:port with a loopback address of this machine. An http address
	// requires a TokenFile.
	Listen string
	// TokenFile holds the token that requests must have, as a bearer token or as a password. The plugin reads
	// the file again when it changes. Default: none.
	TokenFile string
	// OpenToThisMachine listens on a port without a token: every user of this machine can then run programs with the rights of this one.
	OpenToThisMachine bool
	// NodeName is the node name passed to the provider. Default: interlink.
	NodeName string
	// Listening is called when the plugin accepts requests. It may be nil.
	Listening func(net.Addr)
}

// Run answers an interLink API server until ctx ends. The pods keep running.
func Run(ctx context.Context, o Options) (err error) {
	if o.NodeName == "" {
		o.NodeName = "interlink"
	}
	kept, err := openStore(filepath.Join(o.StateDir, "pods"))
	if err != nil {
		return err
	}
	var token config.Secret
	if o.TokenFile != "" {
		if token, err = readToken(ctx, o.TokenFile); err != nil {
			return err
		}
	}
	listener, err := listen(ctx, o.Listen, token.IsSet(), o.OpenToThisMachine)
	if err != nil {
		return err
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.NodeName}}
	p := &pods{
		runner: o.Runner.Name, store: kept, objects: newObjects(), ctx: ctx, all: map[types.UID]*pod{}, busy: map[types.UID]chan struct{}{},
	}
	events := kuberecord.NewBroadcaster() // to the log: the protocol has no events
	defer events.Shutdown()
	events.StartLogging(log.G(ctx).Debugf)
	recorder := events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "interlink-plugin"})
	p.provider, err = o.Runner.New(ctx, cli.ProviderInput{
		ProviderConfig: p.objects.config(n, recorder), ConfigPath: o.RunnerConfig, NodeName: o.NodeName, OperatingSystem: runtime.GOOS,
		InternalIP: "127.0.0.1", KubeClusterDomain: "cluster.local",
	})
	if err != nil {
		return err
	}
	s := &server{pods: p}
	s.offered(n)
	running := p.begin(ctx, s)
	defer func() {
		cancel()
		p.working.Wait()
		err = errors.Join(err, <-running)
	}()
	if c, ok := p.provider.(cli.NodeConfigurer); ok {
		c.ConfigureNode(ctx, n)
		s.offered(n)
	}
	if err := p.recover(ctx); err != nil {
		return err
	}
	p.working.Go(func() { p.keep(ctx) })
	if o.Listening != nil {
		o.Listening(listener.Addr())
	}
	served := make(chan error, 1)
	handler := s.handler()
	if token.IsSet() {
		handler = whilePrivate(o.TokenFile, withToken(token, handler))
	}
	go func() { served <- serve(ctx, listener, handler) }()
	select {
	case err = <-served:
		return err
	case err = <-running:
		running <- nil
		if ctx.Err() == nil {
			err = errors.Join(errors.New("interlink-plugin: the provider has ended by itself"), err)
		}
		cancel()
		return errors.Join(err, <-served)
	}
}

// begin connects the optional interfaces of the provider and starts its work in the background.
func (p *pods) begin(ctx context.Context, s *server) chan error {
	if u, ok := p.provider.(node.PodObjectsUser); ok {
		u.UsePodObjects(p.objects)
	}
	if u, ok := p.provider.(node.PullCredentialsUser); ok {
		u.UsePullCredentials(p.objects)
	}
	if u, ok := p.provider.(node.PodNotifier); ok {
		u.NotifyPods(ctx, p.reported)
	}
	if u, ok := p.provider.(node.NodeProvider); ok {
		u.NotifyNodeStatus(ctx, s.offered)
	}
	ended := make(chan error, 1)
	go func() {
		if b, ok := p.provider.(node.BackgroundRunner); ok {
			err := b.RunInBackground(ctx)
			if ctx.Err() != nil && errors.Is(err, context.Canceled) {
				err = nil
			}
			ended <- err
			return
		}
		<-ctx.Done()
		ended <- nil
	}()
	return ended
}

// recover restores the pods from the records. A pod that the provider had not accepted before the plugin ended
// is forgotten: its sender got no answer and will ask again.
func (p *pods) recover(ctx context.Context) error {
	records, err := p.store.read(ctx)
	if err != nil {
		return err
	}
	have, err := p.list(ctx)
	if err != nil {
		return err
	}
	for _, r := range records {
		there := have[r.Pod.UID]
		if there == nil && !r.Accepted {
			if err := p.store.remove(r.Pod.UID); err != nil {
				return err
			}
			continue
		}
		r.Accepted = r.Accepted || r.Deleted == nil
		k := &pod{record: r, before: there == nil}
		if there != nil {
			k.status = *there.Status.DeepCopy()
		}
		p.mu.Lock()
		p.all[r.Pod.UID] = k
		p.mu.Unlock()
		p.objects.add(&r, p.given(r.Pod))
		if _, ok := p.provider.(node.PodObjectsUser); ok && there != nil {
			if err := p.provider.UpdatePod(ctx, p.given(r.Pod)); err != nil && !errdefs.IsNotFound(err) {
				log.G(ctx).WithError(err).WithField("pod", r.Pod.Namespace+"/"+r.Pod.Name).Warn("The provider does not take up the pod")
			}
		}
		if k.Deleted != nil {
			p.working.Go(func() { p.stop(k) })
		}
	}
	return nil
}

// keep refreshes the pods until ctx ends.
func (p *pods) keep(ctx context.Context) {
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		err := p.refresh(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			log.G(ctx).WithError(err).Warn("The provider does not tell which pods it has")
		}
		failing = err != nil
	}
}
