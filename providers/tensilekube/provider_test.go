// SPDX-License-Identifier: Apache-2.0

package tensilekube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

func stays() program.Program { return program.Program{Stay: program.Forever} }

// withObjects has a pod name a ConfigMap, a Secret and a token.
func withObjects(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "objects"}}}},
		{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
		}}}},
	}
	main := &pod.Spec.Containers[0]
	main.VolumeMounts = []corev1.VolumeMount{{Name: "settings", MountPath: "/settings"}, {Name: "token", MountPath: "/token"}}
	main.Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "objects"}, Key: "key"}}}}
	return pod
}

func TestRestartWritesNothing(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "restart", "vk-0")
	u.put("default", "objects", "one")
	p, stop := u.start()
	var pods []*corev1.Pod
	for i := range 20 {
		pods = append(pods, withObjects(u.pod("default", fmt.Sprintf("web-%d", i), stays())))
		u.create(p, pods[i])
	}
	ids := map[string]string{}
	for _, pod := range pods {
		ids[pod.Name] = u.untilRuns(p, pod).Status.ContainerStatuses[0].ContainerID
	}
	stop()
	u.line.writes()
	p, _ = u.start()
	for _, pod := range pods {
		if err := p.UpdatePod(t.Context(), pod.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		got := u.untilRuns(p, pod)
		if s := got.Status.ContainerStatuses[0]; s.ContainerID != ids[pod.Name] || s.RestartCount != 0 {
			t.Errorf("pod %s: after the restart the container is %s with %d restarts, before it was %s", pod.Name, s.ContainerID, s.RestartCount, ids[pod.Name])
		}
	}
	if list, err := p.GetPods(t.Context()); err != nil || len(list) != len(pods) {
		t.Errorf("after the restart there are %d pods (%v), want %d", len(list), err, len(pods))
	}
	if writes := u.line.writes(); len(writes) > 0 {
		t.Errorf("the restart wrote to the remote cluster: %q", writes)
	}
	u.refreshed(p)               // which writes nothing but the one change
	pods[0] = pods[0].DeepCopy() // the one of before is at home, where the provider reads it
	pods[0].Labels["app"] = "changed"
	if err := p.UpdatePod(t.Context(), pods[0].DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if writes := u.line.writes(); len(writes) != 1 {
		t.Errorf("a change of a label made the writes %q, want one", writes)
	}
	if got := u.remote(pods[0]).Labels["app"]; got != "changed" {
		t.Errorf("the label of the remote pod is %q, want changed", got)
	}
}

// refreshed waits until the copies were compared: a change that is made now is seen by then.
func (u *upper) refreshed(p *provider) {
	u.Helper()
	pod := withObjects(u.pod("refreshed", "refreshed", stays()))
	pod.Spec.Volumes = pod.Spec.Volumes[:1]
	pod.Spec.Containers[0].VolumeMounts, pod.Spec.Containers[0].Env = pod.Spec.Containers[0].VolumeMounts[:1], nil
	u.put("refreshed", "objects", "one")
	u.create(p, pod)
	u.line.writes()
	u.put("refreshed", "objects", "two")
	u.until("a change at home is in the copy", func() (bool, string) {
		m, err := u.worker.api.Client.CoreV1().ConfigMaps(u.home().NamespaceName("refreshed")).Get(u.Context(), u.home().CopyName("ConfigMap", "refreshed", "objects"), metav1.GetOptions{})
		return err == nil && m.Data["key"] == "two", fmt.Sprint(m.Data, err)
	})
	if writes := u.line.writes(); len(writes) != 1 || !strings.HasPrefix(writes[0], "PUT ") {
		u.Errorf("a change of one ConfigMap made the writes %q, want one", writes)
	}
}

func TestTwoUpperClustersShareOne(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	all := []*upper{newUpper(t, w, "first", "vk-0"), newUpper(t, w, "second", "vk-0"), newUpper(t, w, "first", "vk-1")}
	pod := withObjects(all[0].pod("default", "web", stays()))
	var providers []*provider
	for _, u := range all {
		u.put("default", "objects", u.config.ClusterID)
		p, _ := u.start()
		u.create(p, pod.DeepCopy()) // even the UID is the same
		providers = append(providers, p)
	}
	ids := map[string]bool{}
	for i, u := range all {
		ids[u.untilRuns(providers[i], pod).Status.ContainerStatuses[0].ContainerID] = true
		if list, err := providers[i].GetPods(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("%s/%s sees %d pods (%v), want its own", u.config.ClusterID, u.node, len(list), err)
		}
	}
	if len(ids) != len(all) {
		t.Errorf("%d containers run, want %d", len(ids), len(all))
	}
	all[0].delete(providers[0], pod)
	all[0].untilGone(providers[0], pod)
	all[0].until("the copies of the first are gone", func() (bool, string) { n := all[0].copies(); return n == 0, fmt.Sprint(n) })
	for i, u := range all[1:] {
		u.untilRuns(providers[i+1], pod)
		if n := u.copies(); n != 3 {
			t.Errorf("%s/%s has %d objects in the remote cluster, want its ConfigMap, Secret and files", u.config.ClusterID, u.node, n)
		}
	}
}

// copies is how many ConfigMaps and Secrets of the node are in the remote cluster.
func (u *upper) copies() int {
	u.Helper()
	mine := metav1.ListOptions{LabelSelector: u.home().Selector()}
	maps, err := u.worker.api.Client.CoreV1().ConfigMaps("").List(u.Context(), mine)
	if err != nil {
		u.Fatal(err)
	}
	secrets, err := u.worker.api.Client.CoreV1().Secrets("").List(u.Context(), mine)
	if err != nil {
		u.Fatal(err)
	}
	return len(maps.Items) + len(secrets.Items)
}

func TestSameNameHundredTimes(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "same-name", "vk-0")
	p, _ := u.start()
	var last *corev1.Pod
	for range 100 {
		pod := u.pod("default", "web-0", stays())
		u.create(p, pod)
		if last != nil {
			u.delete(p, last) // late: the next one is there
		}
		last = pod
	}
	u.untilRuns(p, last)
	u.until("only the last one is left", func() (bool, string) {
		list, err := p.GetPods(t.Context())
		return err == nil && len(list) == 1 && list[0].UID == last.UID, fmt.Sprint(len(list), err)
	})
	if n, err := w.instances(last); n != 1 || err != nil {
		t.Errorf("%d instances of the last pod run (%v), want 1", n, err)
	}
}

