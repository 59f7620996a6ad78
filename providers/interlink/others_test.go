// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interlink

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	kubelet "github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
)

// fieldPrograms is the environment variable with the folder in which `make interlink-field` builds the programs of others.
const fieldPrograms = "VK_INTERLINK_FIELD"

// others is interLink's own API server of 2026 with a plugin of others behind it.
type others struct {
	url  string
	jobs func() (string, error) // that are left at the plugin's batch system
}

// startOthers starts them; mode is that of behaviours.
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

// withoutImage runs the command of a container on the node: no image is there.
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
  IFS=: read -r from to _ <<<"$bind"
  to=$layer/root${to:-$from}
  if [ -d "$from" ]; then mkdir -p "$to"; else mkdir -p "$(dirname "$to")"; touch "$to"; fi
  mount --bind "$from" "$to"
done
unset BINDS
exec chroot "$layer/root" "$@"' bash "$@"
`

// startSlurmPlugin starts interLink's Slurm plugin with a Slurm of its own.
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

// startSDKPlugin starts a plugin of ours that is written with interLink's SDK for Python.
func startSDKPlugin(t *testing.T, programs, dir string) (jobs func() (string, error)) {
	python, err := os.ReadFile(filepath.Join(programs, "python"))
	if err != nil {
		t.Skip("there is no Python with fastapi, uvicorn and pydantic 2: set INTERLINK_PYTHON")
	}
	left := filepath.Join(dir, "pods")
	words := strings.Fields(string(python))
	cmd := exec.Command(words[0], append(words[1:], "testdata/sdkplugin.py", filepath.Join(dir, "plugin"), left)...)
	run(t, dir, "plugin", cmd, "PYTHONPATH="+filepath.Join(programs, "sdk"))
	return func() (string, error) {
		data, err := os.ReadFile(left)
		return strings.TrimSpace(string(data)), err
	}
}

// ofOthers runs a test with each plugin of others.
func ofOthers(t *testing.T, test func(t *testing.T, mode string, o *others)) {
	for _, mode := range []string{"slurm", "sdk"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			test(t, mode, startOthers(t, mode))
		})
	}
}

// testSuite is the result of a run of pytest.
type testSuite struct {
	Cases []struct {
		Name    string `xml:"name,attr"`
		Failure *struct {
			Message string `xml:"message,attr"`
		} `xml:"failure"`
		Error *struct {
			Message string `xml:"message,attr"`
		} `xml:"error"`
	} `xml:"testsuite>testcase"`
}

// TestFieldVKTestSet runs interLink's own test set for virtual nodes, as far as it runs without its images: containers have the files of this
// machine. Its result is a table, and not whether this test passes.
func TestFieldVKTestSet(t *testing.T) {
	t.Parallel()
	programs := os.Getenv(fieldPrograms)
	python, err := os.ReadFile(filepath.Join(programs, "python"))
	if programs == "" || err != nil {
		t.Skip("programs of others are not built, or there is no Python: make interlink-field, INTERLINK_PYTHON")
	}
	source, err := filepath.EvalSymlinks(filepath.Join(programs, "vk-test-set"))
	if err != nil {
		t.Fatal(err)
	}
	o := startOthers(t, "slurm")
	dir, api := shortDir(t), testapi.Start(t)
	namespace, target := api.Namespace(t), api.NodeName(t)
	credentials, config := api.NodeCredentials(t, target, "127.0.0.1"), filepath.Join(dir, "interlink.yaml")
	write(t, config, fmt.Sprintf("apiVersion: %s\nkind: %s\nurl: %s\n", APIVersion, Kind, o.url))
	run(t, dir, "node", exec.Command(filepath.Join(programs, "virtual-kubelet"), "--provider=interlink", "--provider-config="+config,
		"--kubeconfig="+api.KubeconfigPath, "--nodename="+target, "--node-ip=127.0.0.1", "--listen-address=127.0.0.1", "--port=0",
		"--tls-cert-file="+credentials.CertFile, "--tls-private-key-file="+credentials.KeyFile, "--client-ca-file="+api.CAFile))
	eventually(t, "the node to be Ready", func() bool {
		n, err := api.Client.CoreV1().Nodes().Get(t.Context(), target, metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
	})
	settings, result := filepath.Join(dir, "vktest.yaml"), filepath.Join(dir, "result.xml")
	write(t, settings, fmt.Sprintf(`target_nodes: [%s]
