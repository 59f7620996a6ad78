// SPDX-License-Identifier: Apache-2.0

package mock

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// commands maps names to the commands of a simulated container. init fills the map to break the cycle with sh,
// which runs the commands.
var commands map[string]func(sh *shell, args []string) error

func init() {
	commands = map[string]func(sh *shell, args []string) error{
		"ash": shCommand, "bash": shCommand, "sh": shCommand,
		"[": testCommand, "test": testCommand,
		"cat": catCommand, "ls": lsCommand, "mkdir": mkdirCommand, "rm": rmCommand, "tar": tarCommand,
		"cd": cdCommand, "echo": echoCommand, "exit": exitCommand, "sleep": sleepCommand,
		"true":  func(*shell, []string) error { return nil },
		"false": func(sh *shell, _ []string) error { return sh.fail(1, "") },
		"pwd":   func(sh *shell, _ []string) error { return sh.print(sh.dir) },
		"date":  func(sh *shell, _ []string) error { return sh.print(time.Now().UTC().Format(time.UnixDate)) },
		"env":   func(sh *shell, _ []string) error { return sh.print(strings.Join(sh.env, "\n")) },
		"printenv": func(sh *shell, args []string) error {
			if len(args) == 0 {
				return sh.print(strings.Join(sh.env, "\n"))
			}
			return sh.print(sh.variable(args[0]))
		},
		"hostname": func(sh *shell, _ []string) error { return sh.print(sh.hostname) },
		"whoami":   func(sh *shell, _ []string) error { return sh.print("root") },
	}
}

func commandNames() string {
	return strings.Join(slices.Sorted(maps.Keys(commands)), " ")
}

func (sh *shell) print(line string) error {
	_, err := fmt.Fprintln(sh.stdout, line)
	return err
}

func echoCommand(sh *shell, args []string) error {
	if len(args) > 0 && args[0] == "-n" {
		_, err := io.WriteString(sh.stdout, strings.Join(args[1:], " "))
		return err
	}
	return sh.print(strings.Join(args, " "))
}

func catCommand(sh *shell, args []string) error {
	if len(args) == 0 {
		args = []string{"-"}
	}
	for _, name := range args {
		if name == "-" {
			if _, err := io.Copy(sh.stdout, sh.stdin); err != nil {
				return err
			}
			continue
		}
		f, ok := sh.disk.read(sh.resolve(name))
		switch {
		case !ok:
			return sh.fail(1, "cat: %s: No such file or directory", name)
		case f.mode.IsDir():
			return sh.fail(1, "cat: %s: Is a directory", name)
		}
		if _, err := sh.stdout.Write(f.data); err != nil {
			return err
		}
	}
	return nil
}

func lsCommand(sh *shell, args []string) error {
	args = withoutOptions(args)
	if len(args) == 0 {
		args = []string{sh.dir}
	}
	for _, name := range args {
		f, ok := sh.disk.read(sh.resolve(name))
		if !ok {
			return sh.fail(2, "ls: %s: No such file or directory", name)
		}
		names := []string{name}
		if f.mode.IsDir() {
			names = sh.disk.list(sh.resolve(name))
		}
		for _, n := range names {
			if err := sh.print(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func mkdirCommand(sh *shell, args []string) error {
	for _, name := range withoutOptions(args) {
		if err := sh.disk.mkdir(sh.resolve(name), time.Now()); err != nil {
			return sh.fail(1, "mkdir: %v", err)
		}
	}
	return nil
}

func rmCommand(sh *shell, args []string) error {
	for _, name := range withoutOptions(args) {
		if !sh.disk.remove(sh.resolve(name)) && args[0] != "-f" && args[0] != "-rf" {
			return sh.fail(1, "rm: %s: No such file or directory", name)
		}
	}
	return nil
}

func cdCommand(sh *shell, args []string) error {
	target := "/"
	if len(args) > 0 {
		target = sh.resolve(args[0])
	}
	if f, ok := sh.disk.read(target); !ok || !f.mode.IsDir() {
		return sh.fail(1, "cd: %s: No such directory", target)
	}
	sh.dir = target
	return nil
}

// testCommand implements the file checks of test. `kubectl cp` uses them to check whether its target is a
// folder.
func testCommand(sh *shell, args []string) error {
	if len(args) > 0 && args[len(args)-1] == "]" {
		args = args[:len(args)-1]
	}
	if len(args) != 2 {
		return sh.fail(2, "test: only -d, -e and -f with one file work here")
	}
	f, ok := sh.disk.read(sh.resolve(args[1]))
	if args[0] == "-e" && ok || args[0] == "-d" && ok && f.mode.IsDir() || args[0] == "-f" && ok && !f.mode.IsDir() {
		return nil
	}
	return sh.fail(1, "")
}

func exitCommand(sh *shell, args []string) error {
	if len(args) == 0 {
		return nil
	}
	code, err := strconv.ParseUint(args[0], 10, 8)
	if err != nil {
		return sh.fail(2, "exit: %s: want a number from 0 to 255", args[0])
	}
	if code == 0 {
		return nil
	}
	return sh.fail(int(code), "")
}

func sleepCommand(sh *shell, args []string) error {
	total := time.Duration(0)
	for _, arg := range args {
		if arg != "" && strings.ContainsAny(arg[len(arg)-1:], "0123456789") {
			arg += "s"
		}
		d, err := time.ParseDuration(arg)
		if err != nil || d < 0 {
			return sh.fail(1, "sleep: invalid time interval %q", arg)
		}
		total += d
	}
	timer := time.NewTimer(total)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-sh.ctx.Done():
		return sh.ctx.Err()
	}
}

func withoutOptions(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") && a != "-" })
}