func TestTokensOfHome(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "tokens", "vk-0")
	u.put("default", "objects", "one")
	p, _ := u.start()
	pod := withObjects(u.pod("default", "web", program.Program{Show: []string{"/token/token", "/token/namespace", "/settings/key"}, Env: true, Stay: program.Forever}))
	u.create(p, pod)
	u.untilRuns(p, pod)
	for _, want := range []string{"token-1-of-web", "default", "one", "PASSWORD=one", "KUBERNETES_SERVICE_HOST=10.96.0.1"} {
		u.until("the container shows "+want, func() (bool, string) { log := u.log(p, pod); return strings.Contains(log, want), log })
	}
	// A token that is soon to be replaced is, until one lives longer.
	u.mu.Lock()
	u.tokenLife = -time.Second
	u.mu.Unlock()
	next := withObjects(u.pod("default", "next", stays()))
	u.create(p, next)
	u.until("the token is renewed", func() (bool, string) {
		s, err := w.api.Client.CoreV1().Secrets(u.home().NamespaceName("default")).Get(t.Context(), u.home().PodName(next)+"-files", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		got := string(s.Data["token.0.0"])
		return got != "token-2-of-next" && strings.HasSuffix(got, "-of-next"), got
	})
}

func TestRemovedInTheRemoteCluster(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "removed", "vk-0")
	p, _ := u.start()
	pod := u.pod("default", "job", stays())
	u.create(p, pod)
	seen := u.untilRuns(p, pod)
	remote := u.remote(pod)
	if err := w.api.Client.CoreV1().Pods(remote.Namespace).Delete(t.Context(), remote.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(1))}); err != nil {
		t.Fatal(err)
	}
	u.untilGone(p, pod)
	for _, r := range u.reportsOf(pod.UID) {
		if r.Status.Phase != corev1.PodRunning && r.Status.Phase != corev1.PodPending {
			t.Errorf("a pod that somebody removed over there was reported as %s", r.Status.Phase)
		}
	}
	home := pod.DeepCopy()
	home.Status = seen.Status
	u.create(p, home)
	if got := u.untilRuns(p, pod).Status.ContainerStatuses[0].RestartCount; got != 1 {
		t.Errorf("the pod that was made again has %d restarts, want 1", got)
	}
}

