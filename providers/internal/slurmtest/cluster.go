// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package slurmtest starts a Slurm for tests, from Debian's packages slurm-wlm and munge: a controller and several nodes on one machine, with their
// own directories, ports and key.
//
// The guarantee: all its processes have ended and all its files are removed after the test. It cancels the jobs first, and then ends each daemon by
// its process ID.
//
// Note: the number of CPUs of the nodes is independent of the machine. Jobs run as the user of the test. The user must be root.
package slurmtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Options describe the cluster. The zero value is two nodes of 64 CPUs in the partitions main and other.
type Options struct {
	// Nodes is the number of nodes, with the names n1 and so on. Default 2. Only the last node is in the
	// partition other.
	Nodes int
	// CPUs and Megabytes are the size of each node. Default 64 and 16000.
	CPUs, Megabytes int
	// GPUs is the number of fake GPU devices of each node.
	GPUs int
	// Env are variables of jobs: each has the path of the file of its name in the directory of the cluster.
	Env []string
	// Extra are further lines of slurm.conf.
	Extra string
	// Others allows users other than root to submit jobs.
	Others bool
	// REST turns on tokens, for StartREST.
	REST bool
}

// Cluster is a running Slurm.
type Cluster struct {
	// Conf is its slurm.conf, Dir its directory, Shared a directory in it for jobs.
	Conf, Dir, Shared string

	options Options
	munged  *exec.Cmd
	control *exec.Cmd
	nodes   map[string]*exec.Cmd
}

// Available returns the reason why no cluster can be started here; or nil.
func Available() error {
	for _, program := range []string{"slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo", "munged"} {
		if _, err := findProgram(program); err != nil {
			return fmt.Errorf("%s is not installed: apt-get install slurm-wlm munge", program)
		}
	}
	if os.Geteuid() != 0 {
		return errors.New("a private Slurm is started by root only")
	}
	return nil
}

func findProgram(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + program)
}

// Program returns the path of a program of Slurm. Without it the test is skipped, or fails if VK_REQUIRE_SLURM is 1.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := findProgram(name)
	if err != nil {
		skipTest(t, err)
	}
	return path
}

// Start starts a cluster for the duration of the test. Without Slurm or a part that the options need, the test is skipped, or fails if
// VK_REQUIRE_SLURM is 1.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	if err := Available(); err != nil {
		skipTest(t, err)
	}
	if options.REST {
		if err := findREST(); err != nil {
			skipTest(t, err)
		}
	}
	c, err := openCluster(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.start(t.Context()); err != nil {
		t.Fatalf("start Slurm: %v\n%s", err, c.logTail())
	}
	return c
}

func openCluster(o Options) (*Cluster, error) {
	if o.Nodes == 0 {
		o.Nodes = 2
	}
	if o.CPUs == 0 {
		o.CPUs = 64
	}
	if o.Megabytes == 0 {
		o.Megabytes = 16000
	}
	dir, err := os.MkdirTemp("/var/tmp", "slurm-") // a short path, because it holds sockets; containers have a different /tmp
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, Conf: filepath.Join(dir, "slurm.conf"), Shared: filepath.Join(dir, "shared"), options: o, nodes: map[string]*exec.Cmd{}}
	for _, sub := range []string{"control", "shared", "spool", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	key := make([]byte, 128)
	_, _ = rand.Read(key) // rand.Read never fails
	if err := os.WriteFile(filepath.Join(dir, "munge.key"), key, 0o600); err != nil {
		return nil, err
	}
	// Files left by killed jobs in their TMPDIR are removed with the cluster.
	prolog := "#!/bin/sh\necho export TMPDIR=" + dir + "/tmp\n"
	for _, name := range o.Env {
		prolog += "echo export " + name + "=" + dir + "/" + name + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "prolog"), []byte(prolog), 0o755); err != nil { //nolint:gosec // a program must be executable
		return nil, err
	}
	text, err := c.slurmConf()
	if err != nil {
		return nil, err
	}
	if o.Others || o.REST { // other users read the configuration, and their jobs have a TMPDIR
		if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Join(dir, "spool"), 0o755), os.Chmod(filepath.Join(dir, "tmp"), 0o777|os.ModeSticky)); err != nil { //nolint:gosec // secrets inside have modes of their own
			return nil, err
		}
	}
	return c, os.WriteFile(c.Conf, []byte(text), 0o644) //nolint:gosec // the file has no secrets
}

