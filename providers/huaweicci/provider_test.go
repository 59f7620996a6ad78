// SPDX-License-Identifier: Apache-2.0

package huaweicci

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster/remotetest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// withObjects adds a ConfigMap, a Secret and a token to a pod.
func withObjects(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "objects"}}}},
		{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		}}}},
	}
	main := &pod.Spec.Containers[0]
	main.VolumeMounts = []corev1.VolumeMount{{Name: "settings", MountPath: "/settings"}, {Name: "token", MountPath: "/token"}}
	main.Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "objects"}, Key: "key"}}}}
	return pod
}

// life performs every operation of a node.
func life(h *home) {
	h.Helper()
	h.Put("default", "objects", "one")
	p, stop := h.start()
	does := program.Program{Show: []string{"/token/token", "/settings/key"}, Env: true, Stay: program.Forever}
	pod := withObjects(h.Pod("default", "web", does))
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("3Gi")}
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	for _, want := range []string{"token-1-of-web", "one", "PASSWORD=one"} {
		h.Until("the container shows "+want, func() (bool, string) { log := h.Log(p, pod); return strings.Contains(log, want), log })
	}
	remote := h.remote(pod)
	r := remote.Spec.Containers[0].Resources
	wantCPU, wantSize := "1500m", "2.00_3.0"
	if h.config.API == API10 {
		wantCPU, wantSize = "1500m", ""
	}
	if r.Limits.Cpu().String() != wantCPU || r.Requests.Cpu().String() != wantCPU || remote.Annotations[annotationSize] != wantSize {
		h.Errorf("CCI has the resources %v and the size %q", r, remote.Annotations[annotationSize])
	}
	c := &remotetest.Console{}
	command := program.Program{Print: []string{"there"}}
	if err := p.RunInContainer(h.Context(), "default", "web", "main", append([]string{"program"}, command.Args()...), c); err != nil || c.Out.String() != "there\n" {
		h.Errorf("exec: wrote %q (%v)", c.Out.String(), err)
	}
	h.Put("default", "objects", "two")
	h.Until("the copy is replaced", func() (bool, string) {
		return slices.ContainsFunc(h.line.Seen(), func(r string) bool { return strings.HasPrefix(r, "PUT ") }), "nothing was written"
	})
	pod = pod.DeepCopy() // the provider reads the earlier one, which is at home
	pod.Labels["app"] = "changed"
	if err := p.UpdatePod(h.Context(), pod.DeepCopy()); err != nil {
		h.Errorf("UpdatePod: %v", err)
	}
	if err := p.Ping(h.Context()); err != nil {
		h.Errorf("Ping: %v", err)
	}
	stop()
	h.line.Writes()
	p, _ = h.start() // as after a restart
	if s := h.UntilRuns(p, pod).Status.ContainerStatuses[0]; s.RestartCount != 0 {
		h.Errorf("after a restart of the node the container has %d restarts", s.RestartCount)
	}
	if writes := h.line.Writes(); len(writes) > 0 {
		h.Errorf("the restart wrote %q", writes)
	}
	h.Delete(p, pod)
	h.UntilGone(p, pod)
	h.Until("the copies are gone", func() (bool, string) {
		list, err := h.cloud.worker.API.Client.CoreV1().Secrets(h.config.Namespace).List(h.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, fmt.Sprint(len(list.Items), err)
	})
}

// TestLeastRights does everything that a node does, with the policy of the README, and checks that each right of
// the policy is needed.
func TestLeastRights(t *testing.T) {
	c := startCloud(t, remotetest.StartWorker(t, testapi.Start(t)), API20)
	life(newHome(t, c, "rights"))
	c.tookEverything(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, action := range slices.Sorted(maps.Keys(c.policy)) {
		if !c.used[action] {
			t.Errorf("the policy of the README allows %s, which nothing needs", action)
		}
	}
}

func TestOlderAPI(t *testing.T) {
	c := startCloud(t, remotetest.StartWorker(t, testapi.Start(t)), API10)
	life(newHome(t, c, "older"))
	c.tookEverything(t)
}

// TestTokenOfIAM does the same with a token, which expires meanwhile.
func TestTokenOfIAM(t *testing.T) {
	c := startCloud(t, remotetest.StartWorker(t, testapi.Start(t)), API20)
	h := newHome(t, c, "iam")
	h.config.AccessKey, h.config.SecretKey = config.Secret{}, config.Secret{}
	h.config.IAM = IAM{Endpoint: c.url, User: userName, Domain: "account", Password: config.Literal(password)}
	p, _ := h.start()
	if err := p.Ping(t.Context()); err != nil || c.logins != 1 {
		t.Fatalf("Ping: %v after %d logins", err, c.logins)
	}
	for name, change := range map[string]func(){
		"it is soon to end": func() { c.now = func() time.Time { return time.Now().Add(22 * time.Hour) } },
		"it was revoked":    func() { clear(c.tokens) },
	} {
		c.mu.Lock()
		before := c.logins
		change()
		c.mu.Unlock()
		for range 3 {
			if err := p.Ping(t.Context()); err != nil {
				t.Errorf("%s: Ping: %v", name, err)
			}
		}
		c.mu.Lock()
		if c.logins != before+1 {
			t.Errorf("%s: %d logins, want one", name, c.logins-before)
		}
		c.mu.Unlock()
	}
	h.config.IAM.Password = config.Literal("wrong-password")
	p, _ = h.start()
	err := p.Ping(t.Context())
	if err == nil || !strings.Contains(err.Error(), "token of user node") || strings.Contains(err.Error(), "wrong-password") {
		t.Errorf("with a wrong password Ping is %v", err)
	}
}

// TestNodeSaysWhatIsWrong has invalid credentials, a wrong clock or an unusable network.
func TestNodeSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	c := startCloud(t, remotetest.StartWorker(t, testapi.Start(t)), API20)
	key := filepath.Join(t.TempDir(), "key")
	write := func(value string) {
		if err := os.WriteFile(key, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("wrong-secret")
	h := newHome(t, c, "wrong")
	if err := h.config.SecretKey.UnmarshalJSON([]byte(`{"file":"` + key + `"}`)); err != nil {
		t.Fatal(err)
	}
	p, _ := h.start()
	if err := p.Examine(t.Context()); err == nil || !strings.Contains(err.Error(), "verify aksk signature fail") {
		t.Errorf("with a wrong key Examine is %v", err)
	}
	ping := func() string { return fmt.Sprint(p.Ping(t.Context())) }
	says := func(what string, want ...string) {
		t.Helper()
		h.Until(what, func() (bool, string) {
			got := ping()
			return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(got, w) }), got
		})
	}
	says("a wrong key", "verify aksk signature fail (APIGW.0301), request 4a0c3a7f")
	if strings.Contains(ping(), "wrong-secret") || strings.Contains(ping(), "clock") {
		t.Errorf("with a wrong key Ping says %s", ping())
	}
	write(secretKey)
	says("the key is replaced without a restart", "<nil>")

	h.skew.Store(int64(20 * time.Minute))
	says("the clock is wrong", "x-sdk-date", "the clock of this machine is 20m0s off that of CCI")
	h.skew.Store(0)
	says("the clock is right", "<nil>")

	c.set(func() { c.networks[h.config.Namespace][0].Status.Status = "IPInsufficient" })
	says("subnets are full", "network vk of namespace vk-wrong of CCI is IPInsufficient")
	c.set(func() { c.networks[h.config.Namespace] = nil })
	says("the network was removed", "has no network")
	if err := p.Examine(t.Context()); err != nil {
		t.Errorf("a network that the start makes: Examine is %v", err)
	}
	says("it is made again", "<nil>")
	c.set(func() { c.policy = map[string]bool{} })
	says("rights are missing", "the policy does not allow cci:network:list")
}