required_namespaces: [%s]
timeout_multiplier: 2.
values:
  namespace: %[2]s
  annotations:
    slurm-job.vk.io/flags: "--job-name=test-pod-cfg -t 2800"
    slurm-job.vk.io/image-root: "docker://"
  tolerations: [{operator: Exists}]
`, target, namespace))
	words := strings.Fields(string(python))
	cmd := exec.CommandContext(t.Context(), words[0], append(words[1:], "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml="+result, "vktestset/basic_test.py")...)
	cmd.Dir, cmd.Env = source, append(os.Environ(), "KUBECONFIG="+api.KubeconfigPath, "VKTEST_CONFIG="+settings, "PYTHONPATH="+source)
	said, _ := cmd.CombinedOutput() // a test of it that fails is in the table
	data, err := os.ReadFile(result)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var suite testSuite
	if err := xml.Unmarshal(data, &suite); err != nil || len(suite.Cases) == 0 {
		t.Fatalf("%d cases, %v\n%s", len(suite.Cases), err, said)
	}
	for _, c := range suite.Cases {
		outcome, reason := "passed", ""
		if c.Failure != nil {
			outcome, reason = "failed", c.Failure.Message
		} else if c.Error != nil {
			outcome, reason = "failed", c.Error.Message
		}
		t.Logf("vk-test-set: | %s | %s | %s |", strings.ReplaceAll(c.Name, target+"-", ""), outcome, strings.ReplaceAll(begin(reason), "|", "/"))
	}
}

// begin is the begin of a message in one line.
func begin(s string) string {
	s = words(s)
	return s[:min(len(s), 160)]
}

// TestFieldFacts: the real programs answer as the double does. With VK_INTERLINK_FIELD_WRITE set their facts are written.
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

// TestFieldPodsRunAndAreGone: a whole node, the real API server and a real plugin. Three pods of the quick start are submitted, run and are gone,
// one that ends tells its exit code and its log, and no job is left.
func TestFieldPodsRunAndAreGone(t *testing.T) {
	t.Parallel()
	ofOthers(t, func(t *testing.T, _ string, o *others) {
		api := testapi.Start(t)
		namespace, nodeName := api.Namespace(t), api.NodeName(t)
		var p *provider
		n, _ := remotetest.RunNode(t, api, nodeName, func(in cli.ProviderInput) (_ remotetest.NodeProvider, err error) {
			p, err = newProvider(in, Config{URL: o.url})
			return p, err
		})
		if err := n.WaitReady(t.Context(), remotetest.Patience); err != nil {
			t.Fatal(err)
		}
		pods := api.Client.CoreV1().Pods(namespace)
		until := func(what, name string, ok func(*corev1.Pod) bool) {
			remotetest.Until(t, name+" "+what, func() (bool, string) {
				pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					return false, err.Error()
				}
				return ok(pod), pod.Status.String()
			})
		}
		commands := map[string][]string{
			"m1": {"sleep", "600"}, "m2": {"sleep", "600"}, "m3": {"sleep", "600"}, "ends": {"/bin/bash", "-c", "echo hello world; exit 7"},
		}
		for name, command := range commands {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
				NodeName: nodeName, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false),
				TerminationGracePeriodSeconds: ptr.To[int64](2), Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{Name: "c", Image: "docker://ubuntu", Command: command}},
			}}
			if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"m1", "m2", "m3"} {
			until("runs", name, func(pod *corev1.Pod) bool {
				return pod.Status.Phase == corev1.PodRunning && len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready
			})
		}
		until("has failed", "ends", func(pod *corev1.Pod) bool {
			return pod.Status.Phase == corev1.PodFailed && pod.Status.ContainerStatuses[0].State.Terminated.ExitCode == 7
		})
		remotetest.Until(t, "the log is read", func() (bool, string) {
			r, err := p.GetContainerLogs(t.Context(), namespace, "ends", "c", kubelet.ContainerLogOpts{})
			if err != nil {
				return false, err.Error()
			}
			defer r.Close()
			said, err := io.ReadAll(r)
			return err == nil && strings.Contains(string(said), "hello world"), fmt.Sprintf("%q, %v", said, err)
		})
		for name := range commands {
			if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for name := range commands {
			remotetest.Until(t, name+" is gone", func() (bool, string) {
				_, err := pods.Get(t.Context(), name, metav1.GetOptions{})
				return apierrors.IsNotFound(err), fmt.Sprint(err)
			})
		}
		remotetest.Until(t, "no job is left", func() (bool, string) {
			left, err := o.jobs()
			return err == nil && left == "", fmt.Sprintf("%s %v", left, err)
		})
	})
}
