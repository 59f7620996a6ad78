// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestPodWithSecrets checks that the least policy is enough for a pod with secrets, and that neither the job nor
// the disks of Nomad have the secrets.
func TestPodWithSecrets(t *testing.T) {
	a := newAgent(t, agent{acl: true, extra: `log_level = "TRACE"`})
	c, _ := withTokenFile(t, a, "secrets")
	odd := "{{ key \"x\" }} ${HOME} %{if} $${x}\x01\n[[[[ ]]]]"
	h := openHome(t, c, objects{configMap: map[string][]byte{"odd": []byte(odd)}, secret: map[string][]byte{"password": []byte(canary + " \"quoted\" ${X}\nline")}})
	pod := shellPod("secrets", DriverExec, `printf '%s|' "$PASSWORD" "$0"; cat /conf/odd; printf '|'; cat /keys/password; printf '|'; cat /keys/token; printf '|'; stat -c %a /keys/password; `+forever)
	m := &pod.Spec.Containers[0]
	m.Command = append(m.Command, "${HOME} %{x} $$(A)")
	m.Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "password"}}}}
	m.VolumeMounts = []corev1.VolumeMount{{Name: "conf", MountPath: "/conf"}, {Name: "keys", MountPath: "/keys"}}
	mode := int32(0o400)
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
		{Name: "keys", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{}}, {ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		}}}},
	}
	h.create(pod)
	h.until(pod, "running", phase(corev1.PodRunning))
	secret := canary + " \"quoted\" ${X}\nline"
	want := strings.Join([]string{secret, "${HOME} %{x} $(A)", odd, secret, canary + "-token", "400"}, "|")
	var got string
	if !await(t, func() bool { got = h.log(pod); return got == want }) {
		t.Errorf("the container sees\n%q, want\n%q", got, want)
	}
	a.hasNoCanary(t, h.d.store.owner.jobID(string(pod.UID)))
	h.remove(pod)
	a.nothingLeft(t)
}

// hasNoCanary fails the test if the value of a secret is in a dump of Nomad, an event, the log with all details,
// or a file of the agent's directory that is not in memory. The output of the program itself does not count.
func (a *agent) hasNoCanary(t *testing.T, job string) {
	t.Helper()
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))[:16]
	var dumps []string
	for _, path := range []string{
		"/v1/job/" + job, "/v1/job/" + job + "/allocations", "/v1/job/" + job + "/evaluations", "/v1/job/" + job + "/versions", "/v1/job/" + job + "/summary",
		"/v1/jobs?meta=true", "/v1/vars", "/v1/allocations?task_states=true", "/v1/evaluations", "/v1/agent/self",
	} {
		var out any
		if err := a.do(http.MethodGet, path, nil, &out); err != nil {
			t.Fatal(err)
		}
		dumps = append(dumps, fmt.Sprint(out))
	}
	all, err := a.allocs(job)
	if err != nil || len(all) != 1 {
		t.Fatalf("got %d allocations, %v", len(all), err)
	}
	var out any
	if err := a.do(http.MethodGet, "/v1/allocation/"+all[0].ID, nil, &out); err != nil {
		t.Fatal(err)
	}
	dumps = append(dumps, fmt.Sprint(out), a.stream(t, all[0].ID))
	log, err := os.ReadFile(filepath.Join(a.dir, "log"))
	if err != nil || !strings.Contains(string(log), all[0].ID) {
		t.Errorf("the log of the agent does not tell of the allocation, %v, so the search proves nothing", err)
	}
	for i, dump := range append(dumps, string(log)) {
		if strings.Contains(dump, canary) || strings.Contains(dump, encoded) {
			t.Errorf("dump %d of Nomad has the value of a secret", i)
		}
	}
	data := filepath.Join(a.dir, "data")
	find := fmt.Sprintf(`find %s -xdev -type f ! -path '*/alloc/logs/*' -exec grep -l -a -e %s -e %s {} +`, data, canary, encoded)
	files, _ := exec.Command("sh", "-c", find).Output() // grep exits with 1 if it finds nothing
	if len(files) == 0 {
		t.Error("the state of the client has no value of a secret, so the README says something else, or the search finds nothing")
	}
	for _, file := range strings.Fields(string(files)) {
		if err := onlyRoot(data, file); err != nil {
			t.Errorf("a file with the value of a secret is not for root alone: %v", err)
		}
	}
	mounted, _ := exec.Command("sh", "-c", "grep -l "+canary+" "+filepath.Join(a.dir, "data/alloc", all[0].ID, "main/secrets/vk/keys/*")).Output()
	if len(mounted) == 0 {
		t.Error("the file of the secret is not where it is looked for, so the search proves nothing")
	}
}

// stream returns the text of the event stream until an allocation runs.
func (a *agent) stream(t *testing.T, alloc string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/v1/event/stream?index=1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Nomad-Token", a.token)
	answer, err := a.http().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var all strings.Builder
	for lines := bufio.NewReader(answer.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream does not tell of the allocation: %v", err)
		}
		all.WriteString(line)
		if strings.Contains(line, alloc) && strings.Contains(line, `"ClientStatus":"running"`) {
			return all.String()
		}
	}
}

// onlyRoot returns an error if a user other than root can read a file below a directory. The mode of the file,
// or of a directory above it, must keep other users out.
func onlyRoot(root, file string) error {
	for at := file; len(at) >= len(root); at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		if of := info.Sys().(*syscall.Stat_t).Uid; of == 0 && info.Mode().Perm()&0o077 == 0 {
			return nil
		}
	}
	return fmt.Errorf("%s can be read by others", file)
}