func TestHomeIsRefused(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "loop", "vk-0")
	service, err := w.api.Client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := u.services.Add(service); err != nil {
		t.Fatal(err)
	}
	p, _ := u.start()
	if err := p.CreatePod(t.Context(), u.pod("default", "web", stays())); err == nil || !strings.Contains(err.Error(), "home cluster") {
		t.Errorf("CreatePod in the home cluster: got %v, want a refusal", err)
	}
	u.until("the node says why it is not Ready", func() (bool, string) {
		err := p.Ping(t.Context())
		return err != nil && strings.Contains(err.Error(), "home cluster"), fmt.Sprint(err)
	})
}

func TestDarkRemoteCluster(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "dark", "vk-0")
	p, _ := u.start()
	stay, leave := u.pod("default", "stays", stays()), u.pod("default", "leaves", stays())
	for _, pod := range []*corev1.Pod{stay, leave} {
		u.create(p, pod)
		u.untilRuns(p, pod)
	}
	u.line.outage(true)
	if err := p.Ping(t.Context()); err == nil {
		t.Error("Ping of a remote cluster that does not answer: got no error")
	}
	if err := p.DeletePod(t.Context(), leave); err == nil || errdefs.IsNotFound(err) {
		t.Errorf("DeletePod meanwhile: got %v, want an error that says nothing of the pod", err)
	}
	if list, err := p.GetPods(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("meanwhile there are %d pods (%v), want both", len(list), err)
	}
	if err := w.lose(leave); err != nil { // unseen
		t.Fatal(err)
	}
	u.line.outage(false)
	u.untilGone(p, leave)
	u.untilRuns(p, stay)
	if err := p.DeletePod(t.Context(), leave); !errdefs.IsNotFound(err) {
		t.Errorf("DeletePod of the pod that went meanwhile: got %v, want the kind not-found", err)
	}
}

func TestNamespaceIsGone(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "namespace", "vk-0")
	p, _ := u.start()
	first := u.pod("default", "first", stays())
	u.create(p, first)
	u.untilRuns(p, first)
	if err := w.api.Client.CoreV1().Namespaces().Delete(t.Context(), u.home().NamespaceName("default"), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	next := u.pod("default", "next", stays())
	said := ""
	u.until("a pod runs in the namespace again", func() (bool, string) {
		err := p.CreatePod(t.Context(), next.DeepCopy())
		if err != nil && (errdefs.IsInvalidInput(err) || errdefs.IsNotFound(err)) {
			t.Fatalf("CreatePod in a namespace that goes: got %v, whose kind says that the pod is to blame", err)
		}
		if err != nil {
			said = err.Error()
		}
		return err == nil, said
	})
	if !strings.Contains(said, u.home().NamespaceName("default")) {
		t.Errorf("CreatePod in a namespace that goes: got %q, want the name of the namespace", said)
	}
	u.untilGone(p, first)
	u.untilRuns(p, next)
}

// TestForeignNamespaceIsRefused has a namespace of somebody else where ours would be.
func TestForeignNamespaceIsRefused(t *testing.T) {
	w := startWorker(t, testapi.Start(t))
	u := newUpper(t, w, "foreign", "vk-0")
	p, _ := u.start()
	_, err := w.api.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: u.home().NamespaceName("default")}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	err = p.CreatePod(t.Context(), u.pod("default", "web", stays()))
	if err == nil || !strings.Contains(err.Error(), "is not that of default") {
		t.Errorf("CreatePod in a namespace of somebody else: got %v, want a refusal", err)
	}
}
