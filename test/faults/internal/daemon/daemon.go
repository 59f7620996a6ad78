// SPDX-License-Identifier: Apache-2.0

// Package daemon is a small virtual-kubelet, made of the public library, with a client of package backend as its
// provider. Test binaries run it as another process: they start themselves again with Variable set.
//
// The guarantee: only the provider and the points of failure are special to tests.
//
// Note: it writes "ready" to its standard output when the node is ready, and its log to its standard
// error.
package daemon

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	slogadapter "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/test/faults/internal/backend"
	"github.com/virtual-kubelet/virtual-kubelet/test/faults/internal/failpoint"
)

// Variable is the environment variable for making a test binary the daemon.
const Variable = "VK_FAULT_DAEMON"

// Flags are the daemon's.
type Flags struct {
	Kubeconfig, NodeName      string
	Socket                    string // of the backend
	Inspect                   string // the socket at which the daemon reports its state
	CertFile, KeyFile, CAFile string // of its server; without the first there is none
	// Nodes are the nodes instead of NodeName, as patterns, and Share is the group of daemons with these nodes.
	Nodes, Share string
	// Complete means that the provider reports its answers as complete, as a provider that asks the backend
	// itself may do.
	Complete bool
}

// Args returns the command line with the flags.
func (f Flags) Args() []string {
	return []string{
		"-kubeconfig=" + f.Kubeconfig, "-nodename=" + f.NodeName, "-socket=" + f.Socket, "-inspect=" + f.Inspect,
		"-cert=" + f.CertFile, "-key=" + f.KeyFile, "-ca=" + f.CAFile,
		"-nodes=" + f.Nodes, "-share=" + f.Share, fmt.Sprintf("-complete=%t", f.Complete),
	}
}

func parseFlags(args []string) (f Flags, err error) {
	set := flag.NewFlagSet("daemon", flag.ContinueOnError)
	set.StringVar(&f.Kubeconfig, "kubeconfig", "", "kubeconfig `file`")
	set.StringVar(&f.NodeName, "nodename", "", "`name` of the node")
	set.StringVar(&f.Socket, "socket", "", "`socket` of the backend")
	set.StringVar(&f.Inspect, "inspect", "", "`socket` at which to be inspected")
	set.StringVar(&f.CertFile, "cert", "", "serving certificate `file`")
	set.StringVar(&f.KeyFile, "key", "", "its key `file`")
	set.StringVar(&f.CAFile, "ca", "", "`file` with the authority of client certificates")
	set.StringVar(&f.Nodes, "nodes", "", "`names` of the nodes")
	set.StringVar(&f.Share, "share", "", "`name` of the group that shares them")
	set.BoolVar(&f.Complete, "complete", false, "the provider knows that its answers are complete")
	err = set.Parse(args)
	return f, err
}

// Main runs the daemon if Variable is set, and does not return then.
func Main() {
	if os.Getenv(Variable) == "" {
		return
	}
	klog.SetLogger(klog.New(nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := runNode(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runNode runs the node until ctx ends.
func runNode(ctx context.Context, args []string) error {
	flags, err := parseFlags(args)
	if err != nil {
		return err
	}
	plan, err := failpoint.FromEnvironment()
	if err != nil {
		return err
	}
	ctx = log.WithLogger(ctx, slogadapter.FromSlog(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	inspected, err := serveInspection(flags.Inspect)
	if err != nil {
		return err
	}
	defer inspected.Close()
	n, err := newNode(flags, plan)
	if err != nil {
		return err
	}
	go func() {
		if n.WaitReady(ctx, 0) == nil {
			_, _ = os.Stdout.WriteString("ready\n")
		}
	}()
	return n.Run(ctx)
}

// runner is a node, or many.
type runner interface {
	Run(ctx context.Context) error
	WaitReady(ctx context.Context, timeout time.Duration) error
}

func newNode(flags Flags, plan *failpoint.Plan) (runner, error) {
	config, err := clientcmd.BuildConfigFromFlags("", flags.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 500, 1000 // the tests' churn is more than a kubelet's limits allow
	config.Wrap(plan.Transport)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	all := backend.NewClient(flags.Socket)
	provider := func(cfg nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		describeNode(cfg.Node)
		c := all
		if flags.Nodes != "" {
			c = all.Of(cfg.Node.Name)
		}
		p := plan.Provider(c)
		if flags.Complete {
			p = complete{p}
		}
		return p, &health{client: c, node: cfg.Node}, nil
	}
	opts := []nodeutil.NodeOpt{
		nodeutil.WithClient(client),
		func(cfg *nodeutil.NodeConfig) error { cfg.NumWorkers = 10; return nil },
	}
	opts = append(opts, serverOptions(flags)...)
	if flags.Nodes == "" {
		return nodeutil.NewNode(flags.NodeName, provider, opts...)
	}
	names, err := nodeutil.NodeNames(flags.Nodes)
	if err != nil {
		return nil, err
	}
	share := func(cfg *nodeutil.NodeConfig) error { cfg.ShareNodes = flags.Share; return nil }
	return nodeutil.NewFleet(names, provider, append(opts, share)...)
}

// complete is a provider with complete answers.
type complete struct{ failpoint.Notifying }

// AnswersForAllPods reports the answers as complete.
func (complete) AnswersForAllPods() bool { return true }

// serverOptions returns the options of the node's server.
func serverOptions(flags Flags) []nodeutil.NodeOpt {
	if flags.CertFile == "" {
		return nil
	}
	mux := http.NewServeMux()
	return []nodeutil.NodeOpt{
		nodeutil.WithTLSConfig(nodeutil.WithKeyPairFromPath(flags.CertFile, flags.KeyFile), nodeutil.WithCAFromPath(flags.CAFile)),
		nodeutil.AttachProviderRoutes(mux),
		func(cfg *nodeutil.NodeConfig) error {
			cfg.HTTPListenAddr, cfg.Handler = "127.0.0.1:0", mux
			return nil
		},
	}
}

// describeNode gives the node enough capacity for all pods.
func describeNode(n *corev1.Node) {
	n.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1k"),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   resource.MustParse("10k"),
	}
	n.Status.Allocatable = n.Status.Capacity
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		c.Status = corev1.ConditionFalse
		if c.Type == corev1.NodeReady {
			c.Status, c.Reason = corev1.ConditionTrue, "KubeletReady"
		}
	}
}

// health is the node's provider: it is as healthy as the backend.
type health struct {
	client *backend.Client
	node   *corev1.Node
}

// Ping asks the backend.
func (h *health) Ping(ctx context.Context) error { return h.client.Ping(ctx) }

// NotifyNodeStatus reports the node as ready. It never becomes unready.
func (h *health) NotifyNodeStatus(_ context.Context, notify func(*corev1.Node)) {
	notify(h.node.DeepCopy())
}
