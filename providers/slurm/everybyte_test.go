// SPDX-License-Identifier: Apache-2.0

//go:build linux

package slurm

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/slurmtest"
)

// TestEveryByteArrives checks that arguments and variables reach the program unchanged, through Slurm and all
// shells.
func TestEveryByteArrives(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for c := byte(1); c < 0x80; c++ {
		b.WriteByte(c)
	}
	b.WriteString("äöü€𝄞\u0080\u2028 ${HOME} $(id) `id` %j %x \\n '\"'\\'' #SBATCH --wrap=id\r\n#SBATCH --array=1-9\nA=b\n$")
	every := b.String()
	c := slurmtest.Start(t, slurmtest.Options{})
	p, _ := running(t, testConfig(c, "bytes"), nil)
	pod := shell("a", `for v in "$1" "$EVERY"; do printf %s "$v" | base64 -w0; echo; done; base64 -w0 /proc/$$/environ; echo`)
	k := &pod.Spec.Containers[0]
	odd := "%s~`{}[]()<>|&;:'\"\\ !#*+,-./?@^_"
	k.Args, k.Env = []string{"sh", every}, []corev1.EnvVar{{Name: "EVERY", Value: every}, {Name: odd, Value: "odd"}}
	pod.Annotations = map[string]string{"a/b": every}
	pod.Labels = map[string]string{"l": "v"}
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	awaitPhase(t, p, "a", "Succeeded")
	r, err := p.GetContainerLogs(t.Context(), "ns", "a", "c", api.ContainerLogOpts{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	lines := strings.Fields(string(text))
	if err != nil || len(lines) != 3 {
		t.Fatalf("the log has %q, %v", text, err)
	}
	for i, what := range []string{"the argument", "the variable"} {
		if got, err := base64.StdEncoding.DecodeString(lines[i]); err != nil || string(got) != every {
			t.Errorf("%s is %q, %v, want %q", what, got, err, every)
		}
	}
	env, err := base64.StdEncoding.DecodeString(lines[2])
	if want := odd + "=odd"; err != nil || !strings.Contains("\x00"+string(env), "\x00"+want+"\x00") {
		t.Errorf("the environment has not %q: %q, %v", want, env, err)
	}
	out, err := c.Run(t.Context(), "scontrol", "show", "job", "-d", fmt.Sprint(1))
	if err != nil || strings.Contains(out, "SBATCH") || strings.Contains(out, "EVERY") {
		t.Errorf("the job says %q, %v", out, err)
	}
}
