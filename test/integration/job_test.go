// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

func TestJobCompletes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.createJob("once")
	w.endPod(w.awaitJobPod(0), 0)
	job := w.awaitJob("once", "is complete", complete)
	if job.Status.Succeeded != 1 || job.Status.Failed != 0 {
		t.Errorf("job: %d succeeded, %d failed; want 1 and 0", job.Status.Succeeded, job.Status.Failed)
	}
	background := metav1.DeletePropagationBackground
	err := w.client().BatchV1().Jobs(w.namespace).Delete(t.Context(), "once", metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil {
		t.Fatal(err)
	}
	w.awaitNoPods()
	w.awaitEmptyBackend()
}

func TestJobTriesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.createJob("twice")
	w.endPod(w.awaitJobPod(0), 3)
	w.endPod(w.awaitJobPod(1), 0)
	job := w.awaitJob("twice", "is complete", complete)
	if job.Status.Succeeded != 1 || job.Status.Failed != 1 {
		t.Errorf("job: %d succeeded, %d failed; want 1 and 1", job.Status.Succeeded, job.Status.Failed)
	}
	pods := w.awaitPods("both pods have ended", func(pods []*corev1.Pod) bool { return len(pods) == 2 && all(pods, terminal) })
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodFailed {
			continue
		}
		if state := pod.Status.ContainerStatuses[0].State.Terminated; state == nil || state.ExitCode != 3 {
			t.Errorf("the failed pod's container: got %+v, want exit code 3", state)
		}
	}
}

func (w *world) createJob(name string) {
	w.Helper()
	spec := w.spec()
	spec.RestartPolicy = corev1.RestartPolicyNever
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}},
	}
	if _, err := w.client().BatchV1().Jobs(w.namespace).Create(w.Context(), job, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// awaitJobPod waits until a pod of the job runs and the given number of pods has failed before it.
func (w *world) awaitJobPod(failed int) (job *corev1.Pod) {
	w.Helper()
	w.awaitPods("the job's pod runs", func(pods []*corev1.Pod) bool {
		for _, pod := range pods {
			if running(pod) {
				job = pod
				return len(pods) == failed+1
			}
		}
		return false
	})
	return job
}

// endPod makes the containers of a pod exit by themselves.
func (w *world) endPod(pod *corev1.Pod, exitCode int32) {
	w.backend.Change(memory.Key(pod), func(pod *corev1.Pod) { *pod = *memory.Ended(pod, exitCode) })
}

func (w *world) awaitJob(name, what string, done func(*batchv1.Job) bool) *batchv1.Job {
	w.Helper()
	q := query{client: w.client().BatchV1().RESTClient(), resource: "jobs", namespace: w.namespace, name: name}
	return await(w.T, q, &batchv1.Job{}, "job "+name+" "+what, func(jobs []*batchv1.Job) bool {
		return len(jobs) == 1 && done(jobs[0])
	})[0]
}

func complete(job *batchv1.Job) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}
