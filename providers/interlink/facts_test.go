// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// facts describe how an API server with a plugin answers, in normalized words.
type facts struct {
	// Unknown is the answer about a pod that was never created, and DeleteUnknown the answer to its deletion.
	Unknown, DeleteUnknown string
	// Job reports whether the state of a pod has the ID of its job. Ready and Started describe a running
	// container.
	Job, Ready bool
	Started    string
	// Batch is the number of answers about two pods that neither the server nor the plugin remembers.
	Batch string
	// Keeps reports whether a plugin that has just answered about one pod has no answer about another.
	Keeps bool
	// Deleted is the answer about a deleted pod.
	Deleted string
}

// learn asks an API server for its facts. It creates two pods, and removes them.
func learn(t *testing.T, c *client, pods [3]*corev1.Pod) (f facts) {
	t.Helper()
	a, b, unknown := pods[0], pods[1], pods[2]
	say := func(pod *corev1.Pod) (string, *wire.PodStatus) {
		said, err := c.statuses(t.Context(), []*corev1.Pod{stub(pod)})
		switch {
		case err != nil:
			return kind(err), nil
		case len(said) == 0:
			return "no entry", nil
		case !told(said[0]):
			return "an entry without state and job", nil
		}
		return "an entry", &said[0]
	}
	settle := func() { // waits until a plugin that repeats its answers asks its batch system again
		timer := time.NewTimer(keptFor + time.Second)
		defer timer.Stop()
		<-timer.C
	}
	forget := func(pods ...*corev1.Pod) {
		for _, pod := range pods {
			if err := c.forget(t.Context(), string(pod.UID)); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.Unknown, _ = say(unknown)
	f.DeleteUnknown = "accepted"
	if err := c.remove(t.Context(), deletion(unknown)); err != nil {
		f.DeleteUnknown = kind(err)
	}
	for _, pod := range pods[:2] {
		if _, err := c.create(t.Context(), wire.Create{Pod: pod, ConfigMaps: []corev1.ConfigMap{}, Secrets: []corev1.Secret{}, Projected: []corev1.ConfigMap{}}); err != nil {
			t.Fatal(err)
		}
	}
	var s *wire.PodStatus
	for begin := time.Now(); s == nil || len(s.Containers) != 1 || s.Containers[0].State.Running == nil; {
		if time.Since(begin) > time.Minute {
			t.Fatalf("pod %s does not run: %+v", a.Name, s)
		}
		settle()
		_, s = say(a)
	}
	f.Job, f.Ready, f.Started = s.JobID != "", s.Containers[0].Ready, "not told"
	if started := s.Containers[0].Started; started != nil {
		f.Started = fmt.Sprint(*started)
	}
	settle()
	forget(a, b)
	said, err := c.statuses(t.Context(), stubs([]*corev1.Pod{a, b}))
	if err != nil {
		t.Fatal(err)
	}
	f.Batch = fmt.Sprintf("%d of 2", len(said))
	settle()
	_, _ = say(a)
	forget(b)
	entry, _ := say(b)
	f.Keeps = entry == "no entry"
	for _, pod := range pods[:2] {
		if err := c.remove(t.Context(), deletion(pod)); err != nil {
			t.Fatal(err)
		}
	}
	settle()
	f.Deleted, _ = say(a)
	return f
}

// kind returns an error in the words of facts.
func kind(err error) string {
	var answer *answerError
	switch {
	case lacksPod(err, ""):
		return "404 of the plugin"
	case errors.As(err, &answer) && answer.plugin:
		return fmt.Sprintf("%d of the plugin", answer.code)
	case errors.As(err, &answer):
		return fmt.Sprintf("%d of the API server", answer.code)
	}
	return err.Error()
}

// factsOf returns the facts of the real programs from the file that `make interlink-field` writes.
func factsOf(mode string) (f facts, err error) {
	data, err := os.ReadFile(factsFile(mode))
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	return f, err
}

func factsFile(mode string) string { return filepath.Join("testdata", "facts", mode+".json") }

// TestPublishedA10DoubleAnswersAsTheRealPrograms compares the double with the facts of the real API server and
// the real plugins.
func TestPublishedA10DoubleAnswersAsTheRealPrograms(t *testing.T) {
	for _, mode := range []string{"slurm", "sdk"} {
		want, err := factsOf(mode)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			f := newField(t, behaviours[mode])
			c, err := newClient(Config{URL: "http://site.test"})
			if err != nil {
				t.Fatal(err)
			}
			c.http.Transport = direct{f.server}
			got := learn(t, c, [3]*corev1.Pod{f.pod("a", "6000"), f.pod("b", "6000"), f.pod("c", "6000")})
			if got != want {
				t.Errorf("%s: the double answers\n%+v, the real programs\n%+v", mode, got, want)
			}
		})
	}
}
