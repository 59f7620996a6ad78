// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	cluster  = "demo"
	nodeName = "virtual-node"
	podName  = "first"
)

// demo is one run.
type demo struct {
	version, provider, config string
	// node, devcluster and emulate are programs, image is the image of the first pod; "" if the provider needs no image.
	node, devcluster, emulate, image string
	out                              io.Writer

	dir      string // of all files of the run
	children []*child
	// fail ends the run.
	fail   context.CancelCauseFunc
	client kubernetes.Interface
	// environment and options belong to the node.
	environment, options []string
}

// run runs the demo until ctx ends. It returns nil if ctx ends.
func (d *demo) run(parent context.Context) (err error) {
	runtime.LockOSThread() // the end of this thread would end the processes that it has started
	defer runtime.UnlockOSThread()
	// A second signal must not end this program while the node stops its pods, because the kernel would then end the node at once.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(ignored)
	if d.dir, err = os.MkdirTemp("", "virtual-kubelet-demo-"); err != nil {
		return err
	}
	var ctx context.Context
	ctx, d.fail = context.WithCancelCause(parent)
	defer d.fail(nil)
	defer func() {
		err = errors.Join(err, d.cleanUp())
		if err == nil {
			d.say("everything is stopped and removed")
		}
	}()
	for _, step := range []func(context.Context) error{d.startCluster, d.startEmulator, d.startNode, d.runPod} {
		if err := step(ctx); err != nil {
			if parent.Err() != nil {
				return nil // the user stopped it
			}
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
	}
	<-ctx.Done()
	if parent.Err() != nil {
		fmt.Fprintln(d.out, "\nstopping the pods, the node and the cluster, which takes up to a minute")
		return nil
	}
	return context.Cause(ctx)
}

// say reports a completed step.
func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, "✓ "+format+"\n", args...) }

// cleanUp ends the processes, newest first, and removes the files.
func (d *demo) cleanUp() (err error) {
	for _, c := range slices.Backward(d.children) {
		err = errors.Join(err, c.stop())
	}
	// Files of images may be in folders without write permission.
	_ = filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // it is a folder, and the removal reports what is wrong
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(d.dir))
}

// startCluster starts the control plane and makes the credentials of the node.
func (d *demo) startCluster(ctx context.Context) error {
	progress, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer progress.Close()
	defer theirs.Close()
	cmd := d.command(ctx, d.devcluster, "up", "--dir", filepath.Join(d.dir, "cluster"), "--name", cluster, "--exit-with-stdin", "--keep=false", "--progress-fd=3")
	cmd.ExtraFiles = []*os.File{theirs}
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := d.startChild("devcluster", cmd, input); err != nil {
		return err
	}
	if err := theirs.Close(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = progress.Close() }) // it ends the reading
	defer stop()
	if err := awaitReady(progress); err != nil {
		return err
	}
	if out, err := d.command(ctx, d.devcluster, "node-credentials", nodeName, "--dir", filepath.Join(d.dir, "cluster"), "--name", cluster, "--out", filepath.Join(d.dir, "credentials")).CombinedOutput(); err != nil {
		return fmt.Errorf("make credentials of the node: %w: %s", err, out)
	}
	config, err := clientcmd.BuildConfigFromFlags("", d.kubeconfig())
	if err != nil {
		return err
	}
	if d.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	d.say("a cluster is ready")
	return nil
}

// awaitReady reads the progress of a cluster until it is ready.
func awaitReady(progress io.Reader) error {
	for lines := bufio.NewScanner(progress); lines.Scan(); {
		switch word, text, _ := strings.Cut(lines.Text(), " "); word {
		case "ready":
			return nil
		case "error":
			return fmt.Errorf("start the cluster: %s", text)
		}
	}
	return errors.New("start the cluster: the program devcluster ended before it was ready")
}

func (d *demo) kubeconfig() string { return filepath.Join(d.dir, "cluster", cluster, "kubeconfig") }

// command returns a command that outlives ctx, because cleanUp ends it.
func (d *demo) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	return exec.CommandContext(context.WithoutCancel(ctx), program, args...)
}

