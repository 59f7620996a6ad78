// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// folder is a provider whose backend is a directory, so that its pods outlive its process. Each file is a
// running pod. The journal records starts and stops.
type folder struct {
	dir string

	mu     sync.Mutex
	notify func(*corev1.Pod)
}

// A file with one of these names in the directory changes the provider while the file exists.
const (
	// blankFile makes the provider return no pods, like a provider that has not found its pods yet. The provider
	// reports its list as incomplete.
	blankFile = "blank"
	// slowFile delays the responses of CreatePod after the start of the pod.
	slowFile = "slow"
)

func (f *folder) is(name string) bool {
	_, err := os.Stat(filepath.Join(f.dir, name))
	return err == nil
}

func (f *folder) path(uid types.UID) string { return filepath.Join(f.dir, string(uid)+".json") }

func (f *folder) write(what string, uid types.UID) error {
	journal, err := os.OpenFile(filepath.Join(f.dir, "journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(journal, "%s %s\n", what, uid)
	return errors.Join(err, journal.Close())
}

// journal returns how often each pod was started and stopped.
func (f *folder) journal() (started, stopped map[types.UID]int, err error) {
	started, stopped = map[types.UID]int{}, map[types.UID]int{}
	data, err := os.ReadFile(filepath.Join(f.dir, "journal"))
	if errors.Is(err, fs.ErrNotExist) {
		return started, stopped, nil
	}
	for line := range strings.Lines(string(data)) {
		what, uid, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "start":
			started[types.UID(uid)]++
		case "stop":
			stopped[types.UID(uid)]++
		}
	}
	return started, stopped, err
}

func (f *folder) tell(pod *corev1.Pod) {
	f.mu.Lock()
	notify := f.notify
	f.mu.Unlock()
	if notify != nil {
		notify(pod)
	}
}

func (f *folder) NotifyPods(_ context.Context, notify func(*corev1.Pod)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notify = notify
}

func (f *folder) AnswersForAllPods() bool { return !f.is(blankFile) }

func (f *folder) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if _, err := os.Stat(f.path(pod.UID)); err == nil {
		return nil
	}
	pod = pod.DeepCopy()
	now := metav1.Now()
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &now,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, ContainerID: "folder://" + string(pod.UID),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	data, err := json.Marshal(pod)
	if err == nil {
		err = os.WriteFile(f.path(pod.UID)+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(f.path(pod.UID)+".new", f.path(pod.UID))
	}
	if err == nil {
		err = f.write("start", pod.UID)
	}
	if err != nil {
		return err
	}
	f.tell(pod)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for f.is(slowFile) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (f *folder) UpdatePod(context.Context, *corev1.Pod) error { return nil }

func (f *folder) DeletePod(_ context.Context, pod *corev1.Pod) error {
	is, err := f.read(f.path(pod.UID))
	if err == nil {
		err = errors.Join(f.write("stop", pod.UID), os.Remove(f.path(pod.UID)))
	}
	if err != nil {
		return err
	}
	is.Status.Phase = corev1.PodSucceeded
	for i := range is.Status.ContainerStatuses {
		is.Status.ContainerStatuses[i].Ready = false
		is.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: metav1.Now()}}
	}
	f.tell(is)
	return nil
}

func (f *folder) read(path string) (*corev1.Pod, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errdefs.AsNotFound(err)
	}
	pod := &corev1.Pod{}
	if err == nil {
		err = json.Unmarshal(data, pod)
	}
	return pod, err
}

func (f *folder) GetPods(context.Context) (pods []*corev1.Pod, err error) {
	if f.is(blankFile) {
		return nil, f.write("blank", "list")
	}
	paths, err := filepath.Glob(filepath.Join(f.dir, "*.json"))
	for _, path := range paths {
		pod, failed := f.read(path)
		if errdefs.IsNotFound(failed) {
			continue
		}
		if failed != nil {
			return nil, failed
		}
		pods = append(pods, pod)
	}
	return pods, err
}

func (f *folder) GetPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if f.is(blankFile) {
		return nil, errdefs.NotFoundf("pod %s/%s is not known yet", namespace, name)
	}
	pods, err := f.GetPods(ctx)
	for _, pod := range pods {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, nil
		}
	}
	return nil, errors.Join(err, errdefs.NotFoundf("pod %s/%s is not in the folder", namespace, name))
}

func (f *folder) GetPodStatus(ctx context.Context, namespace, name string) (*corev1.PodStatus, error) {
	pod, err := f.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}
