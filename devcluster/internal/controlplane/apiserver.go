// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/pki"
)

// apiServer returns kube-apiserver. Its flags are parsed here, so that a wrong flag is an error of the start and
// not of a running cluster.
func apiServer(o Options, etcdServer string) (func(context.Context) error, error) {
	s := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	named := s.Flags()
	for _, set := range named.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(append(apiServerArgs(o, etcdServer), o.APIServerArgs...)); err != nil {
		return nil, fmt.Errorf("parse flags of kube-apiserver: %w", err)
	}
	// This process has already opened the listener: no other process can take the port, and a client that
	// connects early waits in its queue instead of being refused.
	s.SecureServing.Listener = o.Listener
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("set feature gates: %w", err)
	}
	return func(ctx context.Context) error {
		name, err := cache.NewInformerName("kube-apiserver")
		if err != nil {
			return err
		}
		defer name.Release()
		s.InformerName = name
		completed, err := s.Complete(ctx)
		if err != nil {
			return fmt.Errorf("complete flags: %w", err)
		}
		if errs := completed.Validate(); len(errs) != 0 {
			return fmt.Errorf("validate flags: %w", errors.Join(errs...))
		}
		return app.Run(ctx, completed)
	}, nil
}

func apiServerArgs(o Options, etcdServer string) []string {
	dir := o.Dir.PKI()
	address := o.Listener.Addr().(*net.TCPAddr)
	// The service "kubernetes" gets no endpoint if its address would be a loopback address, because endpoints
	// must not have one.
	reconciler := "none"
	if !address.IP.IsLoopback() {
		reconciler = "lease"
	}
	return []string{
		"--bind-address=" + address.IP.String(), "--secure-port=" + strconv.Itoa(address.Port),
		"--advertise-address=" + address.IP.String(), "--endpoint-reconciler-type=" + reconciler,
		"--service-cluster-ip-range=" + serviceRange,
		"--tls-cert-file=" + dir.Cert(pki.APIServer), "--tls-private-key-file=" + dir.Key(pki.APIServer),
		"--client-ca-file=" + dir.Cert(pki.ClusterCA),

		"--etcd-servers=" + etcdServer,
		"--etcd-cafile=" + dir.Cert(pki.EtcdCA),
		"--etcd-certfile=" + dir.Cert(pki.EtcdClient), "--etcd-keyfile=" + dir.Key(pki.EtcdClient),
		"--storage-media-type=application/vnd.kubernetes.protobuf",

		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + dir.PublicKey(pki.ServiceAccount),
		"--service-account-signing-key-file=" + dir.Key(pki.ServiceAccount),

		"--kubelet-certificate-authority=" + dir.Cert(pki.ClusterCA),
		"--kubelet-client-certificate=" + dir.Cert(pki.KubeletClient), "--kubelet-client-key=" + dir.Key(pki.KubeletClient),
		// Nodes run on this machine. A node's Hostname is usually its own name, which cannot be resolved.
		"--kubelet-preferred-address-types=InternalIP,Hostname,InternalDNS,ExternalDNS,ExternalIP",

		"--requestheader-client-ca-file=" + dir.Cert(pki.FrontProxyCA),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + dir.Cert(pki.FrontProxyClient), "--proxy-client-key-file=" + dir.Key(pki.FrontProxyClient),

		"--allow-privileged=true",
		"--shutdown-delay-duration=0s",
		// Without this flag the API server does not end watches when it stops, and waits for them instead.
		"--shutdown-watch-termination-grace-period=500ms",
	}
}