// startEmulator starts the emulator of the provider, if there is one.
func (d *demo) startEmulator(ctx context.Context) error {
	if d.config != "" {
		d.options = []string{"--provider-config", d.config}
	}
	images := filepath.Join(d.dir, "images")
	if d.hasImage() {
		if err := copyFile(d.image, filepath.Join(images, imageFile)); err != nil {
			return err
		}
	}
	if d.provider == "process" && d.config == "" {
		file := filepath.Join(d.dir, "process.yaml")
		d.options = []string{"--provider-config", file}
		return os.WriteFile(file, fmt.Appendf(nil, "apiVersion: process.virtual-kubelet.io/v1alpha1\nkind: ProcessProviderConfiguration\nstateDir: %s\nimages: [%s]\n",
			filepath.Join(d.dir, "process"), images), 0o600)
	}
	if !d.isEmulated() {
		return nil
	}
	dir := filepath.Join(d.dir, "emulator")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := d.startChild("emulate", d.command(ctx, d.emulate, "-service", d.provider, "-dir", dir, "-images", images), nil); err != nil {
		return err
	}
	file := filepath.Join(dir, "provider.yaml") // the emulator writes this file when it listens
	if err := awaitTrue(ctx, time.Minute, "the emulator listens", func(context.Context) bool { return isFile(file) }); err != nil {
		return err
	}
	variables, err := os.ReadFile(filepath.Join(dir, "provider.env"))
	if err != nil {
		return err
	}
	d.environment, d.options = strings.Fields(string(variables)), []string{"--provider-config", file}
	d.say("an emulator of %s runs on this machine", d.provider)
	return nil
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // images are no secrets, and runtimes with other users read them
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// startNode starts the virtual node and waits until it is ready.
func (d *demo) startNode(ctx context.Context) error {
	credentials := filepath.Join(d.dir, "credentials")
	cmd := d.command(ctx, d.node, append([]string{
		"--kubeconfig", filepath.Join(credentials, "kubeconfig"), "--nodename", nodeName, "--provider", d.provider,
		"--disable-taint", "--drain-on-exit", "--drain-timeout", "30s", "--drain-critical-timeout", "5s",
		"--node-ip", "127.0.0.1", "--listen-address", "127.0.0.1", "--port", "0",
		"--tls-cert-file", filepath.Join(credentials, "kubelet.crt"), "--tls-private-key-file", filepath.Join(credentials, "kubelet.key"),
		"--client-ca-file", filepath.Join(credentials, "ca.crt"),
	}, d.options...)...)
	cmd.Env = append(d.userEnvironment(), d.environment...)
	if err := d.startChild("virtual-kubelet", cmd, nil); err != nil {
		return err
	}
	err := awaitTrue(ctx, time.Minute, "the node is ready", func(ctx context.Context) bool {
		node, err := d.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
	})
	if err != nil {
		return err
	}
	d.say("virtual node %s is ready, with provider %s", nodeName, d.provider)
	return nil
}

// userEnvironment returns the variables of the user for the node. With an emulator, variables of the provider are removed, because they would connect
// the node to the user's own account.
func (d *demo) userEnvironment() []string {
	if !d.isEmulated() {
		return os.Environ()
	}
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !slices.Contains([]string{"PATH", "HOME", "USER", "LANG", "TMPDIR", "XDG_RUNTIME_DIR"}, name)
	})
}

// awaitTrue waits until a condition is true.
func awaitTrue(ctx context.Context, patience time.Duration, what string, is func(context.Context) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("after %s it is not true that %s", patience, what))
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !is(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// runPod runs a first pod, shows it, and prints the next steps.
func (d *demo) runPod(ctx context.Context) error {
	if err := d.prepareAccount(ctx); err != nil {
		return err
	}
	if _, err := d.client.CoreV1().Pods("default").Create(ctx, d.firstPod(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the first pod: %w", err)
	}
	waits := "it has no status"
	err := awaitTrue(ctx, time.Minute, "pod "+podName+" runs", func(ctx context.Context) bool {
		pod, err := d.client.CoreV1().Pods("default").Get(ctx, podName, metav1.GetOptions{})
		if err != nil {
			return false
		}
		waits = fmt.Sprintf("its phase is %s. %s", pod.Status.Phase, pod.Status.Message)
		for _, s := range pod.Status.ContainerStatuses {
			if s.State.Waiting != nil {
				waits += " " + s.State.Waiting.Reason + " " + s.State.Waiting.Message
			}
		}
		return pod.Status.Phase == corev1.PodRunning
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, waits)
	}
	d.say("pod %s is running\n", podName)
	if err := d.kubectl(ctx, "get", "nodes,pods", "-o", "wide"); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nGo on in another terminal:\n  export KUBECONFIG=%s\n  alias kubectl='%s kubectl --dir %s --name %s'    # if you have no kubectl\n  kubectl logs %s\n  kubectl create deployment web --image=%s --replicas=3%s\nCtrl-C stops and removes everything.\n",
		d.kubeconfig(), d.devcluster, filepath.Join(d.dir, "cluster"), cluster, podName, d.imageName(), d.imageCommand())
	return nil
}

// kubectl runs kubectl and shows its output.
func (d *demo) kubectl(ctx context.Context, args ...string) error {
	cmd := d.command(ctx, d.devcluster, append([]string{"kubectl", "--dir", filepath.Join(d.dir, "cluster"), "--name", cluster}, args...)...)
	cmd.Stdout, cmd.Stderr = d.out, d.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// prepareAccount waits for the service account of pods. Workloads of StackPath have no files, so their pods have no token.
func (d *demo) prepareAccount(ctx context.Context) error {
	accounts := d.client.CoreV1().ServiceAccounts("default")
	return awaitTrue(ctx, time.Minute, "the namespace has its service account", func(ctx context.Context) bool {
		account, err := accounts.Get(ctx, "default", metav1.GetOptions{})
		if err != nil || d.provider != "stackpath" {
			return err == nil
		}
		account.AutomountServiceAccountToken = new(false)
		_, err = accounts.Update(ctx, account, metav1.UpdateOptions{})
		return err == nil
	})
}

// imageName returns the image of a pod that the backend can run.
func (d *demo) imageName() string {
	switch {
	case d.provider == "azurebatch" && d.isEmulated():
		return "none" // the emulator runs programs of this machine
	case d.hasImage():
		return "demo"
	}
	return "busybox"
}

// imageCommand returns the kubectl arguments for a container that keeps running.
func (d *demo) imageCommand() string {
	if d.imageName() == "demo" {
		return ""
	}
	return " -- sleep 1000"
}

// firstPod returns the first pod.
func (d *demo) firstPod() *corev1.Pod {
	c := corev1.Container{Name: "hello", Image: d.imageName(), ImagePullPolicy: corev1.PullIfNotPresent}
	if d.imageName() == "demo" {
		c.Env, c.Ports = []corev1.EnvVar{{Name: "PORT", Value: "8080"}}, []corev1.ContainerPort{{ContainerPort: 8080}}
	} else {
		c.Command = []string{"sh", "-c", "while true; do echo hello; sleep 1; done"}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName},
		Spec:       corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(5)), Containers: []corev1.Container{c}},
	}
}
