// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

func truePointer() *bool { t := true; return &t }

func int64Pointer(n int64) *int64 { return &n }

// settingCheck returns a check of a field with an effect on the output of a container.
func settingCheck(name, why string, f capability.Feature, p program.Program, set func(*corev1.PodSpec), sees func(lines []string) bool) Check {
	return Check{Name: "settings/" + name, Why: why, Needs: []capability.Feature{f}, Run: func(c *C) {
		c.needsPrint()
		pod := c.newPod(name, c.printingProgram(p))
		set(&pod.Spec)
		if lines := c.printedLines(pod, sees); !sees(lines) {
			c.Errorf("the container sees nothing of it: %q", lines)
		}
	}}
}

// oneLine reports whether a line has all words.
func oneLine(words ...string) func([]string) bool {
	return func(lines []string) bool {
		for _, line := range lines {
			found := 0
			for _, w := range words {
				for _, field := range strings.Fields(line) {
					if field == w {
						found++
						break
					}
				}
			}
			if found == len(words) {
				return true
			}
		}
		return false
	}
}

// capabilityBits returns the capabilities of a process, from its status in /proc.
func capabilityBits(lines []string) (bits uint64, ok bool) {
	for _, line := range lines {
		if text, found := strings.CutPrefix(line, "CapEff:"); found {
			bits, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			return bits, err == nil
		}
	}
	return 0, false
}

const sysAdmin = 1 << 21 // CAP_SYS_ADMIN

var (
	ownStatus = program.Program{Show: []string{"/proc/self/status"}}
	security  = func(change func(*corev1.SecurityContext)) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext = &corev1.SecurityContext{}
			change(s.Containers[0].SecurityContext)
		}
	}
)

