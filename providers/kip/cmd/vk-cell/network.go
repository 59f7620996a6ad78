// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// leaseProgram is the name by which the DHCP client starts this program with a lease.
const leaseProgram = "vk-cell-lease"

// startNetwork configures the first network card of the machine with DHCP.
func startNetwork() error {
	if err := runIP("link", "set", "lo", "up"); err != nil {
		return err
	}
	if err := os.WriteFile("/etc/hosts", []byte("127.0.0.1 localhost\n::1 localhost\n"), 0o644); err != nil { //nolint:gosec // all read it
		return err
	}
	name, err := findCard()
	if err != nil {
		return err
	}
	if err := runIP("link", "set", name, "up"); err != nil {
		return err
	}
	out, err := exec.Command("udhcpc", "-i", name, "-n", "-q", "-f", "-t", "10", "-T", "1", "-s", "/bin/"+leaseProgram).CombinedOutput() //nolint:noctx // it bounds itself
	if err != nil {
		return fmt.Errorf("ask for an address: %w: %.300s", err, out)
	}
	return nil
}

// findCard returns the name of the first network card. It waits up to 10 s for one.
func findCard() (string, error) {
	for range 100 { // a driver may not have found its card yet
		all, err := filepath.Glob("/sys/class/net/*/device")
		if err != nil {
			return "", err
		}
		if len(all) > 0 {
			return filepath.Base(filepath.Dir(all[0])), nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return "", fmt.Errorf("the machine has no network card that a module of the image is for")
}

func runIP(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput() //nolint:noctx // it does not wait
	if err != nil {
		return fmt.Errorf("ip %s: %w: %.300s", strings.Join(args, " "), err, out)
	}
	return nil
}

// takeLease applies the lease that udhcpc passes in environment variables.
func takeLease() error {
	if len(os.Args) < 2 || os.Args[1] != "bound" && os.Args[1] != "renew" {
		return nil
	}
	mask := net.ParseIP(os.Getenv("subnet")).To4()
	if mask == nil {
		return fmt.Errorf("the lease has the mask %q", os.Getenv("subnet"))
	}
	bits, _ := net.IPMask(mask).Size()
	name := os.Getenv("interface")
	if err := runIP("addr", "replace", fmt.Sprintf("%s/%d", os.Getenv("ip"), bits), "dev", name); err != nil {
		return err
	}
	if router, _, _ := strings.Cut(os.Getenv("router"), " "); router != "" {
		if err := runIP("route", "replace", "default", "via", router, "dev", name, "onlink"); err != nil {
			return err
		}
	}
	var servers strings.Builder
	for server := range strings.FieldsSeq(os.Getenv("dns")) {
		fmt.Fprintf(&servers, "nameserver %s\n", server)
	}
	return os.WriteFile("/etc/resolv.conf", []byte(servers.String()), 0o644) //nolint:gosec // all read it
}
