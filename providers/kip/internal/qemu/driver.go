// SPDX-License-Identifier: Apache-2.0

package qemu

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/machine"
)

// Config configures a Driver.
type Config struct {
	// Dir contains a directory for each machine. Required.
	Dir string
	// Image is the default directory with the kernel and the archive, for a Spec without an image: see the command cell-image.
	Image string
	// Program is the QEMU program. Default: qemu-system-x86_64.
	Program string
	// Accel is kvm or tcg. Default: kvm if the kernel of the image boots with it, else tcg.
	Accel string
	// Network has more options of QEMU's user network, such as ",hostfwd=…". Default: none.
	Network string
}

// Driver starts machines with QEMU.
type Driver struct {
	config Config

	mu    sync.Mutex // guards the files of machines
	accel string     // guarded by mu; "": unknown yet
}

var _ machine.Driver = (*Driver)(nil)

// New returns a driver. It owns all machines in its directory.
func New(c Config) (*Driver, error) {
	c.Program = cmp.Or(c.Program, "qemu-system-x86_64")
	if c.Dir == "" {
		return nil, errdefs.InvalidInput("qemu: the directory of machines is required")
	}
	switch c.Accel {
	case "", "kvm", "tcg":
	default:
		return nil, errdefs.InvalidInputf("qemu: accel %q: want kvm, tcg, or nothing for the best that works", c.Accel)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	c.Dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("qemu: make the directory of machines: %w", err)
	}
	return &Driver{config: c, accel: c.Accel}, nil
}

// Files of a machine.
const (
	recordFile   = "machine.json"
	lockFile     = "lock"
	pidFile      = "pid"
	userDataFile = "user-data"
	consoleFile  = "console.log"
)

// record is the saved state of a machine.
type record struct {
	Machine machine.Machine
	Begun   bool      // QEMU has run; without its process, the machine is gone
	Ended   time.Time // the first time that the driver found the machine gone; zero before
}

// idOf returns the ID of the machine with a token.
func idOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "vk-" + hex.EncodeToString(sum[:8])
}

// guestIP is the address that QEMU gives to a guest.
const guestIP = "10.0.2.15"

