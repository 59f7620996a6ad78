// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
)

// withREST returns a configuration with a token file, and a function that writes the token.
func withREST(t *testing.T, c *slurmtest.Cluster, name, url string) (config Config, write func(token string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	write = func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(c.Token(t, "root", 600))
	config = testConfig(c, name)
	config.REST = &REST{URL: url}
	if err := json.Unmarshal([]byte(`{"file":"`+file+`"}`), &config.REST.Token); err != nil {
		t.Fatal(err)
	}
	return config, write
}

// TestThroughREST runs pods through slurmrestd. Its token expires and is renewed, and the answer to a submission
// is lost on the way.
func TestThroughREST(t *testing.T) {
	t.Parallel()
	c := slurmtest.Start(t, slurmtest.Options{REST: true, GPUs: 2})
	itself, err := url.Parse(c.StartREST(t))
	if err != nil {
		t.Fatal(err)
	}
	var lose atomic.Bool
	var submitted atomic.Int32
	way := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(itself) }, ModifyResponse: func(r *http.Response) error {
		if strings.HasSuffix(r.Request.URL.Path, "/job/submit") {
			submitted.Add(1)
			if lose.Swap(false) {
				return io.ErrUnexpectedEOF
			}
		}
		return nil
	}}
	server := httptest.NewServer(way)
	t.Cleanup(server.Close)
	config, write := withREST(t, c, "rest", server.URL)
	config.BinDir = filepath.Join(c.Dir, "rest-bin") // the only command is srun
	if err := os.Mkdir(config.BinDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/bin/srun", filepath.Join(config.BinDir, "srun")); err != nil {
		t.Fatal(err)
	}
	config.Flags = []string{"--nice", "--switches", "--constraint"}
	p, _ := running(t, config, objects{"s": {Data: map[string][]byte{"key": []byte("value")}}})
	pod := shell("a", "cat /secret/key; echo; trap 'echo asked; exit 3' TERM; while :; do sleep 0.1; done")
	pod.Annotations = map[string]string{AnnotationFlags: "--nice=7"}
	pod.Spec.ActiveDeadlineSeconds = new(int64(600))
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/secret"}}
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
		"nvidia.com/gpu": resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("100Mi"),
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}
	lose.Store(true)
	if err := p.CreatePod(t.Context(), pod); err == nil {
		t.Fatal("the answer of the submission came")
	}
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if n := submitted.Load(); n != 1 {
		t.Errorf("%d submissions, want 1: the job is there", n)
	}
	awaitPhase(t, p, "a", "Running")
	out, err := c.Run(t.Context(), "scontrol", "show", "job", "1", "-d")
	for _, want := range []string{
		"JobName=vk-uid-a", "Partition=main", "NumCPUs=2", "mem=228M", "gpu:1", "TimeLimit=00:12:00", "Nice=7", "Comment=virtual-kubelet/rest/node/ns/a/uid-a", "NumNodes=1",
	} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("the job has not %s: %v", want, err)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
	var said bytes.Buffer
	if err := p.RunInContainer(t.Context(), "ns", "a", "c", []string{"/bin/cat", "/secret/key"}, output{out: &said}); err != nil || said.String() != "value" {
		t.Errorf("exec: %q, %v", said.String(), err)
	}
	if offered, err := p.partition(t.Context()); err != nil || offered.Cpu().Value() != 128 || offered.Memory().Value() != 32000<<20 {
		t.Errorf("the partition offers %v, %v", offered, err)
	}

	refused := shell("b", "true")
	refused.Annotations = map[string]string{AnnotationFlags: "--constraint=nowhere"}
	if err := p.CreatePod(t.Context(), refused); err == nil || !strings.Contains(err.Error(), "Invalid feature specification") {
		t.Errorf("a job that Slurm refuses: %v, want its words", err)
	}
	refused.Annotations = map[string]string{AnnotationFlags: "--switches=1"}
	if err := p.CreatePod(t.Context(), refused); !errdefs.IsInvalidInput(err) {
		t.Errorf("a flag that slurmrestd has no field for: %v", err)
	}
	if _, err := os.Stat(p.place.pod(refused.UID)); !os.IsNotExist(err) {
		t.Errorf("a refused pod left its files: %v", err)
	}

	for what, token := range map[string]string{"is not one": "canary.of.nobody", "has ended by its own time": c.Token(t, "root", 1)} {
		write(token)
		await(t, "the node is not to be ready, as its token "+what, func() (bool, string) {
			p.look()
			err := p.Ping(t.Context())
			return err != nil && strings.Contains(err.Error(), "the token of user root") && !strings.Contains(err.Error(), "canary"), fmt.Sprint(err)
		})
		if got := p.phase(t, "a"); got != "Running" {
			t.Errorf("without a token the pod is %s", got)
		}
		write(c.Token(t, "root", 600))
		p.look()
		await(t, "the node is to be ready again", func() (bool, string) { err := p.Ping(t.Context()); return err == nil, fmt.Sprint(err) })
	}

	began := time.Now()
	r, err := p.GetContainerLogs(t.Context(), "ns", "a", "c", api.ContainerLogOpts{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := p.DeletePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "value\nasked\n" {
		t.Errorf("the log has %q, %v: the container is to be asked to end, and no more than that", text, err)
	}
	await(t, "the pod is to be gone", func() (bool, string) {
		_, err := os.Stat(p.place.pod(pod.UID))
		return os.IsNotExist(err), fmt.Sprint(err)
	})
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("the end took %s: the job was told late", took)
	}

	waits := shell("w", "true")
	waits.Spec.TerminationGracePeriodSeconds = new(int64(30))
	waits.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}
	for _, state := range []string{"DRAIN", "RESUME"} {
		if out, err := c.Run(t.Context(), "scontrol", "update", "NodeName=n1,n2", "State="+state, "Reason=test"); err != nil {
			t.Fatal(out, err)
		}
		if state == "RESUME" {
			break
		}
		p.lookAtPartition(t.Context())
		if err := p.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "has no node that runs jobs") {
			t.Errorf("with drained nodes: %v", err)
		}
		if err := p.CreatePod(t.Context(), waits); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := p.DeletePod(t.Context(), waits); err != nil {
			t.Fatal(err)
		}
		await(t, "a job that waits is to go", func() (bool, string) {
			out, err := c.Run(t.Context(), "squeue", "--noheader", "--format=%i")
			return err == nil && strings.TrimSpace(out) == "", out
		})
		if took := time.Since(began); took > 25*time.Second { // a job that runs may take 50 s: grace period and endTime
			t.Errorf("the end of a job that waits took %s", took)
		}
	}
}

