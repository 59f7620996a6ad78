// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package podnet

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/seccomp"
)

// installFilter allows the system calls for packets and for Go's runtime. All others fail, so an attacker who
// takes over this process cannot open files, run programs, control processes or create namespaces.
func installFilter() error {
	program := seccomp.Program{
		RuleSets: []seccomp.RuleSet{{Rules: allowedCalls(), Action: seccomp.Allow}},
		Options: seccomp.ProgramOptions{
			DefaultAction: seccomp.ReturnError.Code(uint16(unix.EPERM)), BadArchAction: seccomp.KillProcess,
			HotSyscalls: []uintptr{unix.SYS_READ, unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_WRITE, unix.SYS_FUTEX, unix.SYS_EPOLL_PWAIT},
		},
	}
	instructions, _, err := program.Build()
	if err == nil {
		err = seccomp.SetFilter(instructions)
	}
	if err != nil {
		return fmt.Errorf("install the seccomp filter: %w", err)
	}
	return nil
}

func allowedCalls() seccomp.SyscallRules {
	rules := seccomp.MakeSyscallRules(nil)
	for _, call := range []uintptr{
		// packets
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_RECVFROM, unix.SYS_RECVMSG,
		unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT4, unix.SYS_SHUTDOWN, unix.SYS_GETSOCKOPT, unix.SYS_GETSOCKNAME,
		unix.SYS_GETPEERNAME, unix.SYS_CLOSE, unix.SYS_FSTAT,
		// the runtime of Go
		unix.SYS_CLOCK_GETTIME, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_EXIT,
		unix.SYS_EXIT_GROUP, unix.SYS_FUTEX, unix.SYS_GETPID, unix.SYS_GETRANDOM, unix.SYS_GETTID, unix.SYS_MADVISE, unix.SYS_MUNMAP,
		unix.SYS_NANOSLEEP, unix.SYS_PREAD64, unix.SYS_RESTART_SYSCALL, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN,
		unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_YIELD, unix.SYS_SIGALTSTACK,
	} {
		rules.Set(call, seccomp.MatchAll{})
	}
	anything := seccomp.AnyValue{}
	const threads = unix.CLONE_THREAD | unix.CLONE_VM
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWCGROUP
	for call, rule := range map[uintptr]seccomp.SyscallRule{
		unix.SYS_CLONE:    seccomp.PerArg{seccomp.MaskedEqual(threads|namespaces, threads)},
		unix.SYS_MMAP:     seccomp.PerArg{anything, anything, seccomp.MaskedEqual(unix.PROT_EXEC, 0)},
		unix.SYS_MPROTECT: seccomp.PerArg{anything, anything, seccomp.MaskedEqual(unix.PROT_EXEC, 0)},
		unix.SYS_IOCTL:    seccomp.Or{seccomp.PerArg{anything, seccomp.EqualTo(unix.TUNGETIFF)}, seccomp.PerArg{anything, seccomp.EqualTo(unix.TIOCINQ)}},
		unix.SYS_PRCTL:    seccomp.PerArg{seccomp.EqualTo(unix.PR_SET_VMA)},
		unix.SYS_TGKILL:   seccomp.PerArg{seccomp.EqualTo(uintptr(os.Getpid()))},
		unix.SYS_FCNTL: seccomp.Or{
			seccomp.PerArg{anything, seccomp.EqualTo(unix.F_GETFL)}, seccomp.PerArg{anything, seccomp.EqualTo(unix.F_SETFL)},
			seccomp.PerArg{anything, seccomp.EqualTo(unix.F_DUPFD_CLOEXEC)},
		},
		unix.SYS_SOCKET: seccomp.Or{
			seccomp.PerArg{seccomp.EqualTo(unix.AF_INET), seccomp.EqualTo(unix.SOCK_STREAM | socketFlags)},
			seccomp.PerArg{seccomp.EqualTo(unix.AF_INET), seccomp.EqualTo(unix.SOCK_DGRAM | socketFlags)},
		},
		unix.SYS_SOCKETPAIR: seccomp.PerArg{seccomp.EqualTo(unix.AF_UNIX), seccomp.EqualTo(unix.SOCK_STREAM | socketFlags)},
		unix.SYS_SETSOCKOPT: socketOptions(
			[2]uintptr{unix.SOL_SOCKET, unix.SO_REUSEADDR}, [2]uintptr{unix.SOL_SOCKET, unix.SO_BROADCAST}, [2]uintptr{unix.SOL_SOCKET, unix.SO_KEEPALIVE},
			[2]uintptr{unix.SOL_SOCKET, unix.SO_LINGER}, [2]uintptr{unix.SOL_SOCKET, unix.SO_SNDBUF},
			[2]uintptr{unix.IPPROTO_TCP, unix.TCP_NODELAY}, [2]uintptr{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE},
			[2]uintptr{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL}, [2]uintptr{unix.IPPROTO_TCP, unix.TCP_KEEPCNT},
		),
	} {
		rules.Set(call, rule)
	}
	return rules
}

const socketFlags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK

// socketOptions allows setting these socket options, each given as a level and a name.
func socketOptions(list ...[2]uintptr) seccomp.SyscallRule {
	var or seccomp.Or
	for _, o := range list {
		or = append(or, seccomp.PerArg{seccomp.AnyValue{}, seccomp.EqualTo(o[0]), seccomp.EqualTo(o[1])})
	}
	return or
}
