// SPDX-License-Identifier: Apache-2.0

package podenv

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// script turns lines of text into a container, so that a fuzzer can write pods. The first letter of a line
// selects the kind of entry, and the words after it are its values.
func script(text string) corev1.Container {
	var c corev1.Container
	for line := range strings.Lines(text) {
		word := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		word = append(word, "", "", "")
		optional := ptr.To(len(word[3])%2 == 1)
		switch word[0] {
		case "v":
			c.Env = append(c.Env, literal(word[1], word[2]))
		case "f":
			c.Env = append(c.Env, fieldRef(word[1], word[2]))
		case "r":
			ref := &corev1.ResourceFieldSelector{Resource: word[2]}
			if d, err := resource.ParseQuantity(word[3]); err == nil {
				ref.Divisor = d
			}
			c.Env = append(c.Env, corev1.EnvVar{Name: word[1], ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: ref}})
		case "c":
			c.Env = append(c.Env, configMapKey(word[1], "objects", word[2], optional))
		case "s":
			c.Env = append(c.Env, secretKey(word[1], "objects", word[2], optional))
		case "C":
			c.EnvFrom = append(c.EnvFrom, fromConfigMap(word[1], word[2], optional))
		case "S":
			c.EnvFrom = append(c.EnvFrom, fromSecret(word[1], word[2], optional))
		default:
			c.Args = append(c.Args, line)
		}
	}
	return c
}

func FuzzResolve(f *testing.F) {
	for _, seed := range []string{
		"", "v A 1\nv B $(A)$$(A)\nargs $(B)", "C p_ objects\nS q= objects\ns X key\ns Y none x",
		"f IP status.podIP\nv URL $(IP):80\n$(URL)", "f L metadata.labels['app']\nf M metadata.labels['']\n",
		"r CPU limits.cpu 1m\nr MEM limits.memory 1Mi\nr H limits.hugepages-2Mi\nr E requests.cpu -1",
		"r X limits.cpu 1e100\nr X limits.memory 1e-100", "v  \nv A $(\nv A $(A)", "C  gone x\nc K none x\nc K none", "v WEB_PORT mine\n$(WEB_PORT) $(WEB_SERVICE_HOST)",
	} {
		f.Add(seed)
	}
	lister := services(f, service("shop", "web", "10.0.0.2", corev1.ServicePort{Port: 80}))
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, canary) {
			t.Skip("the text itself has the value")
		}
		resolve := func() (*corev1.Pod, *events, error) {
			pod, recorder := podWith(script(text)), &events{}
			data := map[string]map[string]string{"objects": {"key": canary, "k=": canary, "other": canary}}
			err := Resolve(context.Background(), Config{
				Objects: &memoryObjects{ConfigMaps: data, Secrets: data}, Services: lister, Recorder: recorder,
			}, pod)
			return pod, recorder, err
		}
		pod, recorder, err := resolve()
		again, _, errAgain := resolve()
		if diff := cmp.Diff(pod, again); diff != "" || fmt.Sprint(err) != fmt.Sprint(errAgain) {
			t.Fatalf("a second time is different: %v, %v\n%s", err, errAgain, diff)
		}
		if strings.Contains(fmt.Sprint(err, recorder.Messages), canary) {
			t.Fatalf("a value got out: %v %q", err, recorder.Messages)
		}
		if err != nil {
			if notReady, ok := errors.AsType[*NotReadyError](err); ok && (notReady.Reason == "" || notReady.Container != "app") {
				t.Fatalf("%#v is incomplete", notReady)
			}
			return
		}
		c := pod.Spec.Containers[0]
		if len(c.EnvFrom) != 0 {
			t.Fatalf("envFrom is left: %v", c.EnvFrom)
		}
		seen := map[string]bool{}
		for _, v := range c.Env {
			if seen[v.Name] {
				t.Fatalf("%q is there twice", v.Name)
			}
			seen[v.Name] = true
			if from := v.ValueFrom; from != nil && (v.Value != "" || from.ConfigMapKeyRef != nil || from.SecretKeyRef != nil) {
				t.Fatalf("%q is not resolved: %+v", v.Name, v)
			}
		}
	})
}
