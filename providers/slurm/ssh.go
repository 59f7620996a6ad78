// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/providerkit/shellexec"
)

// SSH configures access to Slurm's commands on another machine, by the program ssh. The key of the host must be known, and ssh asks
// for no password.
type SSH struct {
	// Host is a login node. It must have sharedDir under the same path.
	Host string `json:"host,omitempty"`
	// Port is the port of its SSH server. Default 22.
	Port int `json:"port,omitempty"`
	// User owns the jobs. Default: the user of this process. The user must have the same number on both
	// machines.
	User string `json:"user,omitempty"`
	// IdentityFile is the private key. Default: as ssh finds it, with an agent too.
	IdentityFile string `json:"identityFile,omitempty"`
	// KnownHostsFile has the key of the host. Default: the user's file and the machine's.
	KnownHostsFile string `json:"knownHostsFile,omitempty"`
	// ConfigFile is a configuration of ssh, for jump hosts for example. Default: none.
	ConfigFile string `json:"configFile,omitempty"`
}

// sshFailed is ssh's own exit code, which says nothing about the command.
const sshFailed = 255

// Values that are safe for ssh: no options, nothing that is expanded, nothing that needs quotes.
var (
	hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.:_-]*)$`)
	plain    = regexp.MustCompile(`^/[A-Za-z0-9._/@+=,:-]+$`)
)

func (s SSH) check(problem func(string, ...any)) {
	if !hostName.MatchString(s.Host) {
		problem("ssh.host: %q: want the name of a login node", s.Host)
	}
	if s.User != "" && !word.MatchString(s.User) {
		problem("ssh.user: %q: want the name of a user", s.User)
	}
	if s.Port < 0 || s.Port > 65535 {
		problem("ssh.port: %d: want a port, or 0 for 22", s.Port)
	}
	for field, path := range map[string]string{"identityFile": s.IdentityFile, "knownHostsFile": s.KnownHostsFile, "configFile": s.ConfigFile} {
		if path != "" && !plain.MatchString(path) {
			problem("ssh.%s: %q: want an absolute path of letters, digits and ._/@+=,:-", field, path)
		}
	}
}

// arguments returns ssh's arguments for a command with its environment. The shell of the other machine gets only
// quoted words.
func (s SSH) arguments(env []string, name string, args ...string) []string {
	config := "none"
	if s.ConfigFile != "" {
		config = s.ConfigFile
	}
	all := []string{"-F", config, "-T", "-e", "none"}
	options := []string{
		"BatchMode=yes", "StrictHostKeyChecking=yes", "UpdateHostKeys=no", "ClearAllForwardings=yes", "ForwardAgent=no", "PermitLocalCommand=no",
		"ConnectTimeout=10", "ServerAliveInterval=10", "ServerAliveCountMax=3", "LogLevel=ERROR",
	}
	if s.KnownHostsFile != "" {
		options = append(options, "UserKnownHostsFile="+s.KnownHostsFile, "GlobalKnownHostsFile=/dev/null")
	}
	if s.IdentityFile != "" {
		options = append(options, "IdentitiesOnly=yes", "IdentityFile="+s.IdentityFile)
	}
	for _, o := range options {
		all = append(all, "-o", o)
	}
	if s.Port != 0 {
		all = append(all, "-p", strconv.Itoa(s.Port))
	}
	if s.User != "" {
		all = append(all, "-l", s.User)
	}
	words := []string{"exec", "env", "-i", `"PATH=$PATH"`, `"HOME=$HOME"`, `"USER=$USER"`, `"LOGNAME=$LOGNAME"`}
	for _, word := range append(append(env, name), args...) {
		words = append(words, shellexec.Quote(word))
	}
	return append(all, "--", s.Host, strings.Join(words, " "))
}

// environment returns the environment of ssh itself.
func (SSH) environment() []string {
	env := []string{"LC_ALL=C"}
	for _, name := range []string{"PATH", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// word matches Slurm's own names, which contain no flags.
var word = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.,-]*$`)
