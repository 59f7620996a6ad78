// SPDX-License-Identifier: Apache-2.0

package fakecri

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"
)

const (
	running = runtimeapi.ContainerState_CONTAINER_RUNNING
	exited  = runtimeapi.ContainerState_CONTAINER_EXITED
)

// world is a runtime with one sandbox and the image app.
type world struct {
	*Runtime
	t       *testing.T
	client  *Client
	sandbox string
	config  *runtimeapi.PodSandboxConfig
}

func newWorld(t *testing.T, config Config) *world {
	t.Helper()
	r := New(config)
	r.AddImage(Image{Name: "app", Size: 7})
	w := &world{Runtime: r, t: t, client: r.Client()}
	w.config = &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "u1"},
		Labels:       map[string]string{"pod": "web"},
		LogDirectory: t.TempDir(),
	}
	id, err := w.client.RunPodSandbox(t.Context(), w.config, "")
	if err != nil {
		t.Fatal(err)
	}
	w.sandbox = id
	return w
}

func (w *world) create(name string) string {
	w.t.Helper()
	id, err := w.client.CreateContainer(w.t.Context(), w.sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name}, Image: &runtimeapi.ImageSpec{Image: "app"},
		Labels: map[string]string{"container": name}, LogPath: name + ".log",
	}, w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *world) start(name string) string {
	w.t.Helper()
	id := w.create(name)
	if err := w.client.StartContainer(w.t.Context(), id); err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *world) status(id string) *runtimeapi.ContainerStatus {
	w.t.Helper()
	answer, err := w.client.ContainerStatus(w.t.Context(), id, false)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.Status
}

func (w *world) wantCode(what string, err error, want codes.Code) {
	w.t.Helper()
	if got := status.Code(err); got != want {
		w.t.Errorf("%s: %v (%s), want %s", what, err, got, want)
	}
}

func TestContainerLivesAsScripted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		w.Script(ByName("job"), ExitAfter(time.Minute, 3), OOM(0))
		first := w.start("job")
		time.Sleep(time.Minute - 1)
		if s := w.status(first); s.State != running {
			t.Fatalf("before its time: %s", s.State)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		s := w.status(first)
		if s.State != exited || s.ExitCode != 3 || s.Reason != "Error" || s.FinishedAt-s.StartedAt != int64(time.Minute) {
			t.Errorf("a job of a minute that ends with 3: %v", s)
		}
		if err := w.client.RemoveContainer(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if s := w.status(w.start("job")); s.State != exited || s.ExitCode != 137 || s.Reason != "OOMKilled" {
			t.Errorf("after the restart: %v", s)
		}
	})
}

func TestStopContainer(t *testing.T) {
	for _, tt := range []struct {
		name    string
		life    Life
		timeout int64
		code    int32
		took    time.Duration
	}{
		{"at once", Forever(), 30, 143, 0},
		{"takes its time", Life{Stops: 5 * time.Second, CleanStop: true}, 30, 0, 5 * time.Second},
		{"takes too long", Life{Stops: time.Minute}, 30, 137, 30 * time.Second},
		{"ignores it", Life{IgnoresStop: true}, 2, 137, 2 * time.Second},
		{"no time given", Life{CleanStop: true}, 0, 137, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Config{})
				w.Script(ByImage("app"), tt.life)
				id, start := w.start("c"), time.Now()
				if err := w.client.StopContainer(t.Context(), id, tt.timeout); err != nil {
					t.Fatal(err)
				}
				if s := w.status(id); s.State != exited || s.ExitCode != tt.code || time.Since(start) != tt.took {
					t.Errorf("after %s: %s, code %d; want code %d after %s", time.Since(start), s.State, s.ExitCode, tt.code, tt.took)
				}
				if err := w.client.StopContainer(t.Context(), id, tt.timeout); err != nil {
					t.Errorf("stop what has ended: %v", err)
				}
			})
		})
	}
}

