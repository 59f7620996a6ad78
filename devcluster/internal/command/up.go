// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/controlplane"
	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/loopback"
	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/pki"
	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/state"
)

type upOptions struct {
	*target
	detach        bool
	keep          bool
	address       string
	port          int
	exitWithStdin bool
	progressFD    int
	verbosity     int
	plane         controlplane.Options
}

const upHelp = `Start a cluster, and stop it on SIGINT or SIGTERM.

Data of an earlier start is used again, and so is its port if it is free. With --detach the
cluster goes on in the background when this command returns; "devcluster down" stops it.`

func newUp(t *target) *cobra.Command {
	o := &upOptions{target: t}
	c := &cobra.Command{
		Use: "up", Short: "Start a cluster", Long: upHelp, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.detach {
				return detach(c.Context(), c.OutOrStdout(), o)
			}
			return o.run(c.Context(), c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.BoolVarP(&o.detach, "detach", "d", false, "run in the background; return when the cluster is ready")
	f.BoolVar(&o.keep, "keep", true, "keep the data when the cluster stops; false deletes everything of it")
	f.StringVar(&o.address, "address", loopback.Address, "`IP` address of this machine where the API server serves; pods reach one that is no loopback address as the service \"kubernetes\"")
	f.IntVar(&o.port, "port", 0, "port of the API server; 0 takes the last one or a free one")
	f.BoolVar(&o.plane.ControllerManager, "controller-manager", true, "run kube-controller-manager; without it no default service account is made")
	f.BoolVar(&o.plane.Scheduler, "scheduler", true, "run kube-scheduler")
	f.BoolVar(&o.plane.Durable, "durable", false, "flush every write to the disk, so that data survives a crash of the machine")
	f.StringArrayVar(&o.plane.APIServerArgs, "apiserver-arg", nil, "further `flag` of kube-apiserver, such as --max-requests-inflight=50 (repeatable)")
	f.StringArrayVar(&o.plane.ControllerManagerArgs, "controller-manager-arg", nil, "further `flag` of kube-controller-manager (repeatable)")
	f.StringArrayVar(&o.plane.SchedulerArgs, "scheduler-arg", nil, "further `flag` of kube-scheduler (repeatable)")
	f.IntVarP(&o.verbosity, "verbosity", "v", 0, "how much the components log, 0 to 10")
	f.BoolVar(&o.exitWithStdin, "exit-with-stdin", false, "stop when standard input ends, for programs that start a cluster for themselves")
	f.IntVar(&o.progressFD, "progress-fd", 0, "write lines \"step TEXT\", then \"ready\" or \"error TEXT\", to this open file `descriptor`")
	c.MarkFlagsMutuallyExclusive("detach", "exit-with-stdin") // a detached process has no standard input
	return c
}

// run runs a cluster in this process, from its start to its end.
func (o *upOptions) run(ctx context.Context, out io.Writer) (err error) {
	report := newReporter(out, o.progressFD)
	defer func() { report.end(err) }()

	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if o.exitWithStdin {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go cancelAtEOF(os.Stdin, cancel)
	}

	dir, err := o.dir()
	if err != nil {
		return err
	}
	lock, err := dir.TryLock()
	if errors.Is(err, state.ErrLocked) {
		return o.alreadyRunning(dir)
	}
	if err != nil {
		return err
	}
	defer func() {
		if !o.keep {
			err = errors.Join(err, dir.Delete())
		}
		err = errors.Join(err, lock.Unlock())
	}()

	restore, err := redirectLog(dir.Log(), o.verbosity)
	if err != nil {
		return err
	}
	defer restore()
	return o.serve(ctx, dir, report)
}

// serve prepares the locked directory of this process, and runs the control plane.
func (o *upOptions) serve(ctx context.Context, dir state.Dir, report *reporter) error {
	began := time.Now()
	address := net.ParseIP(o.address)
	if address == nil || address.IsUnspecified() {
		return fmt.Errorf("--address=%s: want one IP address of this machine", o.address)
	}
	made, err := dir.PKI().Ensure()
	if err != nil {
		return err
	}
	if made {
		report.step("certificates made")
	} else {
		report.step("certificates and data of an earlier start found")
	}
	if err := dir.PKI().EnsureServes(address); err != nil {
		return err
	}
	last, _, err := dir.ReadRecord()
	if err != nil {
		return err
	}
	listener, err := loopback.Listen(o.address, o.port, last.Port)
	if err != nil {
		return fmt.Errorf("listen for the API server (another --port may be free, 0 takes one): %w", err)
	}
	server := "https://" + listener.Addr().String()
	if err := writeKubeconfigs(dir, server); err != nil {
		return errors.Join(err, listener.Close())
	}

	o.plane.Dir, o.plane.Listener, o.plane.Step = dir, listener, report.step
	o.plane.Ready = func() error {
		err := dir.WriteRecord(state.Record{
			Server: server, PID: os.Getpid(), Port: listener.Addr().(*net.TCPAddr).Port,
			Kubernetes: controlplane.KubernetesVersion(), Etcd: controlplane.EtcdVersion(), Started: began,
		})
		if err == nil {
			report.ready(o.target, dir)
		}
		return err
	}
	return controlplane.Run(ctx, o.plane)
}

// writeKubeconfigs writes all kubeconfigs at every start, because the port may have changed.
func writeKubeconfigs(dir state.Dir, server string) error {
	for user, path := range map[string]string{
		pki.Admin:             dir.Kubeconfig(),
		pki.ControllerManager: dir.ComponentKubeconfig(pki.ControllerManager),
		pki.Scheduler:         dir.ComponentKubeconfig(pki.Scheduler),
	} {
		k, err := dir.PKI().Kubeconfig("devcluster-"+dir.Name, server, user)
		if err != nil {
			return err
		}
		if err := k.Write(path); err != nil {
			return err
		}
	}
	return pki.Redirect(dir.Nodes(), server)
}

func (o *upOptions) alreadyRunning(dir state.Dir) error {
	pid, err := dir.Holder()
	if err != nil {
		return err
	}
	return fmt.Errorf("cluster %s is already running (pid %d); stop it with: devcluster down%s, or start another one with --name",
		o.name, pid, o.flags())
}

// cancelAtEOF reads and discards its input. Its goroutine ends with the input, or with the process.
func cancelAtEOF(in io.Reader, cancel context.CancelFunc) {
	_, _ = io.Copy(io.Discard, in) // an error also ends the wait
	cancel()
}
