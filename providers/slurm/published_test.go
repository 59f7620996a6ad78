// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/yaml"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
)

// published returns a published pod with the defaults that an API server adds.
func published(t *testing.T, name, manifest string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(manifest), pod); err != nil {
		t.Fatal(err)
	}
	pod.Namespace, pod.Name, pod.UID = "ns", name, types.UID("uid-"+name)
	pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = "node", new(int64(1))
	return pod
}

// The source is interlink-hq/vk-test-set: vktestset/templates/100-failing-containers.yaml.
const podNotFound = `
apiVersion: v1
kind: Pod
spec:
  restartPolicy: Never
  containers:
  - {name: missing-command, image: "busybox:1.36", command: ["nonexistent-command"], args: ["--flag", "value"]}
`

// TestPublishedA20MissingCommandEndsThePod checks that the pod fails as with a kubelet, and that its job ends
// with it.
func TestPublishedA20MissingCommandEndsThePod(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{})
	p, _ := running(t, testConfig(c, "a20"), nil)
	pod := published(t, "not-found", podNotFound)
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	awaitPhase(t, p, pod.Name, "Failed")
	status, err := p.GetPodStatus(t.Context(), "ns", pod.Name)
	if err != nil {
		t.Fatal(err)
	}
	end := status.ContainerStatuses[0].State.Terminated
	if end == nil || end.Reason != "StartError" || end.ExitCode != 128 || !strings.Contains(end.Message, "nonexistent-command") {
		t.Errorf("the container ended with %+v, want StartError, 128 and a message that names the command", end)
	}
	await(t, "the job is to end", func() (bool, string) {
		state := jobField(t, c, pod, "%T")
		return state == "COMPLETED", state
	})
}

// jobField returns a field of the pod's job, by a format of squeue.
func jobField(t *testing.T, c *slurmtest.Cluster, pod *corev1.Pod, format string) string {
	t.Helper()
	out, err := client{conf: c.Conf}.run(t.Context(), "squeue", "--noheader", "--states=all", "--format="+format, "--name="+jobName(pod.UID))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// The source is interlink-hq/interLink: docs, the pod of the quick start.
const podQuickStart = `
apiVersion: v1
kind: Pod
spec:
  automountServiceAccountToken: false
  containers:
  - args: ["600"]
    command: [sleep]
    image: "docker://ubuntu"
    imagePullPolicy: Always
    name: my-container
    resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: "1", memory: 1Gi}}
  tolerations:
  - {key: virtual-node.interlink/no-schedule, operator: Exists}
  - {effect: NoExecute, key: node.kubernetes.io/not-ready, operator: Exists, tolerationSeconds: 300}
`

// TestPublishedA21QuickStartRuns checks that a container starts although its image has the prefix docker://.
func TestPublishedA21QuickStartRuns(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{})
	p, _ := running(t, testConfig(c, "a21"), nil)
	pod := published(t, "quick-start", podQuickStart)
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	awaitPhase(t, p, pod.Name, "Running")
	if pod.Spec.Containers[0].Image != "docker://ubuntu" {
		t.Errorf("the provider changed the image of the pod that it was given to %s", pod.Spec.Containers[0].Image)
	}
}

// TestPublishedA21ImagesHavePrefixes checks the prefixes of images: registry images may have docker://, also by
// the annotation image-root. Other prefixes are refused if images are used. A program needs no prefix.
func TestPublishedA21ImagesHavePrefixes(t *testing.T) {
	for _, k := range []struct{ containers, root, image, want string }{
		{"unpack", "", "docker://ubuntu", "ubuntu"}, {"podman", "", "ubuntu:22.04", "ubuntu:22.04"}, {"unpack", "docker://", "ubuntu", "ubuntu"},
		{"unpack", "docker://registry.example/", "a:1", "registry.example/a:1"}, {"unpack", "oras://", "docker://a", "a"},
		{"unpack", "oras://", "a", ""}, {"unpack", "", "library://a/b", ""}, {"podman", "", "/cvmfs/a.sif", ""}, {"unpack", "/cvmfs/", "a.sif", ""},
		{"", "", "docker://ubuntu", "ubuntu"}, {"", "", "/cvmfs/a.sif", "program"}, {"", "", "oras://a", "program"}, {"", "", "NO IMAGE", "program"}, {"", "/cvmfs/", "a", "program"},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: k.image}}}}
		pod.Annotations = map[string]string{annotationImageRoot: k.root}
		err := Config{Containers: k.containers}.setImages(pod)
		if got := pod.Spec.Containers[0].Image; k.want != "" && (err != nil || got != k.want) {
			t.Errorf("%+v: got %q and %v", k, got, err)
		}
		if k.want == "" && (!errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), "spec.containers[0].image: ")) {
			t.Errorf("%+v: got %v, want an error of the kind invalid-input with the path", k, err)
		}
	}
}