var settings = []Check{
	settingCheck("hostname", "programs that form a cluster find each other by host names", capability.Hostname,
		program.Program{Show: []string{"/proc/sys/kernel/hostname"}},
		func(s *corev1.PodSpec) { s.Hostname = "contract-host" }, oneLine("contract-host")),
	settingCheck("host-aliases", "a pod resolves names that no DNS server has", capability.HostAliases,
		program.Program{Show: []string{"/etc/hosts"}},
		func(s *corev1.PodSpec) {
			s.HostAliases = []corev1.HostAlias{{IP: "192.0.2.7", Hostnames: []string{"alias.example"}}}
		}, oneLine("192.0.2.7", "alias.example")),
	settingCheck("dns", "a pod asks the DNS server that it is told to", capability.DNS,
		program.Program{Show: []string{"/etc/resolv.conf"}},
		func(s *corev1.PodSpec) {
			s.DNSPolicy = corev1.DNSNone
			s.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.53"}, Searches: []string{"contract.example"}}
		}, func(lines []string) bool {
			return oneLine("nameserver", "192.0.2.53")(lines) && oneLine("search", "contract.example")(lines)
		}),
	settingCheck("run-as-user", "a program that should not be root must not be", capability.RunAsUser, ownStatus,
		security(func(s *corev1.SecurityContext) { s.RunAsUser, s.RunAsGroup = int64Pointer(1234), int64Pointer(2345) }),
		func(lines []string) bool { return oneLine("Uid:", "1234")(lines) && oneLine("Gid:", "2345")(lines) }),
	settingCheck("fs-group", "a program that is not root writes to its volumes by their group", capability.FSGroup, ownStatus,
		func(s *corev1.PodSpec) { s.SecurityContext.FSGroup = int64Pointer(3456) }, oneLine("Groups:", "3456")),
	settingCheck("capabilities", "what a program does not need it must not be able to do", capability.Capabilities, ownStatus,
		security(func(s *corev1.SecurityContext) {
			s.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
		}),
		func(lines []string) bool { bits, ok := capabilityBits(lines); return ok && bits == 0 }),
	settingCheck("no-new-privileges", "a program must not gain rights by a setuid file", capability.NoNewPrivileges, ownStatus,
		security(func(s *corev1.SecurityContext) { no := false; s.AllowPrivilegeEscalation = &no }), oneLine("NoNewPrivs:", "1")),
	settingCheck("read-only-root", "a program that is broken into must not change itself", capability.ReadOnlyRoot,
		program.Program{Write: []string{"/written"}},
		security(func(s *corev1.SecurityContext) { s.ReadOnlyRootFilesystem = truePointer() }), oneLine("cannot", "write", "/written")),
	settingCheck("seccomp", "most holes of kernels are in system calls that programs do not need", capability.Seccomp, ownStatus,
		security(func(s *corev1.SecurityContext) {
			s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
		}), oneLine("Seccomp:", "2")),
	settingCheck("privileged", "programs that work on the machine itself need its rights", capability.Privileged, ownStatus,
		security(func(s *corev1.SecurityContext) { s.Privileged = truePointer() }),
		func(lines []string) bool { bits, ok := capabilityBits(lines); return ok && bits&sysAdmin != 0 }),
	settingCheck("sysctls", "a program tunes the kernel for itself, and for nobody else", capability.Sysctls,
		program.Program{Show: []string{"/proc/sys/kernel/shm_rmid_forced"}},
		func(s *corev1.PodSpec) {
			s.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "kernel.shm_rmid_forced", Value: "1"}}
		}, oneLine("1")),
	settingCheck("limits", "a program that takes more than its share must not take it from its neighbours", capability.ContainerLimits,
		program.Program{Show: []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}},
		func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
		}, oneLine(strconv.Itoa(64<<20))),
	{
		Name: "settings/stop-signal", Why: "programs that stop by another signal than SIGTERM are killed in the middle of their work without it",
		Needs: []capability.Feature{capability.StopSignal},
		Run: func(c *C) {
			c.needsReports()
			pod := c.newPod("stop-signal", stayingProgram())
			kill := corev1.SIGKILL
			pod.Spec.OS = &corev1.PodOS{Name: corev1.Linux}
			pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{StopSignal: &kill}
			c.startPod(pod)
			begin := time.Now()
			c.removePod(pod, int64((2 * c.h.Patience).Seconds()))
			p := c.untilPod(pod, "to be reported as ended", isTerminal)
			if code := c.endOf(p, "main").ExitCode; code != 137 {
				c.Errorf("stopped by SIGKILL after %s the exit code is %d, want 137", time.Since(begin), code)
			}
		},
	},
	{
		Name: "settings/ephemeral", Why: "kubectl debug adds a container to a pod that runs",
		Needs: []capability.Feature{capability.EphemeralContainers},
		Run: func(c *C) {
			pod := c.newPod("ephemeral", stayingProgram())
			before := c.statusOf(c.startPod(pod), "main")
			debug := c.newContainer(pod, "debug", stayingProgram())
			changed := pod.DeepCopy()
			changed.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
				Name: debug.Name, Image: debug.Image, Command: debug.Command, Args: debug.Args, ImagePullPolicy: debug.ImagePullPolicy,
				TerminationMessagePath: debug.TerminationMessagePath, TerminationMessagePolicy: debug.TerminationMessagePolicy,
			}}}
			changed.Status = c.currentPod(c.ctx, pod).Status
			if err := c.openProvider().provider.UpdatePod(c.ctx, changed); err != nil {
				c.Fatalf("UpdatePod with an ephemeral container: %v", err)
			}
			p := c.untilPod(pod, "to run its ephemeral container", func(p *corev1.Pod) bool {
				return len(p.Status.EphemeralContainerStatuses) == 1 && p.Status.EphemeralContainerStatuses[0].State.Running != nil
			})
			if after := c.statusOf(p, "main"); after.ContainerID != before.ContainerID {
				c.Errorf("the ephemeral container replaced container %s by %s", before.ContainerID, after.ContainerID)
			}
		},
	},
	{
		Name: "settings/restart-rules", Why: "a container says which of its exit codes are worth another try",
		Needs: []capability.Feature{capability.ContainerRestartRules},
		Run: func(c *C) {
			pod := c.newPod("restart-rules", program.Program{Stay: c.h.Tick, Exit: 42})
			never := corev1.ContainerRestartPolicyNever
			pod.Spec.Containers[0].RestartPolicy = &never
			pod.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{
				Action: corev1.ContainerRestartRuleActionRestart, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
					Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42},
				},
			}}
			c.untilRestarted(pod)
		},
	},
}