// slurmConf returns slurm.conf. The timeouts are long, because by default the controller ends a job as NODE_FAIL if a busy node does not know the job
// 10 s after its start.
func (c *Cluster) slurmConf() (string, error) {
	ports, err := freePorts(c.options.Nodes + 1)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, `ClusterName=test
SlurmctldHost=localhost
SlurmctldPort=%[2]d
AuthType=auth/munge
AuthInfo=socket=%[1]s/munge
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=%[1]s/control
SlurmctldPidFile=%[1]s/control.pid
SlurmdPidFile=%[1]s/%%n.pid
SlurmdSpoolDir=%[1]s/spool/%%n
SlurmctldLogFile=%[1]s/control.log
TaskProlog=%[1]s/prolog
SlurmdLogFile=%[1]s/%%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/linux
KillWait=10
MinJobAge=300
SlurmdTimeout=300
BatchStartTimeout=300
CommunicationParameters=NoCtldInAddrAny
`, c.Dir, ports[0])
	gres := ""
	if c.options.GPUs > 0 {
		b.WriteString("GresTypes=gpu\n")
		gres = fmt.Sprintf(" Gres=gpu:%d", c.options.GPUs)
		for i := range c.options.GPUs { // a device like any other
			if err := syscall.Mknod(fmt.Sprintf("%s/gpu%d", c.Dir, i), syscall.S_IFCHR|0o600, 1<<8|3); err != nil {
				return "", err
			}
		}
		devices := fmt.Sprintf("Name=gpu File=%s/gpu[0-%d]\n", c.Dir, c.options.GPUs-1)
		if err := os.WriteFile(filepath.Join(c.Dir, "gres.conf"), []byte(devices), 0o644); err != nil { //nolint:gosec // the file has no secrets
			return "", err
		}
	}
	if c.options.REST {
		fmt.Fprintf(&b, "AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=%s/jwt.key\n", c.Dir)
		key := make([]byte, 32)
		_, _ = rand.Read(key) // rand.Read never fails
		if err := os.WriteFile(filepath.Join(c.Dir, "jwt.key"), key, 0o600); err != nil {
			return "", err
		}
	}
	b.WriteString(c.options.Extra)
	for i := range c.options.Nodes {
		fmt.Fprintf(&b, "NodeName=n%d NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d CPUs=%d RealMemory=%d%s\n", i+1, ports[i+1], c.options.CPUs, c.options.Megabytes, gres)
	}
	fmt.Fprintf(&b, "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\nPartitionName=other Nodes=n%d MaxTime=INFINITE State=UP\n", c.options.Nodes)
	return b.String(), nil
}

// freePorts returns free ports.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a bind on this machine does not block
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// startDaemon starts a program in the foreground.
func (c *Cluster) startDaemon(program string, args ...string) (*exec.Cmd, error) {
	path, err := findProgram(program)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...) //nolint:noctx // the cluster ends the process by its process ID
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_CONF=" + c.Conf}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, cmd.Start()
}

func (c *Cluster) start(ctx context.Context) (err error) {
	c.munged, err = c.startDaemon("munged", "--foreground", "--force", "--num-threads=2", "--key-file="+c.Dir+"/munge.key", "--socket="+c.Dir+"/munge",
		"--pid-file="+c.Dir+"/munge.pid", "--seed-file="+c.Dir+"/munge.seed", "--log-file="+c.Dir+"/munge.log")
	if err != nil {
		return err
	}
	err = awaitReady(ctx, "munged", func() bool { _, err := os.Stat(c.Dir + "/munge"); return err == nil })
	if err == nil {
		err = c.StartController(ctx)
	}
	for i := range c.options.Nodes {
		if err == nil {
			err = c.StartNode(fmt.Sprintf("n%d", i+1))
		}
	}
	if err != nil {
		return err
	}
	return c.AwaitNodes(ctx)
}

