// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	vkslog "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/ecs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// written is a text that several goroutines may append to.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (w *written) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(data)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// opened returns a text together with the decoded and unpacked forms of its content.
func opened(text string) string {
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return text
	}
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return text
	}
	inside, _ := io.ReadAll(zipped) // complete archives only
	return text + string(inside)
}

// TestSecretsAreNowhereElse looks for secrets in every request, our log, events, reports and errors: a variable,
// a file, a token and a login. The secret of the token is removed with its pod.
func TestSecretsAreNowhereElse(t *testing.T) {
	c := cloudOf(t)
	conf, err := c.config("home")
	if err != nil {
		t.Fatal(err)
	}
	events := record.NewFakeRecorder(1000)
	in := cli.ProviderInput{NodeName: "node"}
	in.Recorder = events
	p, err := newDriver(t.Context(), in, conf, quick)
	if err != nil {
		t.Fatal(err)
	}
	p.kit.UsePodObjects(values{})
	p.kit.UsePodTokens(values{})
	p.kit.UsePullCredentials(values{})
	var said, reports written
	ctx, cancel := context.WithCancel(log.WithLogger(context.WithoutCancel(t.Context()), vkslog.FromSlog(slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug})))))
	p.kit.NotifyPods(ctx, func(pod *corev1.Pod) { _, _ = reports.Write([]byte(pod.String())) })
	ended := make(chan error, 1)
	go func() { ended <- p.kit.RunInBackground(ctx) }()

	pod := podOf("secret", program.Program{Env: true, Show: []string{"/keys/key", "/token/token"}, Stay: program.Forever})
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	main := &pod.Spec.Containers[0]
	main.Image = "private.example/program"
	main.Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "p"}}}}
	main.VolumeMounts = []corev1.VolumeMount{{Name: "keys", MountPath: "/keys"}, {Name: "token", MountPath: "/token"}}
	withToken := *token.DeepCopy()
	withToken.Projected.Sources[0].ServiceAccountToken.Path = "token"
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys"}}}, {Name: "token", VolumeSource: withToken},
	}
	if _, err := p.key(ctx); err != nil {
		t.Fatal(err)
	}
	packed := map[string]bool{}
	for _, op := range []string{"CreateSecret", "RegisterTaskDefinition", "RunTask"} { // services that quote the request
		mend := c.Break(emulator.Fault{Operations: []string{op}, Answer: func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // the body is in memory
			ecs.Refuse(w, fmt.Errorf("the request says %s", body))
		}})
		err := p.kit.CreatePod(ctx, pod.DeepCopy())
		mend()
		if err == nil || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "H4sI") { // the prefix of an archive
			t.Errorf("%s is refused with a quotation of the request: %v", op, err)
		}
	}
	if err := p.kit.CreatePod(ctx, pod.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	until(t, p, "secret", "running", isRunning)
	lines, err := p.kit.GetContainerLogs(ctx, "shop", "secret", "main", api.ContainerLogOpts{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer lines.Close()
	text, part := "", make([]byte, 1024)
	for !strings.Contains(text, "PASSWORD="+canary) || !strings.Contains(text, canary+"-file") || !strings.Contains(text, canary+"-token") {
		n, err := lines.Read(part)
		if text += string(part[:n]); err != nil {
			t.Fatalf("the container shows %q, %v", text, err)
		}
	}
	own := ownName(p.mapping.owner, pod.UID)
	if !slices.Contains(c.Secrets(), own) {
		t.Errorf("the secret of the token is not there: %v", c.Secrets())
	}
	if err := p.kit.DeletePod(ctx, pod); err != nil {
		t.Fatal(err)
	}
	tick := everyMoment(t)
	for slices.Contains(c.Secrets(), own) {
		tick("the secret of the token is gone with its pod")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}

	for _, r := range c.Requests() {
		var body map[string]any
		inside := fmt.Sprint(r.URL, r.Header) + string(r.Body)
		if (r.Operation == "CreateSecret" || r.Operation == "PutSecretValue") && json.Unmarshal(r.Body, &body) == nil {
			held, _ := body["SecretString"].(string)
			for _, what := range []string{canary + `"`, canary + "-file", canary + "-token", canary + "-login"} {
				if strings.Contains(opened(held), what) {
					packed[what] = true
				}
			}
			delete(body, "SecretString")
			inside = fmt.Sprint(r.URL, r.Header, body)
		}
		if strings.Contains(inside, canary) || strings.Contains(inside, testSecret) {
			t.Errorf("%s has a secret: %s", r.Operation, inside)
		}
	}
	if len(packed) != 4 {
		t.Errorf("secrets were seen in the fields for them: %v, so the search proves nothing", packed)
	}
	close(events.Events)
	var told strings.Builder
	for e := range events.Events {
		told.WriteString(e)
	}
	for what, text := range map[string]string{"our log": said.String(), "a report": reports.String(), "an event": told.String()} {
		if strings.Contains(text, canary) || strings.Contains(text, testSecret) {
			t.Errorf("%s has a secret: %s", what, text)
		}
	}
	pod.Name, pod.UID = "refused", "uid-refused"
	pod.Spec.Containers[0].Command = []string{"$(PASSWORD)"}
	if err := refusal(p.config, pod); err != nil {
		t.Fatal(err)
	}
	if _, err := vaultOf(p.mapping, "k").secrets(testResolved(pod)); err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("a secret in a command: got %v", err)
	}
}
