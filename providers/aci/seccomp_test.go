// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestSeccompProfiles checks that a profile is a file of this machine that the configuration names.
func TestSeccompProfiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/own.json", `{"defaultAction": "SCMP_ACT_ERRNO"}`)
	write(t, dir+"/default.json", `{"defaultAction": "SCMP_ACT_LOG"}`)
	write(t, dir+"/bad.json", `{`)
	both := Seccomp{Directory: dir, RuntimeDefault: dir + "/default.json"}
	profile := func(kind corev1.SeccompProfileType, file string) *corev1.SeccompProfile {
		p := &corev1.SeccompProfile{Type: kind}
		if file != "" {
			p.LocalhostProfile = &file
		}
		return p
	}
	for name, c := range map[string]struct {
		from      Seccomp
		pod, main *corev1.SeccompProfile
		want      string // a part of the message, or the beginning of the profile in base64
		err       bool
	}{
		"none":                   {both, nil, nil, "", false},
		"unconfined":             {Seccomp{}, profile("Unconfined", ""), nil, "", false},
		"of the pod":             {both, profile("RuntimeDefault", ""), nil, "eyJkZWZhdWx0QWN0aW9uIjogIlNDTVBfQUNUX0xPRyJ9", false},
		"of the container":       {both, profile("RuntimeDefault", ""), profile("Localhost", "own.json"), "eyJkZWZhdWx0QWN0aW9uIjogIlNDTVBfQUNUX0VSUk5PIn0=", false},
		"no default":             {Seccomp{Directory: dir}, profile("RuntimeDefault", ""), nil, "name seccomp.runtimeDefault", true},
		"no directory":           {Seccomp{}, nil, profile("Localhost", "own.json"), "name seccomp.directory", true},
		"outside of it":          {both, nil, profile("Localhost", "../own.json"), "want RuntimeDefault", true},
		"not there":              {both, nil, profile("Localhost", "none.json"), "cannot be read", true},
		"no JSON":                {both, nil, profile("Localhost", "bad.json"), "no JSON", true},
		"of a kind that is none": {both, nil, profile("Other", ""), "want RuntimeDefault", true},
	} {
		r := whole()
		r.Pod.Spec.SecurityContext.SeccompProfile = c.pod
		r.Pod.Spec.Containers[0].SecurityContext.SeccompProfile = c.main
		got, err := c.from.profileOf(r.Pod, &r.Pod.Spec.Containers[0], field.NewPath("spec", "containers").Index(0))
		if c.err && (err == nil || !strings.Contains(err.Error(), c.want)) || !c.err && (err != nil || got != c.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
		if err != nil {
			continue
		}
		r.seccomp = map[string]string{"main": got}
		group, err := testMapping(t).group(r)
		if err != nil || value(group.Properties.Containers[0].Properties.SecurityContext.SeccompProfile) != c.want {
			t.Errorf("%s: the group has another profile, %v", name, err)
		}
	}
	asks := programPod("u-1", stays)
	asks.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: profile("RuntimeDefault", "")}
	own := asks.DeepCopy()
	own.Spec.SecurityContext.SeccompProfile = profile("Localhost", "own.json")
	for declared, conf := range map[bool]Config{true: {Seccomp: both}, false: {}} {
		d := conf.Capabilities()
		if len(d.Check(asks)) > 0 || len(d.Unenforced(asks)) == 0 != declared {
			t.Errorf("with %+v the default is refused: %v, and left out: %v", conf.Seccomp, d.Check(asks), d.Unenforced(asks))
		}
		if lacks := d.Check(own); len(lacks) == 0 != declared {
			t.Errorf("with %+v a profile of the pod is refused: %v", conf.Seccomp, lacks)
		}
	}
}