// The source is interlink-hq/interlink-slurm-plugin: README.md and examples.
const podFlags = `
apiVersion: v1
kind: Pod
metadata:
  annotations:
    slurm-job.vk.io/flags: "--partition=cn-ib --job-name=testsl -t 30  --ntasks=1 --nodes=1"
    slurm-job.vk.io/image-root: "docker://"
    slurm-job.vk.io/pre-exec: "module load x"
spec:
  restartPolicy: Never
  containers:
  - image: docker://ghcr.io/grycap/cowsay
    command: ["/bin/sh"]
    args: ["-c", "echo \"Hello Participants!!\" > /tmp/test.txt && cat /tmp/test.txt"]
    imagePullPolicy: Always
    name: hello
    resources: {limits: {memory: 100Mi, cpu: 2}}
  dnsPolicy: ClusterFirst
  tolerations: [{key: virtual-node.interlink/no-schedule, operator: Exists}]
`

// TestPublishedA22FlagsOfTheNodeWin checks that the job has the time limit of the pod but the name and the
// partition of the provider, and that one event lists the flags without effect.
func TestPublishedA22FlagsOfTheNodeWin(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{})
	p, _ := running(t, testConfig(c, "a22"), nil)
	events := record.NewFakeRecorder(10)
	p.in.Recorder = events
	pod := published(t, "flags", podFlags)
	for range 2 { // the node may ask again
		if err := p.CreatePod(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	awaitPhase(t, p, pod.Name, "Succeeded")
	if got := jobField(t, c, pod, "%P %l %D %C"); got != "main 30:00 1 2" {
		t.Errorf("the job has partition, time, nodes and CPUs %s, want main 30:00 1 2", got)
	}
	const want = "Warning AnnotationsWithoutEffect slurm-job.vk.io/flags: the node sets these flags itself: --partition=cn-ib --job-name=testsl --ntasks=1 --nodes=1; " +
		"slurm-job.vk.io/pre-exec: use an init container"
	select {
	case got := <-events.Events:
		if got != want {
			t.Errorf("the event is %q, want %q", got, want)
		}
	default:
		t.Error("no event says what has no effect")
	}
	if len(events.Events) > 0 {
		t.Errorf("there is another event: %q", <-events.Events)
	}
}

// TestPublishedA22ShortFlagsAreTheLongOnes checks flags in every form that published pods use, with and without
// the operator's list of allowed flags.
func TestPublishedA22ShortFlagsAreTheLongOnes(t *testing.T) {
	for _, k := range []struct {
		flags  string
		config Config
		want   string // "-": refused
	}{
		{"-t 30", Config{}, "--time=30"},
		{"--time 01:00:00", Config{}, "--time=01:00:00"},
		{"--job-name=test-pod-cfg -t 2800  --ntasks=8 --nodes=1 --mem-per-cpu=2000", Config{}, "--time=2800"}, // interlink-hq/vk-test-set: README.md
		{"--job-name=helloworld-pod -A geant4 -p geant4", Config{}, ""},                                       // interlink-hq/interlink-slurm-plugin: pkg/slurm/prepare_test.go
		{"-A geant4 -p geant4", Config{Partition: "main", Flags: []string{"--account", "--partition"}}, "--account=geant4 --partition=geant4"},
		{"-p other", Config{Flags: []string{"--partition"}}, "--partition=other"},
		{"-C fast -x n1", Config{Flags: []string{"--constraint", "--exclude"}}, "--constraint=fast --exclude=n1"},
		{"-J a -N 2 -n 4 -c 8 -o x.out --requeue", Config{}, ""},
		{"-t 30", Config{Flags: []string{}}, "-"},
		{"-t", Config{}, "-"}, {"-t -p x", Config{}, "-"}, {"-t30", Config{}, "-"}, {"-C fast", Config{}, "-"}, {"-a 1-9", Config{}, "-"},
		{"-d afterok:1", Config{}, "-"}, {"--wrap id", Config{}, "-"}, {"-t 30 id", Config{}, "-"}, {"--gres=gpu:1", Config{}, "-"},
	} {
		got, _, err := completed(t, k.config).readFlags(flagged(k.flags))
		if k.want == "-" != errdefs.IsInvalidInput(err) || k.want != "-" && strings.Join(got, " ") != k.want {
			t.Errorf("flags %q with %q: got %q and %v, want %s", k.flags, k.config.Flags, got, err, k.want)
		}
	}
	pod := flagged("-t 30 --gres=gpu:2")
	pod.Spec.ActiveDeadlineSeconds = new(int64(60))
	pod.Spec.Containers[0].Resources = asks("1", "1Gi")
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": pod.Spec.Containers[0].Resources.Requests["cpu"]}
	taken, overruled, err := completed(t, Config{}).readFlags(pod)
	if err != nil || len(taken) > 0 || strings.Join(overruled, " ") != "--time=30 --gres=gpu:2" {
		t.Errorf("of a pod with a deadline and a GPU: got %q, %q and %v, want that both are the provider's", taken, overruled, err)
	}
}
