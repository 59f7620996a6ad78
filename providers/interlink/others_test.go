// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interlink

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	kubelet "github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
)

// fieldPrograms names the environment variable with the directory in which `make interlink-field` builds the
// programs of others.
const fieldPrograms = "VK_INTERLINK_FIELD"

// others is interLink's own API server of 2026 with a plugin of other authors.
type others struct {
	url  string
	jobs func() (string, error) // the jobs that are left at the plugin's batch system
}

// startOthers starts the API server and a plugin. The mode is a key of behaviours.
func startOthers(t *testing.T, mode string) *others {
	t.Helper()
	programs := os.Getenv(fieldPrograms)
	if programs == "" {
		t.Skip("programs of others are not built: make interlink-field")
	}
	dir := shortDir(t)
	socket := "unix://" + filepath.Join(dir, "plugin")
	o := &others{}
	switch mode {
	case "slurm":
		o.jobs = startSlurmPlugin(t, programs, dir, socket)
	case "sdk":
		o.jobs = startSDKPlugin(t, programs, dir)
	}
	reached(t, "unix", filepath.Join(dir, "plugin"))
	api := filepath.Join(dir, "api")
	config := filepath.Join(dir, "InterLinkConfig.yaml")
	write(t, config, fmt.Sprintf("InterlinkAddress: unix://%s\nInterlinkPort: \"0\"\nSidecarURL: %s\nSidecarPort: \"0\"\nVerboseLogging: true\nDataRootFolder: %s\n", api, socket, dir))
	run(t, dir, "api", exec.Command(filepath.Join(programs, "interlink-api")), "INTERLINKCONFIGPATH="+config)
	reached(t, "unix", api)
	o.url = "unix://" + api
	return o
}

// run runs a program until the test ends.
func run(t *testing.T, dir, name string, cmd *exec.Cmd, env ...string) {
	t.Helper()
	out, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		out.Close()
		if said, err := os.ReadFile(out.Name()); t.Failed() && err == nil {
			t.Logf("%s, the end of its log:\n%s", name, said[max(0, len(said)-8000):])
		}
	}))
}

// withoutImage is a script that runs the command of a container on the node, without an image.
const withoutImage = `#!/bin/bash
# The arguments are: exec or run, options, an image, a command. What is bound is bound in a layer over the files of the node.
binds=() file=
while [ $# -gt 0 ] && [[ $1 != *://* ]]; do
  case $1 in
  --bind) binds+=("$2"); shift ;;
  --env-file) file=$2; shift ;;
  esac
  shift
done
shift
if [ -n "$file" ]; then set -a; . "$file"; set +a; fi
[ ${#binds[@]} -gt 0 ] || exec "$@"
export BINDS="${binds[*]}"
exec unshare --mount bash -c '
set -e
layer=$(mktemp -d)
mount -t tmpfs none "$layer"
mkdir "$layer/upper" "$layer/work" "$layer/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" "$layer/root"
for dir in proc dev sys; do mount --rbind "/$dir" "$layer/root/$dir"; done
for bind in $BINDS; do
  IFS=: read -r from to mode <<<"$bind"
  to=${to:-$from}
  if [ -d "$from" ]; then dir=$to; else dir=$(dirname "$to"); fi
  chroot "$layer/root" mkdir -p "$dir"
  dir=$layer/root$(chroot "$layer/root" readlink -f "$dir") # /var/run is a link
  if [ -d "$from" ]; then to=$dir; else to=$dir/$(basename "$to"); touch "$to"; fi
  mount --bind "$from" "$to"
  [ "$mode" != ro ] || mount -o remount,bind,ro "$to"
done
unset BINDS
exec chroot "$layer/root" "$@"' bash "$@"
`

// startSlurmPlugin starts interLink's Slurm plugin with a private Slurm.
func startSlurmPlugin(t *testing.T, programs, dir, socket string) (jobs func() (string, error)) {
	c := slurmtest.Start(t, slurmtest.Options{Nodes: 1})
	singularity := filepath.Join(dir, "singularity")
	if err := os.WriteFile(singularity, []byte(withoutImage), 0o755); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	config := filepath.Join(dir, "SlurmConfig.yaml")
	write(t, config, fmt.Sprintf(`Socket: %s
SidecarPort: "4000"
SbatchPath: /usr/bin/sbatch
ScancelPath: /usr/bin/scancel
SqueuePath: /usr/bin/squeue
SinfoPath: /usr/bin/sinfo
CommandPrefix: ""
ImagePrefix: "docker://"
SingularityPath: %s
ExportPodData: true
DataRootFolder: %s/jobs/
Namespace: vk
Tsocks: false
BashPath: /bin/bash
VerboseLogging: true
EnableProbes: true
`, socket, singularity, c.Shared))
	run(t, dir, "plugin", exec.Command(filepath.Join(programs, "slurm-plugin")), "SLURMCONFIGPATH="+config, "SLURM_CONF="+c.Conf, "SHARED_FS=true")
	return func() (string, error) { return c.Run(t.Context(), "squeue", "--noheader", "--states=PENDING,RUNNING") }
}