// TestForeignAnswersSayNothing checks that an answer in other words than slurmrestd's never counts as an empty
// list, a refusal or a job.
func TestForeignAnswersSayNothing(t *testing.T) {
	answer, code := "", http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-SLURM-USER-TOKEN") != "" {
			t.Error("a token that is not there was sent")
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	r := newREST(REST{URL: server.URL + "/", User: "u"}, client{})
	args := []string{"--job-name=a", endOfFlags, "s", "p", "d"}
	for _, c := range []struct {
		code int
		text string
		want string
	}{
		{200, "<html>log in</html>", "does not come from slurmrestd"}, {200, "{}", "does not come from slurmrestd"}, {404, "page not found", "does not come from slurmrestd"},
		{302, "", "does not come from slurmrestd"}, {401, "Authentication failure", "does not take the token of user u"},
		{500, `{"meta":{},"errors":[{"error_number":-1,"error":"Unspecified error","description":"Failed while looking for jobs"}],"jobs":[]}`, "Failed while looking for jobs (500)"},
		{200, `{"meta":{},"errors":[],"jobs":7}`, "slurmrestd: squeue"},
	} {
		code, answer = c.code, c.text
		if all, err := r.jobs(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d %q: got %v, %v, want an error with %q", c.code, c.text, all, err, c.want)
		}
		if id, err := r.submit(t.Context(), args); err == nil || !unclear(err) {
			t.Errorf("%d %q: a submission gives %d, %v, want an error that leaves open whether there is a job", c.code, c.text, id, err)
		}
	}
	code, answer = 200, `{"meta":{},"errors":[],"jobs":[{"job_id":1,"job_state":"RUNNING","name":"vk-a","user_name":"u"},{"job_id":2,"name":"vk-b","user_name":"other"},{"job_id":3,"name":"vk-c","user_name":"u","array_task_id":1}]}`
	if all, err := r.jobs(t.Context()); err != nil || len(all) != 1 || all[0].ID != 1 {
		t.Errorf("of another user, or of an array: %v, %v", all, err)
	}
	for _, url := range []string{"https://slurm.example.org:6820", "http://127.0.0.1:6820", "http://localhost:6820", "http://[::1]:6820", "unix:///run/slurmrestd"} {
		if err := (Config{ClusterName: "a", SharedDir: "/s", REST: &REST{URL: url}}).refused(); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, c := range []REST{{}, {URL: "slurm:6820"}, {URL: "ftp://x"}, {URL: "https://"}, {URL: "unix://x"}, {URL: "https://u:p@x"}, {URL: "https://x/slurm"}, {URL: "http://slurm.example.org:6820"}, {URL: "http://10.0.0.1:6820"}, {URL: "http://127.0.0.1.example.org"}, {URL: "https://x", Version: "v9"}, {URL: "https://x", User: "-x"}} {
		if err := (Config{ClusterName: "a", SharedDir: "/s", REST: &c}).refused(); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

func (c Config) refused() error { _, err := c.complete(); return err }
