// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command vk-cell is the agent in a machine that a node has started for a pod.
//
// As the first process of a machine, it prepares kernel modules, file systems, the network, and the user data from the node. Then, or where another system
// has prepared the machine, it runs the agent: see package cell.
//
//	vk-cell agent --user-data FILE [--dir DIR] [--listen ADDRESS]
//
// It powers off the machine when no node has contacted the agent for the time in the user data.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
)

// The linker sets buildVersion: -X main.buildVersion=….
var buildVersion = "development"

func main() {
	var err error
	switch {
	case os.Getpid() == 1:
		err = bootMachine()
	case filepath.Base(os.Args[0]) == leaseProgram:
		err = takeLease()
	case len(os.Args) > 1 && os.Args[1] == "agent":
		err = runAgent(os.Args[2:])
	case len(os.Args) > 1 && os.Args[1] == "version":
		fmt.Println(buildVersion)
	default:
		err = fmt.Errorf("usage: %s agent --user-data FILE [--dir DIR] [--listen ADDRESS]", os.Args[0])
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "vk-cell: %v\n", err)
		os.Exit(1)
	}
}

// runAgent runs the agent until the machine must end, or a signal arrives.
func runAgent(args []string) error {
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	dir := flags.String("dir", "/var/lib/vk-cell", "where the agent keeps its files")
	from := flags.String("user-data", "", "the file with the user data that the node gave to the machine")
	listen := flags.String("listen", fmt.Sprintf(":%d", cell.Port), "the address where the node connects")
	if err := flags.Parse(args); err != nil {
		return err
	}
	data, err := os.ReadFile(*from)
	if err != nil {
		return fmt.Errorf("read the user data: %w", err)
	}
	user, err := cell.ParseUserData(data)
	if err != nil {
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	cgroups := findCgroups()
	if cgroups != "" { // otherwise, containers would keep the score of the agent
		if err := os.WriteFile("/proc/self/oom_score_adj", []byte(agentScore), 0); err != nil {
			return fmt.Errorf("keep the agent when memory is used up: %w", err)
		}
	}
	off := make(chan string, 1)
	measured := newMeter()
	a, err := cell.NewAgent(cell.AgentConfig{
		UserData: user, Dir: *dir, Version: buildVersion, Run: podjob.Run, SetClock: setClock, Stats: measured.stats, SetServices: serviceSetter(user.Token),
		PowerOff: func(why string) { off <- why },
		Job:      podjob.Config{Job: user.Token, Machine: name, Hide: *dir, Confine: true, Started: measured.recordStart, CgroupParent: cgroups, WriteDNS: true, CDI: []string{"/run/cdi", "/etc/cdi"}},
	})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", *listen)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if user.Spot {
		var watching sync.WaitGroup
		watching.Go(func() { newMetadata("http://"+metadataIP).watchSpot(ctx, spotEvery, a.Interrupt) })
		defer watching.Wait()
		defer stop()
	}
	fmt.Fprintf(os.Stderr, "vk-cell %s: the machine is ready for its node at %s\n", buildVersion, l.Addr())
	if err := a.Serve(ctx, l); err != nil {
		return err
	}
	select {
	case why := <-off:
		fmt.Fprintf(os.Stderr, "vk-cell: %s: the machine ends\n", why)
		return powerOff()
	default:
		return nil
	}
}

// agentScore makes the kernel kill containers before the agent when the memory of the machine is used up.
const agentScore = "-998"

// findCgroups returns the parent of the pod's cgroups, or "" if the machine has no controller. It logs which limits of containers the machine cannot
// enforce.
func findCgroups() string {
	missing := podjob.MissingControllers("/sys/fs/cgroup")
	for _, name := range missing {
		fmt.Fprintf(os.Stderr, "vk-cell: the kernel has no controller %s in /sys/fs/cgroup: the machine does not keep such limits of containers\n", name)
	}
	if slices.Contains(missing, "cpu") && slices.Contains(missing, "memory") && slices.Contains(missing, "pids") {
		return ""
	}
	return "/vk-cell"
}

// setClock sets the clock if it is wrong by 2 seconds or more. A connection may cause a smaller difference.
func setClock(now time.Time) {
	if off := time.Until(now); off.Abs() < 2*time.Second {
		return
	}
	t := unix.NsecToTimeval(now.UnixNano())
	if err := unix.Settimeofday(&t); err != nil {
		fmt.Fprintf(os.Stderr, "vk-cell: set the clock: %v\n", err)
	}
}
