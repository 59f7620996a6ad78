// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/remotecluster"
)

func homeOf(node string) remotecluster.Home {
	return remotecluster.Home{Cluster: "scenario", Node: node}
}

// checkDeployment checks that a Deployment rolls out by its probes, and that a failed probe restarts its container.
func (s *scenario) checkDeployment(t *testing.T) {
	s.mustKubectl(t, "rollout", "status", "deployment/web", "--timeout="+Patience.String())
	s.mustKubectl(t, "exec", "deployment/web", "--", "sh", "-c", "echo ill > /ill")
	Until(t, "the container is restarted by its liveness probe, and ready", func() (bool, string) {
		out, err := s.runKubectl(t, "get", "pods", "--selector=app=web", "--output=jsonpath={range .items[*].status.containerStatuses[*]}{.restartCount} {.ready}{end}")
		return err == nil && out == "1 true", fmt.Sprint(out, err)
	})
}

// statefulSet checks a StatefulSet with volumes.
func (s *scenario) statefulSet(t *testing.T) {
	s.mustKubectl(t, "rollout", "status", "statefulset/members", "--timeout="+Patience.String())
	for _, pod := range []string{"members-0", "members-1"} {
		want := "hello from a ConfigMap\nopen sesame\nopen sesame\nhello 1 from " + pod + "\n"
		Until(t, "the log begins with what is in the volumes", func() (bool, string) {
			out := s.mustKubectl(t, "logs", pod)
			return strings.HasPrefix(out, want), fmt.Sprintf("%q, want %q", out, want)
		})
	}
}

// checkJob checks that a job completes. Its sidecar is ready before the job and ends after it.
func (s *scenario) checkJob(t *testing.T) {
	s.applyObjects(t, job)
	if words, is := s.mustRefuse(t); is {
		s.refusedPod(t, "job-name=work", words)
		return
	}
	s.mustKubectl(t, "wait", "--for=condition=Complete", "--timeout="+Patience.String(), "job/work")
	if got := s.mustKubectl(t, "logs", "job/work", "--container=work"); got != "ready\ndone\n" {
		t.Errorf("the log of the container is %q", got)
	}
	if got := s.mustKubectl(t, "get", "pods", "--selector=job-name=work", "--output=jsonpath={range .items[*]}{.status.phase} {.status.initContainerStatuses[0].state.terminated.reason}{end}"); !strings.HasPrefix(got, "Succeeded ") {
		t.Errorf("the pod is %q", got)
	}
}

var helloLine = regexp.MustCompile(`(?s)hello (\d+) from .*hello (\d+) from `)

// followLogs follows a log that grows by one line a second.
func (s *scenario) followLogs(t *testing.T) {
	lines := strings.Count(s.mustKubectl(t, "logs", "members-0"), "\n")
	k := s.openSession(t, false, "logs", "--follow", "members-0")
	Until(t, "two lines come that were not there", func() (bool, string) {
		out := k.out.String()
		return strings.Count(out, "\n") >= lines+2 && helloLine.MatchString(out), fmt.Sprintf("%q", out)
	})
	if got := s.mustKubectl(t, "logs", "members-0", "--tail=1"); strings.Count(got, "\n") != 1 {
		t.Errorf("logs --tail=1 has %q", got)
	}
	if got := s.mustKubectl(t, "logs", "members-0", "--tail=0"); got != "" {
		t.Errorf("logs --tail=0 has %q", got)
	}
}

// execShell runs a shell on a terminal.
func (s *scenario) execShell(t *testing.T) {
	k := s.openSession(t, true, "exec", "-it", "members-0", "--", "sh")
	k.typeText("echo $((6*7))-\r")
	k.awaitText("42-\r\n")
	k.typeText("exit 7\r")
	k.awaitExit(7)
	k = s.openSession(t, true, "exec", "-it", "members-0", "--", "size")
	k.awaitText("size 30 100\r\n")
	k.resizeTerminal(31, 101)
	k.awaitText("size 31 101\r\n")
	k.typeText("\x04")
	k.awaitExit(0)
	if out, err := s.runKubectl(t, "exec", "members-0", "--", "sh", "-c", "echo out; exit 3"); out != "out\n" || err == nil || !strings.Contains(err.Error(), "exit code 3") {
		t.Errorf("exec of exit 3: got %q, %v", out, err)
	}
}

