// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"os"
	"regexp"
	"strconv"
	"strings"
)

// SSH is how the commands of Slurm are reached on another machine, by the program ssh. The host must be a known one, and nobody is asked for a password.
type SSH struct {
	// Host is a login node. It has sharedDir too, under the same path.
	Host string `json:"host,omitempty"`
	// Port is that of its SSH server. Default 22.
	Port int `json:"port,omitempty"`
	// User is whose jobs they are. Default: the user that runs this. Its number must be the same on both machines.
	User string `json:"user,omitempty"`
	// IdentityFile is the private key. Default: as ssh finds it, with an agent too.
	IdentityFile string `json:"identityFile,omitempty"`
	// KnownHostsFile has the key of the host. Default: that of the user and that of the machine.
	KnownHostsFile string `json:"knownHostsFile,omitempty"`
	// ConfigFile is a configuration of ssh, for jump hosts for example. Default: none.
	ConfigFile string `json:"configFile,omitempty"`
}

// sshFailed is the exit code of ssh that says nothing about the command.
const sshFailed = 255

// What ssh takes as it is: nothing of it is an option, is expanded or needs quotes.
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

// arguments are those of ssh for a command with its environment. The shell of the other machine gets nothing but quoted words.
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
		words = append(words, quoted(word))
	}
	return append(all, "--", s.Host, strings.Join(words, " "))
}

// environment is what ssh itself gets of the environment of this process.
func (SSH) environment() []string {
	env := []string{"LC_ALL=C"}
	for _, name := range []string{"PATH", "HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// quoted is one word for a shell, whatever is in it.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// word is what Slurm's own names are made of: nothing of it is a flag.
var word = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.,-]*$`)
