// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	stdslog "log/slog"
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtual-kubelet/virtual-kubelet/cli/internal/doctor"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

func (p Program) doctorCommand(o *options) *cobra.Command {
	var (
		output, admin string
		timeout       time.Duration
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out why a node with these settings does not work, and what to do about it",
		Long: "Find out why a node with these settings does not work, and what to do about it.\n\n" +
			"Give it the settings of the node, before the node runs or beside it. It changes nothing in the cluster and nothing\n" +
			"at the backend. The exit code is 0 if nothing is wrong or there are warnings only, 1 if something is, and 2 if a check itself failed.",
		Args: usageArguments(noArguments("")),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return exitError{2, fmt.Errorf("--output %q: want text or json", output)}
			}
			c := p.examine(o, cmd)
			c.AdminKubeconfig, c.Timeout = admin, timeout
			report := doctor.Run(cmd.Context(), c)
			write := report.Text
			if output == "json" {
				write = report.JSON
			}
			if err := write(cmd.OutOrStdout()); err != nil {
				return exitError{2, fmt.Errorf("write the report: %w", err)}
			}
			if code := report.ExitCode(); code != 0 {
				return exitError{code: code}
			}
			return nil
		},
	}
	cmd.SetFlagErrorFunc(usageFlagError)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "`format` of the report: text or json")
	cmd.Flags().StringVar(&admin, "admin-kubeconfig", "", "kubeconfig `file` of a user with permission for nodes/proxy and to list DaemonSets, to try the connection from the API server to the node and to look for DaemonSets whose pods cannot run there")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "how long each check may take")
	return cmd
}

// examine returns the configuration of the doctor. If settings are wrong, it has the valid ones.
func (p Program) examine(o *options, cmd *cobra.Command) doctor.Config {
	setKlogHandler(stdslog.DiscardHandler) // the report already has the failed requests of the Kubernetes libraries
	r, err := o.resolve(cmd.Root().PersistentFlags(), os.Getenv)
	c := doctor.Config{Problems: r.problems(err)}
	if r == nil {
		return c
	}
	c.NodeName, c.NodeIP, c.Kubeconfig, c.BootstrapKubeconfig = o.NodeName, o.NodeIP, o.Kubeconfig, o.BootstrapKubeconfig
	c.KubeContext = o.KubeContext
	c.RequestsCertificate, c.CertDir, c.ManyNodes, c.SharesNodes = o.ServerTLSBootstrap, o.CertDir, len(o.nodeNames) > 0, o.ShareNodes != ""
	if len(o.nodeNames) > 0 {
		c.NodeName = o.nodeNames[0] // all nodes have the same settings
	}
	c.Serve, c.ListenAddress, c.Port = !o.DisableKubeletAPI, o.ListenAddress, o.Port
	c.CertFile, c.KeyFile, c.ClientCAFile, c.NoAuthentication = o.TLSCertFile, o.TLSPrivateKeyFile, o.ClientCAFile, o.NoAuthentication
	chosen, err := choose(p.Providers, o.Provider)
	if err != nil {
		c.Problems = append(c.Problems, doctor.Problem{Err: err, From: r.origins["provider"]})
		return c
	}
	c.Node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.NodeName, Labels: nodeutil.NodeLabels(c.NodeName)}}
	o.describe(c.Node, chosen.Name, p.kubeletVersion())
	if chosen.Capabilities != nil {
		if declared, err := chosen.Capabilities(o.ProviderConfig); err == nil { // the check of the provider reports an error
			declared = o.accept(declared)
			c.Declared = &declared
		}
	}
	c.Provider = func(ctx context.Context, client kubernetes.Interface) (doctor.Pinger, error) {
		return o.pinger(ctx, client, chosen, c.NodeName, p.kubeletVersion())
	}
	return c
}

// examined is a Pinger that calls an Examiner.
type examined struct{ Examiner }

// Ping implements doctor.Pinger.
func (e examined) Ping(ctx context.Context) error { return e.Examine(ctx) }

// pinger makes the provider as for a run. The provider sees an empty cluster that has only the Service of the API server, which identifies
// the cluster.
func (o *options) pinger(ctx context.Context, client kubernetes.Interface, p Provider, name, version string) (doctor.Pinger, error) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	o.describe(n, p.Name, version)
	nothing := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	made, pinger, err := o.newProvider(ctx, p)(nodeutil.ProviderConfig{
		Pods:       corev1listers.NewPodLister(nothing),
		ConfigMaps: corev1listers.NewConfigMapLister(nothing),
		Secrets:    corev1listers.NewSecretLister(nothing),
		Services:   corev1listers.NewServiceLister(servicesOfAPI(ctx, client)),
		Node:       n,
	})
	if err != nil {
		return nil, err
	}
	var asked doctor.Pinger
	if e, ok := made.(Examiner); ok {
		asked = examined{e}
	} else if pinger != nil {
		asked = pinger
	}
	if a, ok := made.(Adviser); ok {
		asked = advised{asked, a}
	}
	return asked, nil
}

// advised is a Pinger that is also an Adviser.
type advised struct {
	doctor.Pinger // nil if the provider has no Ping
	adviser       Adviser
}

// Ping implements doctor.Pinger.
func (a advised) Ping(ctx context.Context) error {
	if a.Pinger == nil {
		return nil
	}
	return a.Pinger.Ping(ctx)
}

// Advise implements doctor.Adviser.
func (a advised) Advise(ctx context.Context) (versions []string, advice []doctor.Advice) {
	versions, said := a.adviser.Advise(ctx)
	for _, one := range said {
		advice = append(advice, doctor.Advice(one))
	}
	return versions, advice
}

// servicesOfAPI returns an indexer with only the Service of the API server; providers identify the cluster by the UID of this Service. It
// is empty if the API server does not answer.
func servicesOfAPI(ctx context.Context, client kubernetes.Interface) cache.Indexer {
	found := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if client == nil {
		return found
	}
	list, err := client.CoreV1().Services(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=kubernetes"})
	if err != nil {
		return found
	}
	for i := range list.Items {
		_ = found.Add(&list.Items[i]) // cannot fail: the object has a name
	}
	return found
}

var flagInError = regexp.MustCompile(`^--([a-z0-9.-]+)`)

// problems splits the joined errors of the settings into single problems.
func (r *resolved) problems(err error) (list []doctor.Problem) {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			list = append(list, r.problems(one)...)
		}
		return list
	}
	problem := doctor.Problem{Err: err}
	if m := flagInError.FindStringSubmatch(err.Error()); m != nil && r != nil {
		if origin := r.origins[m[1]]; origin != "default" {
			problem.From = origin
		}
	}
	return append(list, problem)
}