// copyFile copies a file into a pod and back.
func (s *scenario) copyFile(t *testing.T) {
	there, back := filepath.Join(t.TempDir(), "there"), filepath.Join(t.TempDir(), "back")
	content := make([]byte, 300_000)
	_, _ = rand.Read(content) // never fails
	if err := os.WriteFile(there, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s.mustKubectl(t, "cp", there, "members-0:/tmp/file")
	s.mustKubectl(t, "cp", "members-0:/tmp/file", back)
	if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes came back (%v) that differ from the %d that went there", len(got), err, len(content))
	}
}

// checkAttach checks that attach shows the output of the main process.
func (s *scenario) checkAttach(t *testing.T) {
	if words, is := s.mustRefuse(t); is {
		out, err := s.runKubectl(t, "attach", "members-0")
		failsWith(t, words, out, err)
		return
	}
	k := s.openSession(t, false, "attach", "members-0")
	k.awaitText(" from members-0\n")
}

// attachTerminal checks attach with a terminal: it writes to the main process, and reads its output.
func (s *scenario) attachTerminal(t *testing.T) {
	s.applyObjects(t, shell)
	s.mustKubectl(t, "label", "pod", "shell", "app=shell")
	if words, is := s.mustRefuse(t); is {
		s.refusedPod(t, "app=shell", words)
		return
	}
	s.mustKubectl(t, "wait", "--for=condition=Ready", "--timeout="+Patience.String(), "pod/shell")
	k := s.openSession(t, true, "attach", "-it", "shell")
	k.typeText("echo $((6*7))-\r")
	k.awaitText("42-\r\n")
}

var forwarding = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+) -> `)

// portForward makes three connections to a port.
func (s *scenario) portForward(t *testing.T) {
	args := []string{"port-forward", "--address=127.0.0.1", "deployment/web", fmt.Sprintf(":%d", s.port)}
	k := s.openSession(t, false, args...)
	k.awaitText("Forwarding from ")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	get := func() (string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+forwarding.FindStringSubmatch(k.out.String())[1], http.NoBody)
		if err != nil {
			return "", err
		}
		answer, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return string(body), err
	}
	if words, is := s.mustRefuse(t); is {
		got, err := get()
		if err == nil {
			t.Errorf("the port answers %q", got)
		}
		k.awaitText(words)
		return
	}
	for range 3 {
		if got, err := get(); err != nil || !strings.HasPrefix(got, "hello, ") {
			t.Errorf("the port answers %q (%v)", got, err)
		}
	}
}

// awaitRenewal waits for a second token in the container. The home API server must accept both tokens, and the remote
// API server must accept neither.
func (s *scenario) awaitRenewal(t *testing.T, first string) {
	second := s.awaitToken(first)
	for name, token := range map[string]string{"first": first, "second": second} {
		if who := reviewToken(t, s.api, token); who != "system:serviceaccount:"+s.namespace+":app members-0" {
			t.Errorf("the home API server says that the %s token is that of %q", name, who)
		}
		if who := reviewToken(t, s.remote.API, token); who != "" {
			t.Errorf("the remote API server takes the %s token, for that of %q", name, who)
		}
	}
}

// awaitToken returns the token in the container once it differs from the given one.
func (s *scenario) awaitToken(than string) string {
	patience, every := Patience, time.Second
	if s.long && than != "" {
		patience, every = 12*time.Minute, 15*time.Second
	}
	ticker, timeout := time.NewTicker(every), time.After(patience)
	defer ticker.Stop()
	for {
		token, err := s.runKubectl(s.T, "exec", "members-0", "--", "cat", "/tokens/token")
		if err == nil && token != "" && token != than {
			return token
		}
		select {
		case <-ticker.C:
		case <-timeout:
			s.Fatalf("waited %s for another token in the container than %q: %v\n%s", patience, than, err, s.podStates())
		}
	}
}

// reviewToken returns the user and the pod of a token according to an API server, or "" if the API server does not
// accept the token.
func reviewToken(t *testing.T, api *testapi.API, token string) string {
	t.Helper()
	got, err := api.Client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Status.Authenticated {
		return ""
	}
	return got.Status.User.Username + " " + strings.Join(got.Status.User.Extra["authentication.kubernetes.io/pod-name"], ",")
}
