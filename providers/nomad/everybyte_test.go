// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"encoding/base64"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// everyByte returns each byte that Kubernetes allows in arguments and variables, some characters beyond ASCII,
// and the sequences with a meaning for shells, HCL, templates and files of variables.
func everyByte() string {
	var b strings.Builder
	for c := byte(1); c < 0x80; c++ {
		b.WriteByte(c)
	}
	b.WriteString("äöü€𝄞\u0080\u2028 ${HOME} ${NOMAD_SECRETS_DIR} %{if x} $(id) `id` {{ env \"HOME\" }} [[[[ x ]]]] '\"'\\'' \\n \\u0041 #x\r\nA=b\n$")
	return b.String()
}

// TestEveryByteArrives checks that arguments and variables reach the program unchanged, also through files of
// variables beside a Secret.
func TestEveryByteArrives(t *testing.T) {
	a := sharedAgent(t)
	every := everyByte()
	h := openHome(t, a.config("bytes"), objects{secret: map[string][]byte{"k": []byte(every)}})
	const script = `for v in "$1" "$EVERY" "$HIDDEN"; do printf %s "$v" | base64 -w0; echo; done; ` + forever
	for name, hidden := range map[string]corev1.EnvVar{
		"plain": {Name: "HIDDEN", Value: every},
		"file": {Name: "HIDDEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k",
		}}},
	} {
		pod := shellPod(name, DriverRawExec, script)
		c := &pod.Spec.Containers[0]
		c.Args = []string{"sh", every}
		c.Env = []corev1.EnvVar{{Name: "EVERY", Value: every}, hidden}
		h.create(pod)
		h.until(pod, "running", phase(corev1.PodRunning))
		var lines []string
		if !await(t, func() bool {
			lines = strings.Fields(h.log(pod))
			return len(lines) == 3
		}) {
			t.Fatalf("%s: the log has %q", name, lines)
		}
		for i, what := range []string{"the argument", "the variable", "the other variable"} {
			if got, err := base64.StdEncoding.DecodeString(lines[i]); err != nil || string(got) != every {
				t.Errorf("%s: %s is %q, %v, want %q", name, what, got, err, every)
			}
		}
		h.remove(pod)
	}
}
