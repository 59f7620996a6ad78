// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/images"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// account is a user in the passwd file of an image.
type account struct {
	uid, gid uint32
	name     string
	home     string
}

// setUser sets the user of the container, and returns its home directory.
func (r *Runtime) setUser(spec *shim.Spec, security *runtimeapi.LinuxContainerSecurityContext, image images.Image) (string, error) {
	if !r.isContained() && security.GetRunAsUser() == nil {
		spec.UID, spec.GID = uint32(os.Geteuid()), uint32(os.Getegid())
		home, _ := os.UserHomeDir()
		return cmp.Or(home, "/"), nil
	}
	files := accounts{}
	if r.isContained() {
		files.dir = r.images.Root(image.ID)
	}
	wanted, group, _ := strings.Cut(image.Config.User, ":")
	switch {
	case security.GetRunAsUser() != nil:
		wanted, group = strconv.FormatInt(security.GetRunAsUser().GetValue(), 10), ""
	case security.GetRunAsUsername() != "":
		wanted, group = security.GetRunAsUsername(), ""
	}
	if security.GetRunAsGroup() != nil {
		group = strconv.FormatInt(security.GetRunAsGroup().GetValue(), 10)
	}
	a, err := files.findUser(cmp.Or(wanted, "0"))
	if err != nil {
		return "", err
	}
	if group != "" {
		if a.gid, err = files.findGroup(group); err != nil {
			return "", err
		}
	}
	spec.UID, spec.GID = a.uid, a.gid
	spec.Groups = []uint32{a.gid}
	if security.GetSupplementalGroupsPolicy() != runtimeapi.SupplementalGroupsPolicy_Strict {
		spec.Groups = append(spec.Groups, files.groupsOf(a.name)...)
	}
	for _, g := range security.GetSupplementalGroups() {
		spec.Groups = append(spec.Groups, uint32(g))
	}
	slices.Sort(spec.Groups)
	spec.Groups = slices.Compact(spec.Groups)
	if os.Geteuid() == 0 || r.isContained() {
		return a.home, nil
	}
	// Without root, the daemon can run containers only as its own user.
	if spec.UID != uint32(os.Geteuid()) {
		return "", status.Errorf(codes.InvalidArgument, "user %d: the daemon is not root, and with isolation %s its containers run as its own user", spec.UID, r.Isolation())
	}
	spec.Groups = []uint32{spec.GID}
	return a.home, nil
}

// accounts reads /etc/passwd and /etc/group below dir, which another user may control.
type accounts struct{ dir string }

// findUser finds a user by name or number; a number need not be in the files.
func (f accounts) findUser(wanted string) (account, error) {
	number, err := strconv.ParseUint(wanted, 10, 32)
	found := account{uid: uint32(number), home: "/"}
	isNumber := err == nil
	for fields := range f.fileLines("passwd", 6) {
		uid, err1 := strconv.ParseUint(fields[2], 10, 32)
		gid, err2 := strconv.ParseUint(fields[3], 10, 32)
		if err1 != nil || err2 != nil || (isNumber && uid != number) || (!isNumber && fields[0] != wanted) {
			continue
		}
		return account{uid: uint32(uid), gid: uint32(gid), name: fields[0], home: cmp.Or(fields[5], "/")}, nil
	}
	if !isNumber {
		return found, status.Errorf(codes.InvalidArgument, "user %q: the image has none of that name", wanted)
	}
	if number == 0 {
		found.home = "/root"
	}
	return found, nil
}

func (f accounts) findGroup(wanted string) (uint32, error) {
	if number, err := strconv.ParseUint(wanted, 10, 32); err == nil {
		return uint32(number), nil
	}
	for fields := range f.fileLines("group", 3) {
		if gid, err := strconv.ParseUint(fields[2], 10, 32); err == nil && fields[0] == wanted {
			return uint32(gid), nil
		}
	}
	return 0, status.Errorf(codes.InvalidArgument, "group %q: the image has none of that name", wanted)
}

// groupsOf returns the groups with the user as a member.
func (f accounts) groupsOf(user string) []uint32 {
	var all []uint32
	for fields := range f.fileLines("group", 4) {
		gid, err := strconv.ParseUint(fields[2], 10, 32)
		if err == nil && user != "" && slices.Contains(strings.Split(fields[3], ","), user) {
			all = append(all, uint32(gid))
		}
	}
	return all
}

// fileLines returns the lines of a file in etc that have at least least fields.
func (f accounts) fileLines(name string, least int) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		if f.dir == "" {
			return
		}
		root, err := os.OpenRoot(f.dir)
		if err != nil {
			return
		}
		defer root.Close()
		path := filepath.Join("etc", name)
		if info, err := root.Stat(path); err != nil || !info.Mode().IsRegular() {
			return
		}
		file, err := root.Open(path)
		if err != nil {
			return
		}
		defer file.Close()
		for s := bufio.NewScanner(file); s.Scan(); {
			if fields := strings.Split(s.Text(), ":"); len(fields) >= least && !yield(fields) {
				return
			}
		}
	}
}

// capabilityNames are the names of the capabilities, indexed by number.
var capabilityNames = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
	NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT
	SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE
	MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)

// capabilityNamesOf returns the names of the capabilities in a bit mask, as runtimes write them.
func capabilityNamesOf(mask uint64) (names []string) {
	for i, name := range capabilityNames {
		if mask&(1<<i) != 0 {
			names = append(names, "CAP_"+name)
		}
	}
	return names
}

// defaultCapabilities are the capabilities of a root container. MKNOD, which other runtimes grant, is missing,
// because the devices belong to the machine. NET_RAW is granted only in a pod with its own network.
var defaultCapabilities = []string{"CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
	"NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"}

// capabilityMask returns the capabilities of a container as a bit mask.
func capabilityMask(privileged, network bool, asked *runtimeapi.Capability) (uint64, error) {
	if privileged {
		return ^uint64(0), nil
	}
	mask := func(names []string) (m uint64, err error) {
		for _, name := range names {
			name = strings.TrimPrefix(strings.ToUpper(name), "CAP_")
			if name == "ALL" {
				return 1<<len(capabilityNames) - 1, nil
			}
			i := slices.Index(capabilityNames, name)
			if i < 0 {
				return 0, status.Errorf(codes.InvalidArgument, "capability %q is not known", name)
			}
			m |= 1 << i
		}
		return m, nil
	}
	names := defaultCapabilities
	if network {
		names = append(slices.Clone(names), "NET_RAW")
	}
	set, err := mask(names)
	if err != nil {
		return 0, err
	}
	add, err := mask(asked.GetAddCapabilities())
	if err != nil {
		return 0, err
	}
	drop, err := mask(asked.GetDropCapabilities())
	if err != nil {
		return 0, err
	}
	all := uint64(1<<len(capabilityNames) - 1)
	switch {
	case add == all:
		return all &^ drop, nil
	case drop == all:
		return add, nil
	}
	return set&^drop | add, nil
}