// Start implements machine.Driver.
func (d *Driver) Start(ctx context.Context, spec machine.Spec) (machine.Machine, error) {
	image := cmp.Or(spec.Image, d.config.Image)
	for _, name := range []string{"vmlinuz", "initrd"} {
		if _, err := os.Stat(filepath.Join(image, name)); err != nil {
			return machine.Machine{}, errdefs.AsInvalidInput(fmt.Errorf("the image of machines: %w: make it with `make cell-image`", err))
		}
	}
	if spec.Token == "" {
		return machine.Machine{}, errdefs.InvalidInput("start a machine: it has no token")
	}
	accel, err := d.acceleration(ctx, filepath.Join(image, "vmlinuz"))
	if err != nil {
		return machine.Machine{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id := idOf(spec.Token)
	dir := filepath.Join(d.config.Dir, id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return machine.Machine{}, fmt.Errorf("start machine %s: %w", id, err)
	}
	lock, err := lockOf(dir, unix.LOCK_EX)
	if errors.Is(err, unix.EWOULDBLOCK) {
		r, err := d.read(id) // the machine runs
		return r.Machine, err
	}
	if err != nil {
		return machine.Machine{}, fmt.Errorf("start machine %s: %w", id, err)
	}
	defer lock.Close()                                     // QEMU holds the lock by then
	if old, err := d.record(id); err == nil && old.Begun { // the machine of the token has run and ended
		old.Machine.State, old.Machine.Address = machine.Gone, ""
		return old.Machine, nil
	}
	m := machine.Machine{ID: id, Type: spec.Type.Name, Tags: maps.Clone(spec.Tags), IP: guestIP, State: machine.Running, Spot: spec.Spot, Created: time.Now()}
	if err := os.WriteFile(filepath.Join(dir, userDataFile), spec.UserData, 0o600); err != nil {
		return machine.Machine{}, err
	}
	for range 3 { // another program may take the port first
		var port int
		if port, err = freePort(); err != nil {
			break
		}
		m.Address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if err = d.write(id, record{Machine: m}); err != nil {
			break
		}
		if err = d.launch(ctx, dir, image, accel, spec, port, lock); err == nil {
			return m, d.write(id, record{Machine: m, Begun: true})
		}
	}
	return machine.Machine{}, errors.Join(fmt.Errorf("start machine %s: %w", id, err), os.RemoveAll(dir))
}

// freePort returns an unused port of the loopback.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it has no name to look up
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// lockOf takes the lock of a machine. It returns unix.EWOULDBLOCK if QEMU holds the lock.
func lockOf(dir string, how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// launch starts QEMU as a daemon that holds the lock.
func (d *Driver) launch(ctx context.Context, dir, image, accel string, spec machine.Spec, port int, lock *os.File) error {
	megabytes := max((spec.Type.Memory+machine.Reserve(spec.Type.Memory))>>20, 256)
	args := append(base(accel, filepath.Join(image, "vmlinuz"), "rdinit=/init"),
		"-name", filepath.Base(dir), "-m", strconv.FormatInt(megabytes, 10), "-smp", strconv.FormatInt(max(1, (spec.Type.MilliCPU+999)/1000), 10),
		"-initrd", filepath.Join(image, "initrd"), "-serial", "file:"+filepath.Join(dir, consoleFile),
		"-netdev", fmt.Sprintf("user,id=n,restrict=on,hostfwd=tcp:127.0.0.1:%d-:%d%s", port, cell.Port, d.config.Network), "-device", "virtio-net-pci,netdev=n,romfile=",
		"-daemonize", "-pidfile", filepath.Join(dir, pidFile))
	if len(spec.UserData) > 0 { // otherwise the agent asks the metadata service
		args = append(args, "-fw_cfg", "name=opt/vk/user-data,file="+filepath.Join(dir, userDataFile))
	}
	cmd := exec.CommandContext(ctx, d.config.Program, args...) //nolint:gosec // the configuration names it
	cmd.ExtraFiles = []*os.File{lock}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("run %s: %w: %.500s", d.config.Program, err, bytes.TrimSpace(out))
	}
	return nil
}

// base returns the common arguments of machines. The kernel ends the machine at a panic.
func base(accel, kernel, more string) []string {
	return []string{
		"-M", "q35", "-accel", accel, "-cpu", "max", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", kernel, "-append", "console=ttyS0 quiet panic=-1 " + more,
	}
}

// kvmTime is the time limit for a test boot with KVM. The kernel takes less than a second to find that it has no root.
const kvmTime = 5 * time.Second

// acceleration returns the accelerator for machines. It test-boots a kernel, because an existing /dev/kvm may not work.
func (d *Driver) acceleration(ctx context.Context, kernel string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.accel != "" {
		return d.accel, nil
	}
	d.accel = "tcg"
	if f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err == nil {
		_ = f.Close()
		try, cancel := context.WithTimeout(ctx, kvmTime)
		defer cancel()
		cmd := exec.CommandContext(try, d.config.Program, append(base("kvm", kernel, ""), "-m", "128", "-serial", "null")...) //nolint:gosec // as above
		cmd.SysProcAttr = endsWithNode
		if cmd.Run() == nil {
			d.accel = "kvm"
		} else if ctx.Err() != nil {
			d.accel = ""
			return "", ctx.Err()
		}
	}
	return d.accel, nil
}

func (d *Driver) write(id string, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	path := filepath.Join(d.config.Dir, id, recordFile)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("keep machine %s: %w", id, err)
	}
	return os.Rename(path+".new", path)
}

func (d *Driver) record(id string) (r record, err error) {
	data, err := os.ReadFile(filepath.Join(d.config.Dir, id, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, errdefs.NotFoundf("machine %s: there is none", id)
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read machine %s: %w", id, err)
	}
	return r, nil
}

// read returns the record of a machine with its current state. It saves that QEMU has run, and the first time that it finds the machine gone.
func (d *Driver) read(id string) (record, error) {
	r, err := d.record(id)
	if err != nil {
		return record{}, err
	}
	lock, err := lockOf(filepath.Join(d.config.Dir, id), unix.LOCK_SH)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		if !r.Begun { // the node ended after QEMU had started, and before Start saved this
			r.Begun = true
			return r, d.write(id, r)
		}
		return r, nil
	case err != nil:
		return record{}, fmt.Errorf("read machine %s: %w", id, err)
	}
	defer lock.Close()
	if !r.Begun { // the start is incomplete, and a retry follows
		r.Machine.State = machine.Starting
		return r, nil
	}
	r.Machine.State, r.Machine.Address = machine.Gone, ""
	if r.Ended.IsZero() {
		r.Ended = time.Now()
		return r, d.write(id, r)
	}
	return r, nil
}

// keepGone is the time during which lists show a machine that has ended itself, from the first time that the driver found it gone.
const keepGone = 10 * time.Minute

// List implements machine.Driver.
func (d *Driver) List(_ context.Context, tags map[string]string) (all []machine.Machine, _ error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	entries, err := os.ReadDir(d.config.Dir)
	if err != nil {
		return nil, fmt.Errorf("list machines: %w", err)
	}
	for _, e := range entries {
		r, err := d.read(e.Name())
		m := r.Machine
		switch {
		case errdefs.IsNotFound(err):
			continue
		case err != nil:
			return nil, err
		case !hasAll(m.Tags, tags):
			continue
		}
		if m.State == machine.Gone && time.Since(r.Ended) > keepGone {
			if err := os.RemoveAll(filepath.Join(d.config.Dir, m.ID)); err != nil {
				return nil, fmt.Errorf("remove machine %s, which has ended: %w", m.ID, err)
			}
			continue
		}
		all = append(all, m)
	}
	return all, nil
}

func hasAll(has, want map[string]string) bool {
	for k, v := range want {
		if got, ok := has[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// Describe implements machine.Driver.
func (d *Driver) Describe(_ context.Context, id string) (machine.Machine, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.read(id)
	if errdefs.IsNotFound(err) {
		return machine.Machine{}, false, nil
	}
	return r.Machine, err == nil, err
}

// Tag implements machine.Driver.
func (d *Driver) Tag(_ context.Context, id string, tags map[string]string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.record(id)
	if err != nil {
		return err
	}
	if r.Machine.Tags == nil {
		r.Machine.Tags = map[string]string{}
	}
	maps.Copy(r.Machine.Tags, tags)
	return d.write(id, r)
}

// stopTime is the time for QEMU to end before the driver kills it.
const stopTime = 5 * time.Second

// Stop implements machine.Driver: it ends QEMU, and removes the files of the machine.
func (d *Driver) Stop(ctx context.Context, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir := filepath.Join(d.config.Dir, id)
	if _, err := d.record(id); err != nil {
		return err
	}
	for began, killed := time.Now(), false; ; {
		lock, err := lockOf(dir, unix.LOCK_EX)
		if err == nil {
			defer lock.Close()
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("stop machine %s: %w", id, err)
		}
		signal := syscall.SIGTERM
		if time.Since(began) > stopTime {
			signal = syscall.SIGKILL
		}
		if !killed || signal == syscall.SIGKILL {
			if err := d.signal(id, signal); err != nil {
				return fmt.Errorf("stop machine %s: %w", id, err)
			}
			killed = true
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stop machine %s: %w", id, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove machine %s: %w", id, err)
	}
	return nil
}

// signal signals the process that holds a machine's lock. Another process may have its ID by now, so the arguments of the process must name the machine.
func (d *Driver) signal(id string, s syscall.Signal) error {
	text, err := os.ReadFile(filepath.Join(d.config.Dir, id, pidFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // QEMU has just ended, or is about to start
	}
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("read its process: %w", err)
	}
	args, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || !bytes.Contains(args, []byte("\x00"+id+"\x00")) {
		return nil //nolint:nilerr // it has ended
	}
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// maxConsole is the maximum length in bytes of the console's end that Console returns.
const maxConsole = 64 << 10

// Console implements machine.Driver.
func (d *Driver) Console(_ context.Context, id string) (string, error) {
	f, err := os.Open(filepath.Join(d.config.Dir, id, consoleFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", errdefs.NotFoundf("machine %s: it has no console", id)
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-maxConsole), maxConsole))
	return string(text), err
}