// startSDKPlugin starts a plugin that we wrote with interLink's SDK for Python.
func startSDKPlugin(t *testing.T, programs, dir string) (jobs func() (string, error)) {
	python, err := os.ReadFile(filepath.Join(programs, "python"))
	if err != nil {
		t.Skip("there is no Python with fastapi, uvicorn and pydantic 2: set INTERLINK_PYTHON")
	}
	left := filepath.Join(dir, "pods")
	words := strings.Fields(string(python))
	cmd := exec.Command(words[0], append(words[1:], "testdata/sdkplugin.py", filepath.Join(dir, "plugin"), left)...)
	run(t, dir, "plugin", cmd, "PYTHONPATH="+filepath.Join(programs, "interlink-plugin-sdk"))
	return func() (string, error) {
		data, err := os.ReadFile(left)
		return strings.TrimSpace(string(data)), err
	}
}

// ofOthers runs a test with each plugin of other authors.
func ofOthers(t *testing.T, test func(t *testing.T, mode string, o *others)) {
	for _, mode := range []string{"slurm", "sdk"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			test(t, mode, startOthers(t, mode))
		})
	}
}

// TestFieldFacts checks that the real programs answer like the double. With VK_INTERLINK_FIELD_WRITE set, it
// writes the facts of the real programs.
func TestFieldFacts(t *testing.T) {
	t.Parallel()
	ofOthers(t, func(t *testing.T, mode string, o *others) {
		c, err := newClient(Config{URL: o.url})
		if err != nil {
			t.Fatal(err)
		}
		f := &outside{Home: remotetest.NewHome(t, "vk-0")}
		got := learn(t, c, [3]*corev1.Pod{f.pod("a", "6000"), f.pod("b", "6000"), f.pod("c", "6000")})
		if os.Getenv("VK_INTERLINK_FIELD_WRITE") != "" {
			data, err := json.MarshalIndent(got, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			write(t, factsFile(mode), string(data)+"\n")
		}
		want, err := factsOf(mode)
		if err != nil || got != want {
			t.Errorf("the real programs answer\n%+v, and answered\n%+v, %v", got, want, err)
		}
	})
}

// fieldNode is a complete node whose pods go to an API server of other authors.
type fieldNode struct {
	*testing.T
	name, namespace string
	provider        *provider
	pods            corev1client.PodInterface
}

// newFieldNode runs a fieldNode until the test ends.
func newFieldNode(t *testing.T, url string) *fieldNode {
	t.Helper()
	api := testapi.Start(t)
	f := &fieldNode{T: t, name: api.NodeName(t), namespace: api.Namespace(t)}
	f.pods = api.Client.CoreV1().Pods(f.namespace)
	n, _ := remotetest.RunNode(t, api, f.name, func(in cli.ProviderInput) (_ remotetest.NodeProvider, err error) {
		f.provider, err = openProvider(in, Config{URL: url})
		return f.provider, err
	})
	if err := n.WaitReady(t.Context(), remotetest.Patience); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fieldNode) create(pod *corev1.Pod) {
	f.Helper()
	if _, err := f.pods.Create(f.Context(), pod, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// until waits until the pod is in a state that ok accepts.
func (f *fieldNode) until(what, name string, ok func(*corev1.Pod) bool) {
	f.Helper()
	remotetest.Until(f.T, name+" "+what, func() (bool, string) {
		pod, err := f.pods.Get(f.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return ok(pod), pod.Status.String()
	})
}

// remove deletes pods and waits until they are gone.
func (f *fieldNode) remove(names []string) {
	f.Helper()
	for _, name := range names {
		if err := f.pods.Delete(f.Context(), name, metav1.DeleteOptions{}); err != nil {
			f.Fatal(err)
		}
	}
	for _, name := range names {
		remotetest.Until(f.T, name+" is gone", func() (bool, string) {
			_, err := f.pods.Get(f.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	}
}

// runsReady reports whether the only container of a pod runs and is ready.
func runsReady(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready
}

// TestFieldPodsRunAndAreGone runs a complete node with the real API server and a real plugin. Three pods of the
// quick start are submitted, run and are gone. A pod that ends has its exit code and its log. No job is left.
func TestFieldPodsRunAndAreGone(t *testing.T) {
	t.Parallel()
	ofOthers(t, func(t *testing.T, _ string, o *others) {
		f := newFieldNode(t, o.url)
		commands := map[string][]string{
			"m1": {"sleep", "600"}, "m2": {"sleep", "600"}, "m3": {"sleep", "600"}, "ends": {"/bin/bash", "-c", "echo hello world; exit 7"},
		}
		for name, command := range commands {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
				NodeName: f.name, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false),
				TerminationGracePeriodSeconds: ptr.To[int64](2), Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{Name: "c", Image: "docker://ubuntu", Command: command}},
			}}
			f.create(pod)
		}
		for _, name := range []string{"m1", "m2", "m3"} {
			f.until("runs", name, runsReady)
		}
		f.until("has failed", "ends", func(pod *corev1.Pod) bool {
			return pod.Status.Phase == corev1.PodFailed && pod.Status.ContainerStatuses[0].State.Terminated.ExitCode == 7
		})
		remotetest.Until(t, "the log is read", func() (bool, string) {
			r, err := f.provider.GetContainerLogs(t.Context(), f.namespace, "ends", "c", kubelet.ContainerLogOpts{})
			if err != nil {
				return false, err.Error()
			}
			defer r.Close()
			said, err := io.ReadAll(r)
			return err == nil && strings.Contains(string(said), "hello world"), fmt.Sprintf("%q, %v", said, err)
		})
		f.remove(slices.Collect(maps.Keys(commands)))
		remotetest.Until(t, "no job is left", func() (bool, string) {
			left, err := o.jobs()
			return err == nil && left == "", fmt.Sprintf("%s %v", left, err)
		})
	})
}

// TestFieldCasesRunAndAreGone runs a complete node with an independent stand-in for an API server and a plugin,
// in each of its modes. The pods of a file run, are submitted once each, and are gone. No job is left.
func TestFieldCasesRunAndAreGone(t *testing.T) {
	t.Parallel()
	cases := os.Getenv("VK_INTERLINK_CASES")
	if cases == "" {
		t.Skip("no folder with mockplugin.py and pods-mock.yaml is named: INTERLINK_CASES=DIR make interlink-field")
	}
	manifest, err := os.ReadFile(filepath.Join(cases, "pods-mock.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range slices.Sorted(maps.Keys(behaviours)) {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address := l.Addr().String()
			_ = l.Close()
			dir := shortDir(t)
			requests := filepath.Join(dir, "requests")
			run(t, dir, "mock", exec.Command("python3", filepath.Join(cases, "mockplugin.py"), mode, strings.TrimPrefix(address, "127.0.0.1:"), requests))
			reached(t, "tcp", address)
			f := newFieldNode(t, "http://"+address)
			var names []string
			begin := time.Now()
			for _, text := range strings.Split(strings.ReplaceAll(string(manifest), "NODE", f.name), "\n---\n") {
				var pod corev1.Pod
				if err := yaml.UnmarshalStrict([]byte(text), &pod); err != nil {
					t.Fatal(err)
				}
				f.create(&pod)
				names = append(names, pod.Name)
			}
			for _, name := range names {
				f.until("runs", name, runsReady)
			}
			run := time.Since(begin)
			begin = time.Now()
			f.remove(names)
			gone := time.Since(begin)
			said, err := os.ReadFile(requests)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				submitted, deleted := strings.Count(string(said), " CREATE "+name+" "), strings.Count(string(said), " DELETE "+name+" ")
				if submitted != 1 || deleted == 0 {
					t.Errorf("pod %s was submitted %d times and deleted %d times, want once and at least once:\n%s", name, submitted, deleted, said)
				}
			}
			plugin, _, _ := strings.Cut(behaviours[mode].source, ":")
			t.Logf("stand-in: | %s | %s | %d of %d in %.0f s | %.0f s |", mode, plugin, len(names), len(names), run.Seconds(), gone.Seconds())
		})
	}
}

// TestDemo runs the API server with the Slurm plugin until it is told to stop, for hack/test-vk-test-set.sh.
func TestDemo(t *testing.T) {
	path := os.Getenv("VK_INTERLINK_DEMO")
	if path == "" {
		t.Skip("this is no test: run hack/test-vk-test-set.sh")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := startOthers(t, "slurm")
	write(t, path, fmt.Sprintf("apiVersion: %s\nkind: %s\nurl: %s\nfeatures: [ExecProbes, NetworkProbes, PostStartHooks, PreStopHooks]\n", APIVersion, Kind, o.url))
	<-ctx.Done()
}
