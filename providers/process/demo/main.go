// SPDX-License-Identifier: Apache-2.0

// Command demo is the program of the first pod of `make up`. The program needs no other files.
//
// It prints a line each second and serves HTTP on PORT. Under other names it is a small tool for use in its
// container: cat, env, exit, hostname, id, ls, sleep, and tar for kubectl cp. The shell of the image is a
// separate program, in providers/process/demo/shell.
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	args := os.Args
	if len(args) > 1 && tools[filepath.Base(args[0])] == nil {
		args = args[1:]
	}
	tool := tools[filepath.Base(args[0])]
	if tool == nil {
		tool = printHello
	}
	if err := tool(args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(args[0]), err)
		os.Exit(1)
	}
}

var tools map[string]func([]string) error

func init() {
	tools = map[string]func([]string) error{
		"hello": printHello, "cat": printFiles, "env": printEnvironment, "exit": exitWith, "hostname": printHostname, "id": printIdentity, "ls": listFiles, "sleep": sleepSeconds,
		"tar": runTar, "base64": decodeBase64, "linger": startLingering, "size": printSize, "eat": useMemory,
	}
}

// printHello prints a line each second until a signal ends it.
func printHello([]string) error {
	if port := os.Getenv("PORT"); port != "" {
		go serveHello(port)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		fmt.Printf("hello %d from %s\n", n, name)
		select {
		case s := <-stop:
			fmt.Println("goodbye:", s)
			return nil
		case <-time.After(time.Second):
		}
	}
}

func serveHello(port string) {
	server := http.Server{Addr: ":" + port, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello, %s\n", r.RemoteAddr)
	})}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
}

func printFiles(paths []string) error {
	if len(paths) == 0 {
		_, err := io.Copy(os.Stdout, os.Stdin)
		return err
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(data); err != nil {
			return err
		}
	}
	return nil
}

func printEnvironment([]string) error {
	_, err := fmt.Println(strings.Join(os.Environ(), "\n"))
	return err
}

func exitWith(args []string) error {
	if len(args) != 1 {
		return errors.New("want a number")
	}
	code, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	os.Exit(code)
	return nil
}

func printHostname([]string) error {
	name, err := os.Hostname()
	if err == nil {
		fmt.Println(name)
	}
	return err
}

func printIdentity([]string) error {
	groups, err := os.Getgroups()
	fmt.Printf("uid=%d gid=%d groups=%v\n", os.Getuid(), os.Getgid(), groups)
	return err
}

func listFiles(dirs []string) error {
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			fmt.Println(e.Name())
		}
	}
	return nil
}

func sleepSeconds(args []string) error {
	if len(args) != 1 {
		return errors.New("want a number of seconds")
	}
	d, err := time.ParseDuration(args[0] + "s")
	if err == nil {
		<-time.After(d)
	}
	return err
}

// startLingering starts processes in their own sessions that ignore SIGTERM and similar signals.
func startLingering(args []string) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	depth := 2
	if len(args) == 1 {
		depth, _ = strconv.Atoi(args[0])
	}
	if depth > 0 {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		child := &exec.Cmd{Path: self, Args: []string{"linger", strconv.Itoa(depth - 1)}, Stdout: os.Stdout, SysProcAttr: newSession()}
		if err := child.Start(); err != nil {
			return err
		}
	}
	fmt.Println("lingering", depth)
	return sleepSeconds([]string{"600"})
}

func eatInChild(mebibytes string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := &exec.Cmd{Path: self, Args: []string{"eat", mebibytes}, Stdout: os.Stdout}
	var ended *exec.ExitError
	if err := child.Run(); !errors.As(err, &ended) {
		return err
	}
	if ended.ExitCode() < 0 {
		os.Exit(137)
	}
	os.Exit(ended.ExitCode())
	return nil
}

// useMemory allocates the given number of MiB, and then waits. With "child" as the first argument, a child
// process allocates the memory, and this process ends with the exit code of the child, as a shell would.
func useMemory(args []string) error {
	if len(args) == 2 && args[0] == "child" {
		return eatInChild(args[1])
	}
	if len(args) != 1 {
		return errors.New("want a number of MiB")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	memory := make([]byte, n<<20)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	fmt.Println("ate", n)
	err = sleepSeconds([]string{"600"})
	runtime.KeepAlive(memory)
	return err
}
