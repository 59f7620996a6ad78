// SPDX-License-Identifier: Apache-2.0

package bundle

import "testing"

func TestGroupOfAContainerIsNamedForAllControllers(t *testing.T) {
	own := groupsOf("9:name=systemd:/\n8:pids:/\n4:memory:/process_api/2a5f\n2:cpu,cpuacct:/user\n0::/\n")
	for name, test := range map[string]struct {
		dirs map[string]string
		want string // "": an error
	}{
		"below a daemon that is somewhere else in each": {map[string]string{
			"memory": "/sys/fs/cgroup/memory/process_api/2a5f/pods-n-1/burstable/pod1/vk-1",
			"pids":   "/sys/fs/cgroup/pids/pods-n-1/burstable/pod1/vk-1",
			"cpu":    "/sys/fs/cgroup/cpu/user/pods-n-1/burstable/pod1/vk-1",
		}, "pods-n-1/burstable/pod1/vk-1"},
		"below a parent that is the same in each": {map[string]string{
			"memory": "/sys/fs/cgroup/memory/vk/pod1/vk-1", "pids": "/sys/fs/cgroup/pids/vk/pod1/vk-1",
		}, "/vk/pod1/vk-1"},
		"in one hierarchy only":      {map[string]string{"memory": "/sys/fs/cgroup/memory/process_api/2a5f/vk-1"}, "/process_api/2a5f/vk-1"},
		"without anything in common": {map[string]string{"memory": "/sys/fs/cgroup/memory/vk/vk-1", "pids": "/sys/fs/cgroup/pids/else/vk-1"}, ""},
		"in none":                    {nil, ""},
	} {
		if got, err := pathV1(test.dirs, own); got != test.want || (err == nil) == (test.want == "") {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, test.want)
		}
	}
}