func TestErrorsAreStatuses(t *testing.T) {
	w := newWorld(t, Config{})
	ctx := t.Context()
	_, err := w.client.ContainerStatus(ctx, "x", false)
	w.wantCode("status of no container", err, codes.NotFound)
	_, err = w.client.PodSandboxStatus(ctx, "x", false)
	w.wantCode("status of no sandbox", err, codes.NotFound)
	w.wantCode("start no container", w.client.StartContainer(ctx, "x"), codes.NotFound)
	w.wantCode("stop no container", w.client.StopContainer(ctx, "x", 1), codes.NotFound)
	w.wantCode("remove no container", w.client.RemoveContainer(ctx, "x"), codes.OK)
	w.wantCode("stop no sandbox", w.client.StopPodSandbox(ctx, "x"), codes.OK)
	w.wantCode("remove no sandbox", w.client.RemovePodSandbox(ctx, "x"), codes.OK)
	id := w.start("c")
	w.wantCode("start twice", w.client.StartContainer(ctx, id), codes.Unknown)
	_, err = w.client.CreateContainer(ctx, w.sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Image: &runtimeapi.ImageSpec{Image: "app"}}, w.config)
	w.wantCode("same name and attempt", err, codes.Unknown)
	_, err = w.client.CreateContainer(ctx, w.sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "d"}, Image: &runtimeapi.ImageSpec{Image: "other"}}, w.config)
	w.wantCode("image that is not there", err, codes.NotFound)
	_, err = w.client.RunPodSandbox(ctx, w.config, "")
	w.wantCode("same sandbox", err, codes.Unknown)
	_, err = w.client.RunPodSandbox(ctx, w.config, "kata")
	w.wantCode("unknown handler", err, codes.Unknown)
	_, _, err = w.client.ExecSync(ctx, w.create("new"), []string{"true"}, 0)
	w.wantCode("exec before the start", err, codes.Unknown)
	_, err = w.client.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: id})
	w.wantCode("no streaming", err, codes.Unimplemented)
}

func TestStartErrorEndsContainer(t *testing.T) {
	w := newWorld(t, Config{})
	w.Script(ByName("c"), Life{StartError: errors.New("exec: no such file")})
	id := w.create("c")
	w.wantCode("start", w.client.StartContainer(t.Context(), id), codes.Unknown)
	if s := w.status(id); s.State != exited || s.ExitCode != 128 || s.Reason != "StartError" || s.Message != "exec: no such file" {
		t.Errorf("after a start that failed: %v", s)
	}
	if err := os.RemoveAll(w.config.LogDirectory); err != nil {
		t.Fatal(err)
	}
	w.wantCode("no directory for the log", w.client.StartContainer(t.Context(), w.create("d")), codes.Unknown)
}

func TestStoppedSandbox(t *testing.T) {
	w := newWorld(t, Config{IPs: func(int) []string { return []string{"10.0.0.1", "fd00::1"} }})
	id := w.start("c")
	before, err := w.client.PodSandboxStatus(t.Context(), w.sandbox, true)
	if err != nil || before.Status.Network.Ip != "10.0.0.1" || before.Status.Network.AdditionalIps[0].Ip != "fd00::1" || !strings.Contains(before.Info["info"], `"pid":`) {
		t.Fatalf("a sandbox that is ready: %v, %v", before, err)
	}
	if err := w.client.StopPodSandbox(t.Context(), w.sandbox); err != nil {
		t.Fatal(err)
	}
	after, err := w.client.PodSandboxStatus(t.Context(), w.sandbox, false)
	if err != nil || after.Status.State != runtimeapi.PodSandboxState_SANDBOX_NOTREADY || after.Status.Network.Ip != "" {
		t.Errorf("a sandbox that has stopped: %v, %v", after, err)
	}
	if s := w.status(id); s.State != exited || s.ExitCode != 137 {
		t.Errorf("its container: %v", s)
	}
	_, err = w.client.CreateContainer(t.Context(), w.sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "d"}, Image: &runtimeapi.ImageSpec{Image: "app"}}, w.config)
	w.wantCode("create in it", err, codes.Unknown)
	if err := w.client.RemovePodSandbox(t.Context(), w.sandbox); err != nil || len(w.Containers()) != 0 || len(w.Sandboxes()) != 0 {
		t.Errorf("removed: %v, left %v %v", err, w.Containers(), w.Sandboxes())
	}
}