// StartController starts the controller, and waits until it answers.
func (c *Cluster) StartController(ctx context.Context) (err error) {
	if c.control, err = c.startDaemon("slurmctld", "-D", "-f", c.Conf); err != nil {
		return err
	}
	return awaitReady(ctx, "slurmctld", func() bool { _, err := c.Run(ctx, "squeue"); return err == nil })
}

// StopController kills the controller. Jobs continue.
func (c *Cluster) StopController() { endDaemon(c.control, syscall.SIGKILL) }

// StartNode starts the daemon of a node.
func (c *Cluster) StartNode(name string) (err error) {
	c.nodes[name], err = c.startDaemon("slurmd", "-D", "-N", name, "-f", c.Conf)
	return err
}

// KillNode kills the daemon of a node, as when the machine is lost. The processes of its jobs continue until the test ends.
func (c *Cluster) KillNode(name string) { endDaemon(c.nodes[name], syscall.SIGKILL) }

// AwaitNodes waits until all nodes can take jobs.
func (c *Cluster) AwaitNodes(ctx context.Context) error {
	return awaitReady(ctx, "nodes", func() bool {
		out, err := c.Run(ctx, "sinfo", "--noheader", "--Node", "--partition=main", "--format=%T")
		n := strings.Count(out, "idle") + strings.Count(out, "mixed") + strings.Count(out, "allocated")
		return err == nil && n == c.options.Nodes && !strings.Contains(out, "*")
	})
}

// Run runs a command of Slurm.
func (c *Cluster) Run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_CONF=" + c.Conf}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return string(out), err
}

const patience = 30 * time.Second

// awaitReady waits until ok returns true.
func awaitReady(ctx context.Context, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not ready after %s", what, patience)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// endDaemon ends a daemon.
func endDaemon(cmd *exec.Cmd, sig syscall.Signal) {
	if cmd == nil || cmd.Process == nil || cmd.ProcessState != nil {
		return
	}
	_ = cmd.Process.Signal(sig)
	_ = cmd.Wait()
}

// close cancels all jobs, ends the daemons, and removes their files.
func (c *Cluster) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, state := range []string{"PENDING", "RUNNING", "SUSPENDED"} { // of every user
		_, _ = c.Run(ctx, "scancel", "--signal=KILL", "--full", "--state="+state) // the daemons may be gone
		_, _ = c.Run(ctx, "scancel", "--state="+state)
	}
	_ = awaitReady(ctx, "jobs", func() bool {
		out, err := c.Run(ctx, "squeue", "--noheader", "--all", "--format=%i")
		return err != nil || strings.TrimSpace(out) == ""
	})
	for _, n := range c.nodes {
		endDaemon(n, syscall.SIGTERM)
	}
	endDaemon(c.control, syscall.SIGTERM)
	endDaemon(c.munged, syscall.SIGTERM)
	c.killSteps()
	left, _ := os.ReadDir(filepath.Join(c.Dir, "tmp"))
	for _, e := range left {
		_ = os.RemoveAll(filepath.Join("/dev/shm", e.Name())) // killed jobs leave a directory of the same name there
	}
	return os.RemoveAll(c.Dir)
}

// killSteps kills the remaining processes on killed nodes, because no other process ends them: supervisors of
// steps, which have known open files, and programs of jobs in the cluster's directory.
func (c *Cluster) killSteps() {
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, path := range names {
		process := filepath.Dir(path)
		links := []string{filepath.Join(process, "exe")}
		if name, _ := os.ReadFile(path); strings.TrimSpace(string(name)) == "slurmstepd" {
			links, _ = filepath.Glob(filepath.Join(process, "fd", "*"))
		}
		if !slices.ContainsFunc(links, func(link string) bool {
			to, _ := os.Readlink(link)
			return strings.HasPrefix(to, c.Dir+"/")
		}) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// logTail returns the last lines of the daemons' logs.
func (c *Cluster) logTail() string {
	var b strings.Builder
	logs, _ := filepath.Glob(filepath.Join(c.Dir, "*.log"))
	for _, path := range logs {
		data, _ := os.ReadFile(path)
		fmt.Fprintf(&b, "%s:\n%s\n", filepath.Base(path), data[max(0, len(data)-2000):])
	}
	return b.String()
}