// TestPodsSayWhatIsWrong has a CCI that accepts no more pods.
func TestPodsSayWhatIsWrong(t *testing.T) {
	c := startCloud(t, remotetest.StartWorker(t, testapi.Start(t)), API20)
	h := newHome(t, c, "quota")
	p, _ := h.start()
	first, second := h.Pod("default", "first", stays()), h.Pod("default", "second", stays())
	h.Create(p, first)
	h.UntilRuns(p, first)
	c.set(func() { c.quota = 1 })
	err := p.CreatePod(t.Context(), second.DeepCopy())
	if err == nil || errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "exceeded quota: pods, used: all (CCI.01.403106)") {
		t.Errorf("the quota is reached: got %v, want an error that is tried again", err)
	}
	c.set(func() { c.quota, c.throttle = 0, "7" })
	began := time.Now()
	err = p.CreatePod(t.Context(), second.DeepCopy())
	if after, says := errdefs.RetryAfterOf(err); !says || after != 7*time.Second || time.Since(began) > 5*time.Second {
		t.Errorf("CCI is busy: got %v after %s, to be tried again after %s", err, time.Since(began), after)
	}
	if err := p.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "throttling threshold") {
		t.Errorf("CCI is busy: Ping: %v", err)
	}
	if got, err := p.GetPod(t.Context(), "default", "first"); err != nil || got.Status.Phase != corev1.PodRunning {
		t.Errorf("CCI is busy: the pod that runs is %v (%v)", got, err)
	}
	c.set(func() { c.throttle = "" })
	h.Create(p, second)
	h.UntilRuns(p, second)
	for name, err := range map[string]error{
		"attach":       p.AttachToContainer(t.Context(), "default", "first", "main", nil),
		"port-forward": p.PortForward(t.Context(), "default", "first", 80, nil),
	} {
		if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "CCI has no "+name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestLogSinceATime asks for a log since a time, which CCI does not support.
func TestLogSinceATime(t *testing.T) {
	c := startCloud(t, remotetest.StartWorker(t, testapi.Start(t)), API20)
	h := newHome(t, c, "since")
	p, _ := h.start()
	pod := h.Pod("default", "web", program.Program{Print: []string{"one", "two"}, Stay: program.Forever})
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	h.Until("its log", func() (bool, string) { log := h.Log(p, pod); return strings.Contains(log, "two"), log })
	read := func(o api.ContainerLogOpts) string {
		t.Helper()
		log, err := p.GetContainerLogs(t.Context(), "default", "web", "main", o)
		if err != nil {
			t.Fatal(err)
		}
		return readAll(t, log)
	}
	stamps := strings.Split(strings.TrimSpace(read(api.ContainerLogOpts{Timestamps: true})), "\n")
	first, _, _ := strings.Cut(stamps[0], " ")
	at, err := time.Parse(time.RFC3339Nano, first)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		o    api.ContainerLogOpts
		want string
	}{
		"all":    {api.ContainerLogOpts{SinceTime: at}, "one\ntwo\n"},
		"tail":   {api.ContainerLogOpts{SinceTime: at, Tail: 1}, "two\n"},
		"bytes":  {api.ContainerLogOpts{SinceTime: at, LimitBytes: 2}, "on"},
		"none":   {api.ContainerLogOpts{SinceTime: time.Now().Add(time.Hour)}, ""},
		"stamps": {api.ContainerLogOpts{SinceTime: at, Timestamps: true}, strings.Join(stamps, "\n") + "\n"},
	} {
		if got := read(tt.o); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func stays() program.Program { return program.Program{Stay: program.Forever} }

// set changes the cloud while holding its lock.
func (c *cloud) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}
