// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A container sees the files of another image but may not change them. The image stays on the node as long as
// the container does.
func TestImageAsAVolume(t *testing.T) {
	w := open(t, nil)
	mount := func(sub string) func(*runtimeapi.ContainerConfig) {
		return func(c *runtimeapi.ContainerConfig) {
			c.Mounts = []*runtimeapi.Mount{{ContainerPath: "/other", Image: &runtimeapi.ImageSpec{Image: "demo"}, ImageSubPath: sub}}
		}
	}
	id := w.run("main", mount(""), "sleep", "600")
	out, _, err := w.ExecSync(t.Context(), id, []string{"/other/bin/cat", "/proc/self/mountinfo"}, time.Minute)
	if err != nil {
		t.Errorf("run a program of the volume: %v, %s", err, out)
	}
	if !readOnlyMount(string(out), "/other") {
		t.Errorf("want /other to be read-only:\n%s", out)
	}
	if err := w.Images().RemoveImage(t.Context(), &runtimeapi.ImageSpec{Image: w.status(id).GetImageId()}); err == nil {
		t.Error("the image of a volume was removed")
	}
	if _, err := w.tryRun("absent", mount("no/such"), "sleep", "1"); err == nil {
		t.Error("a part that the image does not have: got no error")
	}
	if _, err := w.tryRun("outside", mount("../.."), "sleep", "1"); err == nil {
		t.Error("what is outside of the image was mounted")
	}
}

func readOnlyMount(mountinfo, target string) bool {
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 5 && fields[4] == target {
			return slices.Contains(strings.Split(fields[5], ","), "ro")
		}
	}
	return false
}