func TestListFilters(t *testing.T) {
	w := newWorld(t, Config{})
	w.Script(ByName("done"), Exit(0))
	a, done := w.start("a"), w.start("done")
	for _, tt := range []struct {
		name   string
		filter *runtimeapi.ContainerFilter
		want   int
	}{
		{"none", nil, 2},
		{"label", &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"container": "a"}}, 1},
		{"other label", &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"container": ""}}, 0},
		{"id", &runtimeapi.ContainerFilter{Id: done}, 1},
		{"sandbox", &runtimeapi.ContainerFilter{PodSandboxId: w.sandbox}, 2},
		{"other sandbox", &runtimeapi.ContainerFilter{PodSandboxId: a}, 0},
		{"created", &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{}}, 0},
		{"ended", &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: exited}}, 1},
	} {
		if got, err := w.client.ListContainers(t.Context(), tt.filter); err != nil || len(got) != tt.want {
			t.Errorf("%s: %d containers, %v; want %d", tt.name, len(got), err, tt.want)
		}
	}
	for _, tt := range []struct {
		name   string
		filter *runtimeapi.PodSandboxFilter
		want   int
	}{
		{"label", &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"pod": "web"}}, 1},
		{"other label", &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"pod": "db"}}, 0},
		{"not ready", &runtimeapi.PodSandboxFilter{State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY}}, 0},
	} {
		if got, err := w.client.ListPodSandbox(t.Context(), tt.filter); err != nil || len(got) != tt.want {
			t.Errorf("%s: %d sandboxes, %v; want %d", tt.name, len(got), err, tt.want)
		}
	}
}

func TestLogIsAFileInCRIFormat(t *testing.T) {
	w := newWorld(t, Config{})
	w.Script(ByName("c"), Life{Output: []string{"hello"}})
	id := w.start("c")
	path := filepath.Join(w.config.LogDirectory, "c.log")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	w.Log(id, "stdout", "still the old file")
	if err := w.client.ReopenContainerLog(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.Log(id, "stderr", "the new one")
	for file, want := range map[string][]string{path + ".1": {"stdout F hello", "stdout F still the old file"}, path: {"stderr F the new one"}} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(data)) {
			at, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if _, err := time.Parse(time.RFC3339Nano, at); err != nil {
				t.Error(err)
			}
			got = append(got, rest)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestCallsFailAsScripted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		boom := status.Error(codes.Internal, "boom")
		w.Fail("StartContainer", 1, boom)
		id := w.create("c")
		w.wantCode("the first", w.client.StartContainer(t.Context(), id), codes.Internal)
		w.Lose("StartContainer", 1, boom)
		w.wantCode("done, and the answer lost", w.client.StartContainer(t.Context(), id), codes.Internal)
		if s := w.status(id); s.State != running {
			t.Errorf("after the lost answer: %s", s.State)
		}
		w.Hang("Status", 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.client.Status(ctx, false)
		w.wantCode("hangs", err, codes.DeadlineExceeded)
		w.Delay("Status", time.Hour)
		start := time.Now()
		if _, err := w.client.Status(t.Context(), false); err != nil || time.Since(start) != time.Hour {
			t.Errorf("delayed: %v after %s", err, time.Since(start))
		}
		w.Fail("Version", -1, boom)
		for range 3 {
			_, err := w.client.Version(t.Context(), "v1")
			w.wantCode("always", err, codes.Internal)
		}
		w.Fail("Version", 0, nil)
		_, err = w.client.Version(t.Context(), "v1")
		w.wantCode("no more", err, codes.OK)
		want := []string{"RunPodSandbox default/web", "CreateContainer default/web/c", "StartContainer default/web/c", "StartContainer default/web/c"}
		if diff := cmp.Diff(want, w.Changes()); diff != "" {
			t.Errorf("the ledger (-want +got):\n%s", diff)
		}
	})
}

func TestEventsAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{})
		events := make(chan *runtimeapi.ContainerEventResponse)
		ended := make(chan error, 1)
		go func() { ended <- w.client.GetContainerEvents(t.Context(), events, nil) }()
		synctest.Wait()
		w.Script(ByName("c"), ExitAfter(time.Second, 0))
		id := w.start("c")
		var got []runtimeapi.ContainerEventType
		for range 3 {
			e := <-events
			if e.ContainerId != id || e.PodSandboxStatus.GetId() != w.sandbox || len(e.ContainersStatuses) != 1 {
				t.Errorf("event %v", e)
			}
			got = append(got, e.ContainerEventType)
		}
		want := []runtimeapi.ContainerEventType{
			runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT,
			runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		w.Restart()
		w.wantCode("the stream", <-ended, codes.Unavailable)
		if err := w.client.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := w.client.ListContainers(t.Context(), nil)
		w.wantCode("a closed client", err, codes.Canceled)
		if list, err := w.Client().ListContainers(t.Context(), nil); err != nil || len(list) != 1 || list[0].Id != id {
			t.Errorf("a new client sees %v, %v", list, err)
		}
	})
}

func TestExecSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Config{Exec: func(_ context.Context, c Container, command []string) Answer {
			return Answer{Stdout: c.Name, Code: len(command), Takes: time.Duration(len(command)) * time.Second}
		}})
		id := w.start("c")
		out, _, err := w.client.ExecSync(t.Context(), id, []string{"a", "b"}, 0)
		var code utilexec.ExitError
		if string(out) != "c" || !errors.As(err, &code) || code.ExitStatus() != 2 {
			t.Errorf("exec: %q, %v", out, err)
		}
		_, _, err = w.client.ExecSync(t.Context(), id, []string{"a", "b"}, time.Second)
		w.wantCode("too long", err, codes.DeadlineExceeded)
	})
}

func TestImages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Config{})
		c, uid := r.Client(), int64(7)
		busy := errors.New("registry is busy")
		r.Publish(Image{Name: "registry.example/app:v1", UID: &uid, Takes: time.Minute, Errors: []error{busy}, Username: "me", Password: "secret"})
		r.Publish(Image{Name: "nothere", Missing: true})
		pull := func(name, password string) (string, error) {
			return c.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: name}, &runtimeapi.AuthConfig{Username: "me", Password: password}, nil)
		}
		if _, err := pull("registry.example/app:v1", "secret"); !errors.Is(err, busy) {
			t.Errorf("the first pull: %v", err)
		}
		if _, err := pull("registry.example/app:v1", "guess"); !strings.Contains(err.Error(), "authorization") {
			t.Errorf("the wrong password: %v", err)
		}
		if _, err := pull("nothere", ""); status.Code(err) != codes.NotFound {
			t.Errorf("an image that does not exist: %v", err)
		}
		start := time.Now()
		ref, err := pull("registry.example/app:v1", "secret")
		if err != nil || !strings.HasPrefix(ref, "registry.example/app@sha256:") || time.Since(start) != time.Minute {
			t.Errorf("pulled %q after %s, %v", ref, time.Since(start), err)
		}
		if _, err := pull("busybox", ""); err != nil {
			t.Error(err)
		}
		for name, want := range map[string]bool{"registry.example/app:v1": true, ref: true, "docker.io/library/busybox:latest": true, "busybox:v2": false} {
			answer, err := c.ImageStatus(t.Context(), &runtimeapi.ImageSpec{Image: name}, false)
			if err != nil || (answer.Image != nil) != want {
				t.Errorf("%s: %v, %v; want it there %t", name, answer, err, want)
			}
		}
		answer, _ := c.ImageStatus(t.Context(), &runtimeapi.ImageSpec{Image: ref}, false)
		if answer.Image.Uid.GetValue() != uid {
			t.Errorf("the user of the image: %v", answer.Image)
		}
	})
}

func TestRebootEndsEverything(t *testing.T) {
	w := newWorld(t, Config{})
	id := w.start("c")
	w.Reboot()
	if s := w.status(id); s.State != exited || s.ExitCode != 255 {
		t.Errorf("the container: %v", s)
	}
	if s := w.Sandboxes(); len(s) != 1 || s[0].Ready {
		t.Errorf("the sandbox: %v", s)
	}
}

func TestStats(t *testing.T) {
	w := newWorld(t, Config{})
	w.Script(ByName("done"), Exit(0))
	id := w.start("c")
	w.start("done")
	w.SetUsage(id, Usage{CPUNanoSeconds: 5, WorkingSet: 6, DiskBytes: 7})
	list, err := w.client.ListContainerStats(t.Context(), &runtimeapi.ContainerStatsFilter{PodSandboxId: w.sandbox})
	if err != nil || len(list) != 1 || list[0].Cpu.UsageCoreNanoSeconds.Value != 5 || list[0].WritableLayer.UsedBytes.Value != 7 {
		t.Errorf("of containers: %v, %v", list, err)
	}
	if s, err := w.client.PodSandboxStats(t.Context(), w.sandbox); err != nil || s.Linux.Memory.WorkingSetBytes.Value != 6+1<<20 {
		t.Errorf("of the sandbox: %v, %v", s, err)
	}
	old := newWorld(t, Config{NoPodStats: true})
	_, err = old.client.ListPodSandboxStats(t.Context(), nil)
	old.wantCode("an old runtime", err, codes.Unimplemented)
}
