// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"

	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// TestContainersAreMeasured: the statistics of each running container count its processes and no others.
func TestContainersAreMeasured(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("containers have namespaces of their own: run it as root")
	}
	m := newMeter()
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; read x")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.recordStart("main", cmd.Process.Pid)
	m.recordStart("gone", -1)
	measure := func() statsv1alpha1.PodStats {
		s, err := m.stats()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s := measure()
	if len(s.Containers) != 1 || s.Containers[0].Name != "main" || s.Containers[0].StartTime.IsZero() {
		t.Fatalf("got the containers %+v", s.Containers)
	}
	cpu, memory := *s.Containers[0].CPU.UsageCoreNanoSeconds, *s.Containers[0].Memory.WorkingSetBytes
	if cpu == 0 || cpu > *s.CPU.UsageCoreNanoSeconds || memory == 0 || memory > 64<<20 {
		t.Errorf("the container uses %d ns and %d bytes", cpu, memory)
	}
	if again := measure(); len(again.Containers) != 1 || again.Containers[0].CPU.UsageNanoCores == nil || *again.Containers[0].CPU.UsageCoreNanoSeconds < cpu {
		t.Errorf("the second time: %+v", again.Containers)
	}
	_ = in.Close()
	_ = cmd.Wait() // the shell fails at the end of its input
	if s := measure(); len(s.Containers) != 0 {
		t.Errorf("after its end: %+v", s.Containers)
	}
}
