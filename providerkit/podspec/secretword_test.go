// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestSecretWordIsFound: SecretWord finds a Secret in a command or argument, directly, through another variable,
// and if the variable may come from a whole Secret.
func TestSecretWordIsFound(t *testing.T) {
	from := func(name string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}
	}
	url := corev1.EnvVar{Name: "URL", Value: "db://$(PW)@db"}
	of := []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}
	for name, c := range map[string]struct {
		c    corev1.Container
		want *field.Path
	}{
		"an argument":           {corev1.Container{Env: []corev1.EnvVar{from("PW")}, Args: []string{"a", "--pw=$(PW)"}}, field.NewPath("c", "args").Index(1)},
		"a command":             {corev1.Container{Env: []corev1.EnvVar{from("PW")}, Command: []string{"$(PW)"}}, field.NewPath("c", "command").Index(0)},
		"through another":       {corev1.Container{Env: []corev1.EnvVar{from("PW"), url}, Args: []string{"$(URL)"}}, field.NewPath("c", "args").Index(0)},
		"of a whole Secret":     {corev1.Container{EnvFrom: of, Args: []string{"$(PW)"}}, field.NewPath("c", "args").Index(0)},
		"a command of a shell":  {corev1.Container{EnvFrom: of, Command: []string{"sh", "-c", "echo $(date); exec app"}}, nil},
		"a shell expands it":    {corev1.Container{Env: []corev1.EnvVar{from("PW")}, Args: []string{"$PW $$(PW) ${PW} $("}}, nil},
		"another variable":      {corev1.Container{EnvFrom: of, Env: []corev1.EnvVar{from("PW"), {Name: "A", Value: "b"}}, Args: []string{"$(A)"}}, nil},
		"it does not expand it": {corev1.Container{Env: []corev1.EnvVar{url, from("PW")}, Args: []string{"$(URL)"}}, nil},
	} {
		if got := SecretWord(&c.c, &corev1.Container{Env: []corev1.EnvVar{{Name: "PW"}, {Name: "A"}, {Name: "URL"}}}, field.NewPath("c")); got.String() != c.want.String() {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// TestSecretVariables checks that a variable with a part of a Secret is found: by its source, by a reference, or because
// it may be a key of a Secret.
func TestSecretVariables(t *testing.T) {
	key := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}
	c := &corev1.Container{Env: []corev1.EnvVar{{Name: "PW", ValueFrom: key}, {Name: "URL", Value: "db://$(PW)@db"}, {Name: "DOLLAR", Value: "$$(PW)"}, {Name: "PLAIN", Value: "x"}}}
	resolved := &corev1.Container{Env: []corev1.EnvVar{{Name: "PW"}, {Name: "URL"}, {Name: "DOLLAR"}, {Name: "PLAIN"}, {Name: "KEY"}}}
	want := map[string]bool{"PW": true, "URL": true}
	check := func() {
		t.Helper()
		for got, e := SecretVariables(c, resolved), 0; e < len(resolved.Env); e++ {
			if name := resolved.Env[e].Name; got[name] != want[name] {
				t.Errorf("%s: got %t", name, got[name])
			}
		}
	}
	check()
	c.EnvFrom, want["KEY"] = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}, true
	check()
}
