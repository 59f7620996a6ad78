// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestARestartTakesItsTime checks that a group is Restarting and then runs again, and that the emulator accepts
// no request about it before the restart's end or after the group's end.
func TestARestartTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		runner := inprocess.Open(inprocess.New(ctx), inprocess.Objects{})
		s := &Server{Region: "r", Fleet: emulator.NewFleet(runner, &emulator.Objects{}, time.Second)}
		runner.NotifyPods(ctx, s.Report)
		done := make(chan error)
		go func() { done <- runner.RunInBackground(ctx) }()
		r := httptest.NewRequestWithContext(ctx, "POST", "/", nil)
		make := func(name string, p program.Program) url.Values {
			form := url.Values{
				"RegionId": {"r"}, "ContainerGroupName": {name}, "RestartPolicy": {"Never"}, "TerminationGracePeriodSeconds": {"5"}, "Tag.1.Key": {"name"}, "Tag.1.Value": {name},
				"Container.1.Name": {"main"}, "Container.1.Image": {"program"},
			}
			for i, word := range p.Args() {
				form.Set("Container.1.Arg."+string(rune('1'+i)), word)
			}
			answer, err := s.createGroup(r, form)
			if err != nil {
				t.Fatal(err)
			}
			return url.Values{"ContainerGroupId": {answer["ContainerGroupId"].(string)}}
		}
		show := func(name string) (state, began string) {
			synctest.Wait()
			answer, err := s.answerStatuses(r, url.Values{"Tag.1.Key": {"name"}, "Tag.1.Value": {name}})
			if err != nil {
				t.Fatal(err)
			}
			all := answer["Data"].([]object)
			if len(all) != 1 {
				return "", ""
			}
			main := all[0]["PodStatus"].(object)["ContainerStatuses"].([]object)[0]
			if running, ok := main["State"].(object)["Running"].(object); ok {
				began = running["StartedAtstartedAt"].(string)
			}
			return all[0]["Status"].(string), began
		}
		refused := func(form url.Values, status int, code string) {
			t.Helper()
			_, err := s.restartGroup(r, form)
			var f *failure
			if !errors.As(err, &f) || f.status != status || f.code != code {
				t.Errorf("got %v, want %d %s", err, status, code)
			}
		}
		deaf := make("deaf", program.Program{Stay: program.Forever, Deaf: true})
		over := make("over", program.Program{Exit: 1})
		time.Sleep(2 * time.Second)
		state, first := show("deaf")
		if state != "Running" || first == "" {
			t.Fatalf("the group is %s since %q", state, first)
		}
		if _, err := s.restartGroup(r, deaf); err != nil {
			t.Fatal(err)
		}
		refused(deaf, 400, "IncorrectStatus")
		refused(over, 400, "IncorrectStatus")
		refused(url.Values{"ContainerGroupId": {"eci-none"}}, 404, "ContainerGroup.NotFound")
		for _, want := range []struct {
			after time.Duration
			state string
			runs  bool
		}{{0, "Restarting", true}, {5500 * time.Millisecond, "Restarting", false}, {1500 * time.Millisecond, "Running", true}} {
			time.Sleep(want.after)
			if state, began := show("deaf"); state != want.state || (began != "") != want.runs || want.state == "Running" && began == first {
				t.Errorf("after %s more the group is %s, and runs since %q", want.after, state, began)
			}
		}
		if _, err := s.restartGroup(r, deaf); err != nil {
			t.Fatal(err)
		}
		if _, err := s.deleteGroup(r, deaf); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		show("deaf") // this request notices that the group has ended
		time.Sleep(2 * time.Second)
		if state, _ := show("deaf"); state != "" {
			t.Errorf("a group that was deleted while it restarted is %s", state)
		}
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
