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

// deployment checks that a Deployment rolls out by its probes, and that a failed probe restarts its container.
func (s *scenario) deployment(t *testing.T) {
	s.must(t, "rollout", "status", "deployment/web", "--timeout="+Patience.String())
	s.must(t, "exec", "deployment/web", "--", "sh", "-c", "echo ill > /ill")
	Until(t, "the container is restarted by its liveness probe, and ready", func() (bool, string) {
		out, err := s.kubectl(t, "get", "pods", "--selector=app=web", "--output=jsonpath={range .items[*].status.containerStatuses[*]}{.restartCount} {.ready}{end}")
		return err == nil && out == "1 true", fmt.Sprint(out, err)
	})
}

// statefulSet has its volumes.
func (s *scenario) statefulSet(t *testing.T) {
	s.must(t, "rollout", "status", "statefulset/members", "--timeout="+Patience.String())
	for _, pod := range []string{"members-0", "members-1"} {
		want := "hello from a ConfigMap\nopen sesame\nopen sesame\nhello 1 from " + pod + "\n"
		Until(t, "the log begins with what is in the volumes", func() (bool, string) {
			out := s.must(t, "logs", pod)
			return strings.HasPrefix(out, want), fmt.Sprintf("%q, want %q", out, want)
		})
	}
}

// job checks that a job completes. Its sidecar is ready before the job and ends after it.
func (s *scenario) job(t *testing.T) {
	s.apply(t, job)
	if words, is := s.refused(t); is {
		s.refusedPod(t, "job-name=work", words)
		return
	}
	s.must(t, "wait", "--for=condition=Complete", "--timeout="+Patience.String(), "job/work")
	if got := s.must(t, "logs", "job/work", "--container=work"); got != "ready\ndone\n" {
		t.Errorf("the log of the container is %q", got)
	}
	if got := s.must(t, "get", "pods", "--selector=job-name=work", "--output=jsonpath={range .items[*]}{.status.phase} {.status.initContainerStatuses[0].state.terminated.reason}{end}"); !strings.HasPrefix(got, "Succeeded ") {
		t.Errorf("the pod is %q", got)
	}
}

var helloLine = regexp.MustCompile(`(?s)hello (\d+) from .*hello (\d+) from `)

// logs follows a log that grows by one line a second.
func (s *scenario) logs(t *testing.T) {
	lines := strings.Count(s.must(t, "logs", "members-0"), "\n")
	k := s.open(t, false, "logs", "--follow", "members-0")
	Until(t, "two lines come that were not there", func() (bool, string) {
		out := k.out.String()
		return strings.Count(out, "\n") >= lines+2 && helloLine.MatchString(out), fmt.Sprintf("%q", out)
	})
	if got := s.must(t, "logs", "members-0", "--tail=1"); strings.Count(got, "\n") != 1 {
		t.Errorf("logs --tail=1 has %q", got)
	}
	if got := s.must(t, "logs", "members-0", "--tail=0"); got != "" {
		t.Errorf("logs --tail=0 has %q", got)
	}
}

// exec runs a shell on a terminal.
func (s *scenario) exec(t *testing.T) {
	k := s.open(t, true, "exec", "-it", "members-0", "--", "sh")
	k.say("echo $((6*7))-\r")
	k.hears("42-\r\n")
	k.say("exit 7\r")
	k.ends(7)
	k = s.open(t, true, "exec", "-it", "members-0", "--", "size")
	k.hears("size 30 100\r\n")
	k.resize(31, 101)
	k.hears("size 31 101\r\n")
	k.say("\x04")
	k.ends(0)
	if out, err := s.kubectl(t, "exec", "members-0", "--", "sh", "-c", "echo out; exit 3"); out != "out\n" || err == nil || !strings.Contains(err.Error(), "exit code 3") {
		t.Errorf("exec of exit 3: got %q, %v", out, err)
	}
}

// cp copies a file into a pod and back.
func (s *scenario) cp(t *testing.T) {
	there, back := filepath.Join(t.TempDir(), "there"), filepath.Join(t.TempDir(), "back")
	content := make([]byte, 300_000)
	_, _ = rand.Read(content) // never fails
	if err := os.WriteFile(there, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s.must(t, "cp", there, "members-0:/tmp/file")
	s.must(t, "cp", "members-0:/tmp/file", back)
	if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes came back (%v) that differ from the %d that went there", len(got), err, len(content))
	}
}

// attach checks that attach shows the output of the main process.
func (s *scenario) attach(t *testing.T) {
	if words, is := s.refused(t); is {
		out, err := s.kubectl(t, "attach", "members-0")
		failsWith(t, words, out, err)
		return
	}
	k := s.open(t, false, "attach", "members-0")
	k.hears(" from members-0\n")
}

// attachTerminal talks to the main process.
func (s *scenario) attachTerminal(t *testing.T) {
	s.apply(t, shell)
	s.must(t, "label", "pod", "shell", "app=shell")
	if words, is := s.refused(t); is {
		s.refusedPod(t, "app=shell", words)
		return
	}
	s.must(t, "wait", "--for=condition=Ready", "--timeout="+Patience.String(), "pod/shell")
	k := s.open(t, true, "attach", "-it", "shell")
	k.say("echo $((6*7))-\r")
	k.hears("42-\r\n")
}

var forwarding = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+) -> `)

// portForward makes three connections to a port.
func (s *scenario) portForward(t *testing.T) {
	args := []string{"port-forward", "--address=127.0.0.1", "deployment/web", fmt.Sprintf(":%d", s.port)}
	k := s.open(t, false, args...)
	k.hears("Forwarding from ")
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
	if words, is := s.refused(t); is {
		got, err := get()
		if err == nil {
			t.Errorf("the port answers %q", got)
		}
		k.hears(words)
		return
	}
	for range 3 {
		if got, err := get(); err != nil || !strings.HasPrefix(got, "hello, ") {
			t.Errorf("the port answers %q (%v)", got, err)
		}
	}
}

// renewed waits for a second token in the container. The home API server must accept both tokens, and the remote
// API server must accept neither.
func (s *scenario) renewed(t *testing.T, first string) {
	second := s.awaitToken(first)
	for name, token := range map[string]string{"first": first, "second": second} {
		if who := review(t, s.api, token); who != "system:serviceaccount:"+s.namespace+":app members-0" {
			t.Errorf("the home API server says that the %s token is that of %q", name, who)
		}
		if who := review(t, s.remote.API, token); who != "" {
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
		token, err := s.kubectl(s.T, "exec", "members-0", "--", "cat", "/tokens/token")
		if err == nil && token != "" && token != than {
			return token
		}
		select {
		case <-ticker.C:
		case <-timeout:
			s.Fatalf("waited %s for another token in the container than %q: %v\n%s", patience, than, err, s.states())
		}
	}
}

// review returns the user and the pod of a token according to an API server, or "" if the API server does not
// accept the token.
func review(t *testing.T, api *testapi.API, token string) string {
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
