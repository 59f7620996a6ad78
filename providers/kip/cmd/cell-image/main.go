// SPDX-License-Identifier: Apache-2.0

// Command cell-image makes the boot image of machines: a kernel, and an archive with the agent, busybox and the necessary kernel modules.
//
//	cell-image -kernel DIR -busybox FILE -agent FILE -out DIR
//
// DIR has the files of Debian's package linux-image-…-cloud-amd64. The same files give the same image, bit by bit: the archive has no times, root owns all
// its files, and the files are sorted by name.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

func main() {
	kernel := flag.String("kernel", "", "the files of the package with the kernel")
	busybox := flag.String("busybox", "", "busybox, linked statically")
	agent := flag.String("agent", "", "vk-cell")
	out := flag.String("out", "", "where vmlinuz and initrd are written")
	flag.Parse()
	if err := build(*kernel, *busybox, *agent, *out); err != nil {
		fmt.Fprintf(os.Stderr, "cell-image: %v\n", err)
		os.Exit(1)
	}
}

// modules are the kernel modules for disks and networks of QEMU, Nova and EC2, for layers of images, and for Services. Each module follows its dependencies.
var modules = []string{
	"virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_blk",
	"failover", "net_failover", "virtio_net", "ena", "qemu_fw_cfg", "overlay",
	"libcrc32c", "nfnetlink", "nf_tables", "nf_defrag_ipv4", "nf_defrag_ipv6", "nf_conntrack", "nft_ct", "nf_nat", "nft_chain_nat", "nft_nat", "nft_numgen",
	"nf_reject_ipv4", "nft_reject", "nft_reject_ipv4",
}

// applets are the programs of busybox for the agent, and for pods that use a machine without an image.
var applets = []string{
	"ash", "awk", "basename", "cat", "chmod", "chown", "cp", "cut", "date", "dd", "df", "dirname", "dmesg", "du", "echo", "env", "expr", "false", "find", "free",
	"grep", "gunzip", "gzip", "head", "hostname", "httpd", "id", "ip", "kill", "ln", "ls", "mkdir", "mknod", "mktemp", "mount", "mv", "nc", "nohup", "nproc", "nsenter", "nslookup",
	"ping", "printf", "ps", "pwd", "readlink", "rm", "rmdir", "sed", "seq", "sh", "sha256sum", "sleep", "sort", "stat", "sync", "tail", "tar", "tee", "test", "timeout", "touch",
	"tr", "true", "tty", "udhcpc", "umount", "uname", "uniq", "uptime", "vi", "wc", "wget", "which", "whoami", "xargs", "yes",
}

func build(kernel, busybox, agent, out string) error {
	kernels, err := filepath.Glob(filepath.Join(kernel, "boot", "vmlinuz-*"))
	if err != nil {
		return err
	}
	if len(kernels) != 1 {
		return fmt.Errorf("%s/boot has %d kernels, want one: give the files of one package", kernel, len(kernels))
	}
	a := archive{"dev": {mode: 0o040755}, "dev/console": {mode: 0o020600, major: 5, minor: 1}}
	for to, from := range map[string]string{"bin/vk-cell": agent, "bin/busybox": busybox} {
		if err := a.copy(from, to, 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"init", "bin/vk-cell-lease"} {
		a.link(name, "/bin/vk-cell")
	}
	for _, name := range applets {
		a.link("bin/"+name, "busybox")
	}
	a.add("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"))
	a.add("etc/group", 0o644, []byte("root:x:0:\nnogroup:x:65534:\n"))
	if err := a.addModules(filepath.Join(kernel, "lib", "modules", strings.TrimPrefix(filepath.Base(kernels[0]), "vmlinuz-"))); err != nil {
		return err
	}
	var initrd bytes.Buffer
	z, err := zstd.NewWriter(&initrd, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(8<<20))
	if err != nil {
		return err
	}
	if err := errors.Join(a.write(z), z.Close()); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // others start machines
		return err
	}
	image, err := os.ReadFile(kernels[0])
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"vmlinuz": image, "initrd": initrd.Bytes()} {
		if err := os.WriteFile(filepath.Join(out, name), data, 0o644); err != nil { //nolint:gosec // as above
			return err
		}
	}
	return nil
}

// addModules adds the modules and the file with their load order.
func (a archive) addModules(dir string) error {
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".ko"); ok {
			found[strings.ReplaceAll(name, "-", "_")] = path
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range modules {
		if found[name] == "" {
			return fmt.Errorf("the kernel in %s has no module %s", dir, name)
		}
		if err := a.copy(found[name], "modules/"+name+".ko", 0o644); err != nil {
			return err
		}
	}
	a.add("modules/order", 0o644, []byte(strings.Join(modules, "\n")+"\n"))
	return nil
}

// archive maps paths to files. The kernel unpacks it in the cpio format newc.
type archive map[string]file

type file struct {
	mode, major, minor uint32
	data               []byte
}

func (a archive) add(path string, mode uint32, data []byte) {
	a[path] = file{mode: 0o100000 | mode, data: data}
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		a[dir] = file{mode: 0o040755}
	}
}

func (a archive) link(path, to string) { a[path] = file{mode: 0o120777, data: []byte(to)} }

func (a archive) copy(from, to string, mode uint32) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	a.add(to, mode, data)
	return nil
}

// write writes the archive in the order of the paths.
func (a archive) write(w io.Writer) error {
	paths := make([]string, 0, len(a)+1)
	for path := range a {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	paths = append(paths, "TRAILER!!!")
	for i, path := range paths {
		f := a[path]
		links := 1
		if f.mode&0o170000 == 0o040000 {
			links = 2
		}
		head := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", i+1, f.mode, 0, 0, links, 0, len(f.data), 0, 0, f.major, f.minor, len(path)+1, 0)
		if _, err := io.WriteString(w, padded(head+path+"\x00")); err != nil {
			return err
		}
		if _, err := io.WriteString(w, padded(string(f.data))); err != nil {
			return err
		}
	}
	return nil
}

// padded adds zero bytes up to a multiple of four bytes.
func padded(s string) string { return s + strings.Repeat("\x00", (4-len(s)%4)%4) }
