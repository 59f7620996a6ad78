// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// TestPublishedC60RulesOfSlurm maps a pod for each rule between flags of sbatch that other users have run into.
func TestPublishedC60RulesOfSlurm(t *testing.T) {
	c := completed(t, Config{Partition: "main", Flags: []string{"--constraint", "--nice"}})
	command := func(change func(pod *corev1.Pod)) ([]string, error) {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
		change(pod)
		args, err := c.submission(pod, identity{"home", "node", "ns", "web", "u-1"}, "/shared/dir", "/shared/program", "/shared/script")
		if err != nil {
			return nil, err
		}
		return args[:slices.Index(args, endOfFlags)], nil
	}
	of := func(args []string, flag string) (values []string) {
		for _, a := range args {
			if name, value, _ := strings.Cut(a, "="); name == flag {
				values = append(values, value)
			}
		}
		return values
	}
	limit := func(name corev1.ResourceName, value string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{name: resource.MustParse(value)}
		}
	}
	flags := func(value string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Annotations = map[string]string{AnnotationFlags: value} }
	}
	for _, rule := range []struct {
		name, source string
		change       func(pod *corev1.Pod)
		flag         string
		want         []string // the values of the flag; nil: the flag is absent
		refused      bool     // the error has the path of the annotation
	}{
		{"cpus-per-task is a number", "futureverse/future.batchtools#41, 2019-03-29", func(*corev1.Pod) {}, "--cpus-per-task", []string{"1"}, false},
		{"cpus-per-task is a whole number", "futureverse/future.batchtools#41, 2019-03-29", limit(corev1.ResourceCPU, "1500m"), "--cpus-per-task", []string{"2"}, false},
		{"the memory is asked for one way only", "bessagroup/f3dasm#352, 2026-07-30; mehta-lab/recOrder#482, 2024-10-08", limit(corev1.ResourceMemory, "1Gi"), "--mem-per-cpu", nil, false},
		{"a memory of 1 byte is more than none", "dask/dask-jobqueue#238, 2019-02-14", limit(corev1.ResourceMemory, "1"), "--mem", []string{"129M"}, false},
		{"no time limit is not a limit of 0", "futureverse/future.batchtools#41, 2019-03-30", func(*corev1.Pod) {}, "--time", nil, false},
		{"a time limit is more than 0", "futureverse/future.batchtools#41, 2019-03-30", func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = new(int64(1)) }, "--time", []string{"2"}, false},
		{"minutes above 59 have no hours before them", "NVIDIA-NeMo/RL#3051, 2026-07-02", func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = new(int64(14400)) }, "--time", []string{"242"}, false},
		{"a cluster without GPUs is asked for none", "awslabs/awsome-distributed-ai#196, 2024-03-09", limit(corev1.ResourceName("nvidia.com/gpu"), "0"), "--gres", nil, false},
		{"generic resources are one entry", "ResearchComputing/Documentation#562, 2026-08-03", limit(corev1.ResourceName("nvidia.com/gpu"), "2"), "--gres", []string{"gpu:2"}, false},
		{"a job with GPUs names its number of nodes", "ResearchComputing/Documentation#562, 2026-08-03", limit(corev1.ResourceName("nvidia.com/gpu"), "2"), "--nodes", []string{"1"}, false},
		{"a pod cannot choose a quality of service", "aidenlab/juicer#143, 2019-11-13", flags("--qos=largemem"), "--qos", nil, false},
		{"a pod cannot set a time limit beside its deadline", "PennLINC/babs#118, 2023-07-17", flags("--time=96:00:00"), "", nil, true},
		{"a flag of the annotation has its value", "nservant/HiC-Pro#645, 2024-09-06", flags("--constraint="), "", nil, true},
	} {
		t.Run(rule.name, func(t *testing.T) {
			args, err := command(rule.change)
			switch {
			case rule.refused:
				if !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), flagsPath+":") {
					t.Errorf("%s: got %v, want an error of the kind invalid-input at %s", rule.source, err, flagsPath)
				}
			case err != nil:
				t.Errorf("%s: %v", rule.source, err)
			case !slices.Equal(of(args, rule.flag), rule.want):
				t.Errorf("%s: got %s %q, want %q", rule.source, rule.flag, of(args, rule.flag), rule.want)
			}
		})
	}
}
