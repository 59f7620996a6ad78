// SPDX-License-Identifier: Apache-2.0

package nodeutil

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/localpath"
	"github.com/virtual-kubelet/virtual-kubelet/internal/providercall"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// VolumeProvisioner is an optional ability of a provider that can store PersistentVolumes on its machine. The node creates a volume for
// each claim that the scheduler assigns to it, if the StorageClass has the provisioner virtual-kubelet.io/local-path. It removes the volume
// when the volume is released. This needs permissions that nodes do not have by default: the rules of deploy/manifests/provisioner.yaml.
type VolumeProvisioner interface {
	// ProvisionsVolumes reports whether the node should provision volumes. It is called once, before the node runs.
	ProvisionsVolumes() bool
	// MakeVolume makes an empty directory for the volume name, writable for every user, and returns its path. It leaves an existing
	// directory as it is.
	MakeVolume(ctx context.Context, name string) (path string, err error)
	// RemoveVolume removes the directory with all its content. It is called again after an error. It returns nil for a missing directory.
	RemoveVolume(ctx context.Context, name string) error
}

// startProvisioner starts the provisioner, if the provider supports it.
func (n *Node) startProvisioner(p *parts) {
	if provisioner, ok := n.provider.(VolumeProvisioner); ok && provisioner.ProvisionsVolumes() {
		p.start("volume provisioner", func(ctx context.Context) error { return n.provision(ctx, provisioner) })
	}
}

// provision makes and removes volumes until ctx ends. It begins when the node is registered: before that, it is
// unknown whether this process acts for the node.
func (n *Node) provision(ctx context.Context, provisioner VolumeProvisioner) error {
	select {
	case <-n.node.Ready():
	case <-ctx.Done():
		return nil
	}
	hostname := n.cfg.NodeSpec.Labels[corev1.LabelHostname]
	if hostname == "" {
		hostname = n.name
	}
	log.G(ctx).Info("making PersistentVolumes for claims of StorageClasses with the provisioner " + localpath.Driver)
	return localpath.New(localpath.Config{
		Client: n.clients.main, Watches: n.clients.watches, Node: n.name, Hostname: hostname, Recorder: n.recorder(n.name + "/local-path"),
		StandsBy: func() bool { _, yes := n.node.StandsBy(); return yes },
		Make: func(ctx context.Context, name string) (path string, err error) {
			err = (&providercall.Caller{}).Do(ctx, "MakeVolume", func(ctx context.Context) (err error) {
				path, err = provisioner.MakeVolume(ctx, name)
				return err
			})
			return path, err
		},
		Remove: func(ctx context.Context, name string) error {
			return (&providercall.Caller{}).Do(ctx, "RemoveVolume", func(ctx context.Context) error { return provisioner.RemoveVolume(ctx, name) })
		},
	}).Run(ctx)
}
